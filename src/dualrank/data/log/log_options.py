"""`LogOptions`: how a log is to be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from dualrank.errors import DataError, SettingsError

CLICK = "click"
"""The kind of event that every log has."""


@dataclass(frozen=True)
class LogOptions:
    """How a log is read: the names of its columns, and which sessions are left out.

    `columns` gives the log's own names, such as `{"doc_id": "item"}`. Sessions that differ in one
    of the `contexts` are counted apart. Sessions with more than `max_clicks` clicks, and those of
    clients with more than `max_client_share` of all clicks, are left out. A share of bad sessions
    above `max_bad_share` is refused. `event_kinds` are what users did besides clicking, such as
    `purchase`: columns with amounts, or UBI actions. `periods` is the number of parts, of about
    equally many sessions, into which the time of a log with a `timestamp` is cut; 0 or 1 leaves it
    whole.
    Where lists are `partial`, a gap in the positions of a session is what was not shown or not
    logged; otherwise such a session is bad.
    Positions count from `first_position`: from 1 unless it is given, those of UBI events from where
    they are seen to begin.

    >>> import dualrank as dr
    >>> options = dr.LogOptions(columns={"doc_id": "item"}, contexts=("device",), max_clicks=20)
    >>> options.columns["doc_id"], options.periods
    ('item', 4)
    """

    columns: Annotated[
        Mapping[str, str],
        "The log's own name of a column: doc_id=item. Repeatable.",
        {"metavar": "MEANING=NAME"},
    ] = field(default_factory=dict)
    contexts: Annotated[
        tuple[str, ...], "A column whose values are counted apart. Repeatable."
    ] = ()
    event_kinds: Annotated[
        tuple[str, ...],
        "What to keep besides clicks: a column of amounts, or a UBI action. Repeatable.",
        {"name": "--event", "metavar": "KIND"},
    ] = ()
    first_position: Annotated[
        int | None,
        "What the log's positions start with (1, or as UBI events show).",
        {"min": 0, "max": 1},
    ] = None
    partial: Annotated[
        bool, "Take gaps in the positions for results that were not shown or not logged."
    ] = False
    max_bad_share: Annotated[
        float, "Leave bad sessions out, up to this share.", {"min": 0, "max": 1}
    ] = 0.0
    max_clicks: Annotated[int | None, "Leave out sessions with more clicks.", {"min": 1}] = None
    max_client_share: Annotated[
        float | None, "Leave out clients with more than this share of all clicks."
    ] = None
    periods: int = 4

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", dict(self.columns or {}))
        object.__setattr__(self, "contexts", tuple(self.contexts or ()))
        kinds = dict.fromkeys(kind for kind in self.event_kinds or () if kind != CLICK)
        object.__setattr__(self, "event_kinds", tuple(kinds))
        for kind in kinds:
            if "=" in kind or not kind:
                raise SettingsError(
                    f"the event {kind!r} is no name such as purchase; amounts are kept apart, and "
                    "weighed when a ranker is trained"
                )
        if self.first_position not in (None, 0, 1):
            raise SettingsError(f"first_position is 0 or 1, not {self.first_position}")
        if self.periods < 0:
            raise SettingsError(f"periods is 0 or more, not {self.periods}")
        if not 0 <= self.max_bad_share <= 1:
            raise SettingsError(f"max_bad_share is a share from 0 to 1, not {self.max_bad_share}")
        if self.max_clicks is not None and self.max_clicks < 1:
            raise SettingsError(f"max_clicks is 1 or more, not {self.max_clicks}")
        share = self.max_client_share
        if share is not None and not 0 < share <= 1:
            raise SettingsError(f"max_client_share is a share above 0 and up to 1, not {share}")

    @property
    def first(self) -> int:
        """What positions start with, where nothing else shows it."""
        return 1 if self.first_position is None else self.first_position

    def require_reduced(self, name: str) -> None:
        """Refuse what a log that is reduced already can be asked for no more."""
        plain = replace(self, contexts=(), event_kinds=(), partial=False, max_bad_share=0.0)
        if plain != LogOptions():
            raise SettingsError(
                f"{name}: this log is reduced already; columns, positions, periods and traffic "
                "filters are given when it is reduced"
            )

    def require_kept(self, name: str, columns: Iterable[str], events: Iterable[str]) -> None:
        """Refuse a reduced log that has not kept a column or event that is asked for."""
        for kind, asked, kept in (
            ("column {!r} beside the clicks", self.contexts, list(columns)),
            ("event {!r} besides clicks", self.event_kinds, list(events)),
        ):
            for each in asked:
                if each not in kept:
                    raise DataError(
                        f"{name}: the log has no {kind.format(each)}; it has "
                        f"{', '.join(kept) or 'none'}: {kind.split()[0]}s are named when a log is "
                        "read or reduced"
                    )
