"""Which columns of a log mean what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dualrank.data.log.log_options import LogOptions
from dualrank.errors import DataError, SettingsError
from dualrank.sentences import listed

REQUIRED = ("session_id", "query_id", "doc_id", "position", "clicked")
OPTIONAL = ("timestamp", "client_id")
RESERVED = ("clicks", "sessions", "events")


@dataclass(frozen=True)
class Columns:
    """The log's own names of the columns that are used.

    `session_id` to `clicked` are always there; `timestamp` and `client_id` where the log has them.
    `events` has the columns of what users did besides clicking, by kind.
    """

    names: Mapping[str, str]
    contexts: tuple[str, ...] = ()
    events: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, meaning: str) -> str:
        return self.names[meaning]

    def __contains__(self, meaning: str) -> bool:
        return meaning in self.names


def find_columns(present: Iterable[str], options: LogOptions, *, where: str = "the log") -> Columns:
    """Those of the columns that are `present` in a log which the options ask for.

    >>> present = ["session_id", "query_id", "item", "position", "clicked"]
    >>> find_columns(present, LogOptions(columns={"doc_id": "item"}))["doc_id"]
    'item'
    """
    renamed = options.columns
    meanings = (*REQUIRED, *OPTIONAL, *options.event_kinds)
    unknown = [meaning for meaning in renamed if meaning not in meanings]
    if unknown:
        raise SettingsError(
            f"there is no meaning {unknown[0]!r} for a column; there are {', '.join(meanings)}"
        )
    present = list(present)
    there = listed(present)
    names = {}
    missing = []
    for meaning in (*REQUIRED, *OPTIONAL):
        name = renamed.get(meaning, meaning)
        if name in present:
            names[meaning] = name
        elif meaning in REQUIRED or meaning in renamed:
            missing.append(meaning)
    if missing:
        first = missing[0]
        sought = [
            repr(renamed.get(each, each)) + (f" (as {each})" if each in renamed else "")
            for each in missing
        ]
        lacks = f"column {sought[0]} is" if len(sought) == 1 else f"columns {', '.join(sought)} are"
        raise DataError(
            f"{where}: {lacks} missing; a log has {', '.join(REQUIRED)}, this one has {there}; "
            f"{_renamed(first)}"
            + ("; text begins with a line of names" if len(missing) == len(REQUIRED) else "")
        )
    for context in options.contexts:
        if context in RESERVED:
            raise DataError(
                f"{where}: a context cannot be called {context!r}, a name that a reduced log has "
                "itself; rename the column"
            )
        if context in (names[meaning] for meaning in REQUIRED):
            raise DataError(
                f"{where}: {context!r} is a column that every log has, and no context; name another"
            )
        if context not in present:
            raise DataError(f"{where}: there is no context column {context!r}; the log has {there}")
    events = {kind: renamed.get(kind, kind) for kind in options.event_kinds}
    for kind, name in events.items():
        if kind in (*REQUIRED, *OPTIONAL):
            raise SettingsError(f"{kind!r} is what a log's own column means, and no kind of event")
        if name not in present:
            named = f" (as {kind})" if name != kind else ""
            raise DataError(
                f"{where}: there is no column {name!r}{named} of events; the log has "
                f"{there}; {_renamed(kind)}"
            )
    return Columns(names, tuple(dict.fromkeys(options.contexts)), events)


def _renamed(meaning: str) -> str:
    return f"another name is given as columns={ {meaning: 'NAME'} }"
