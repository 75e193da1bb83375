"""A log in shards: a folder of them, and the manifest that vouches for every file.

Queries are spread over the shards by a hash of their ids: all that happened on a query lies in one
shard, and any shards are a random sample of the queries.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeGuard

import pyarrow as pa

from dualrank.data.click_log import MOST_SESSIONS, ClickLog
from dualrank.data.log.examples import MAX_DEPTH
from dualrank.data.log.reading_report import ReadingReport
from dualrank.data.log.saved import refusing_damage, rows_and_note
from dualrank.data.log.saved_rows import log_of, one_table
from dualrank.data.memory_limits import require_memory
from dualrank.data.shards.shard import LOG, Shard, WrittenFile
from dualrank.errors import DataError
from dualrank.sentences import counted, listed, reason_of, shortened, start_of
from dualrank.showing.card import card, facts
from dualrank.storage import read_json

MANIFEST = "shards.json"
FORMAT = 1
MOST_SHARDS = 10_000
_COUNTS = ("sessions", "lists", "patterns", "documents", "queries", "pairs_at_places")
_LIST_IN_MEMORY, _PATTERN_IN_MEMORY = 60, 40
"""Bytes of a position, roughly, while a log is put together: its names are many times as long."""


def is_sharded(log: Any) -> TypeGuard[str | os.PathLike[str]]:
    """Whether this is the folder of a log in shards."""
    return isinstance(log, str | os.PathLike) and Path(log, MANIFEST).is_file()


def shard_of(query_id: str, shards: int) -> int:
    """In which of so many shards a query is; every engine computes the same.

    >>> shard_of("shoes", 8)
    0
    """
    return int(hashlib.md5(query_id.encode(), usedforsecurity=False).hexdigest()[:15], 16) % shards


def shard_name(number: int) -> str:
    """The folder of a shard."""
    return f"{number:05d}"


def digest_of(manifest: Mapping[str, Any]) -> str:
    """What a manifest says, without its own digest, as sha256."""
    content = {name: value for name, value in manifest.items() if name != "digest"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class ShardedLog:
    """A log in shards.

    `columns` are the contexts, and the period, with the values that they have; `digest` tells this
    log from any other. There are features where the log was reduced with them.
    """

    folder: Path
    depth: int
    columns: Mapping[str, tuple[str, ...]]
    events: tuple[str, ...]
    feature_names: tuple[str, ...] | None
    feature_count: int | None
    reading: ReadingReport
    digest: str
    shards: tuple[Shard, ...]

    def __repr__(self) -> str:
        return f"ShardedLog({len(self.shards)} shards, {self.sessions} sessions)"

    def _repr_html_(self) -> str:
        """A card for notebooks: how much the shards hold, without reading them."""
        about = (
            counted(self.sessions, "sessions"),
            counted(self.lists, "distinct lists"),
            counted(len(self.shards), "shards"),
        )
        columns = {start_of(name): listed(values) for name, values in self.columns.items()}
        features = f"{self.feature_count:,}" if self.feature_count is not None else "none"
        known = {
            "folder": start_of(str(self.folder)),
            "positions": str(self.depth),
            "documents": f"{self.documents:,}",
            "features": features,
            **columns,
            "events": listed(self.events) if self.events else "",
        }
        return card("ShardedLog", about, facts(known))

    @property
    def sessions(self) -> int:
        """How many sessions there are, over all shards."""
        return sum(shard.sessions for shard in self.shards)

    @property
    def lists(self) -> int:
        """How many distinct lists there are, over all shards."""
        return sum(shard.lists for shard in self.shards)

    @property
    def documents(self) -> int:
        """How many documents there are, over all shards."""
        return sum(shard.documents for shard in self.shards)

    @classmethod
    def open(
        cls, folder: str | os.PathLike[str], *, only: Sequence[int] | None = None
    ) -> ShardedLog:
        """Open a log in shards, whose files must all be there, or those of `only` some shards."""
        path = Path(folder)
        file = path / MANIFEST
        found = read_json(file)
        written = found.get("format") if isinstance(found, dict) else None
        if type(written) is int and written > FORMAT:
            raise DataError(
                f"{file}: a log in shards of format {written}, which a newer dualrank wrote; this "
                f"version reads {FORMAT}: update it"
            )
        try:
            log = _opened(path, found)
        except (KeyError, TypeError, ValueError, AttributeError, DataError) as error:
            raise DataError(
                f"{file}: damaged: not a log in shards ({reason_of(error)}); reduce the log again"
            ) from error
        for shard in log.shards:
            if only is None or shard.number in only:
                shard.require_files()
        return log

    def require_features(self) -> None:
        """Refuse a log that was reduced without features."""
        self.shards[0].require_features()

    def read(self) -> ClickLog:
        """The whole log in memory, with its names, as if it had been reduced into one file."""
        size = sum(
            self.depth * (_LIST_IN_MEMORY * shard.lists + _PATTERN_IN_MEMORY * shard.patterns)
            for shard in self.shards
        )
        alone = self.folder / shard_name(0) / LOG
        try:
            require_memory(size, f"{self.folder}: all of its shards at once")
        except DataError as error:
            raise DataError(
                f"{error}; a shard alone is a log too, of a random sample of the queries: {alone}"
            ) from error
        pieces, note = list[pa.Table](), dict[str, Any]()
        for shard in self.shards:
            shard.require_digest(LOG)
            table, note = rows_and_note(str(shard.folder / LOG))
            pieces.append(table)
        whole = {**note, "reading": None}
        with refusing_damage(str(self.folder)):
            log = log_of(one_table(pieces), whole)
        return replace(log, reading=self.reading)


def _opened(folder: Path, found: Any) -> ShardedLog:
    if found["format"] != FORMAT:
        raise ValueError(f"format {shortened(found['format'])}; this version reads {FORMAT}")
    if found["digest"] != digest_of(found):
        raise ValueError("its digest differs from that of what was written")
    if not 1 <= len(found["shards"]) <= MOST_SHARDS:
        raise ValueError(f"{len(found['shards'])} shards")
    features = found["features"]
    names = None if features is None or features["names"] is None else tuple(features["names"])
    count = None if features is None else _whole(features["count"], 1, 1 << 20)
    if names is not None and len(names) != count:
        raise ValueError(f"{len(names)} names of {count} features")
    columns = {str(k): tuple(map(str, v)) for k, v in found["columns"].items()}
    events = tuple(map(str, found["events"]))
    depth = _whole(found["depth"], 1, MAX_DEPTH)
    shards = tuple(
        Shard(
            folder / shard_name(number),
            number,
            depth,
            columns,
            events,
            names,
            count,
            files={_plain(name): _written(file) for name, file in entry["files"].items()},
            **{each: _whole(entry[each], 0, MOST_SESSIONS) for each in _COUNTS},
        )
        for number, entry in enumerate(found["shards"])
    )
    return ShardedLog(
        folder,
        depth,
        columns,
        events,
        names,
        count,
        ReadingReport.from_dict(found["reading"]),
        str(found["digest"]),
        shards,
    )


def _whole(value: Any, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{shortened(value)} is no number from {least} to {most}")
    return value


def _plain(name: str) -> str:
    if Path(name).name != name:
        raise ValueError(f"{shortened(name)} is no file of a shard")
    return name


def _written(file: Mapping[str, Any]) -> WrittenFile:
    return WrittenFile(_whole(file["bytes"], 0, 1 << 60), str(file["sha256"]))
