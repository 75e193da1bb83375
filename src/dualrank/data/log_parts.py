"""A log as parts that are looked at one at a time; all sessions of a query are in one of them.

Whoever counts something loops over the parts and adds up, so that a log in shards needs the memory
of one shard. A log that is in memory anyway is a single part, and goes the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.data.catalogue import Catalogue
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.inputs import log_and_dataset, log_from
from dualrank.data.shards.shard import Shard
from dualrank.data.shards.sharded_log import ShardedLog, is_sharded
from dualrank.errors import DataError, SettingsError

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class PairSums:
    """Of every document and place, in how many sessions it stood there and was clicked.

    `rows` are document, place (from 1), sessions and clicks, in the order of the first two. The
    documents of query `q` are `offsets[q]:offsets[q + 1]`.
    """

    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @property
    def queries(self) -> NDArray[np.int64]:
        """The query of every row."""
        return np.searchsorted(self.offsets, self.rows[:, 0], side="right") - 1


@dataclass(frozen=True, eq=False)
class LogPart:
    """One part: `open` gives its clicks, on documents that every part numbers for itself.

    `names` gives the names behind these numbers. `sums` gives what an engine has added up already;
    there is nothing where a log was not reduced into shards, or sessions were left out since.
    """

    number: int
    sessions: int
    open: Callable[[], ClickLog]
    names: Callable[[], Catalogue | None]
    sums: Callable[[], PairSums] | None = None

    @property
    def log(self) -> ClickLog:
        """The clicks of this part; those of a shard are mapped, and let go with what is given."""
        return self.open()

    @property
    def named_log(self) -> ClickLog:
        """The same, with the names of its documents in memory."""
        return replace(self.open(), catalogue=self.names())


@dataclass(frozen=True, eq=False)
class LogParts:
    """The parts of a log that have sessions.

    Where two have the same `origin`, their parts show the same lists. `read` gives all of it as one
    log in memory, for what cannot look at parts. `sharded` is where the parts are from.
    """

    parts: tuple[LogPart, ...]
    depth: int
    origin: Any
    read: Callable[[], ClickLog]
    sharded: ShardedLog | None = None

    @classmethod
    def of(
        cls, log: ClickLog | ShardedLog | LogParts | Any, progress: Progress | None = None
    ) -> LogParts:
        """The shards of a log, each verified, or a log that is in memory as its only part.

        Anything else is the folder of a log in shards, or what `read_log` reads. `progress` hears
        how many shards are verified.
        """
        if isinstance(log, LogParts):
            return log
        if is_sharded(log):
            log = ShardedLog.open(log)
        if not isinstance(log, ShardedLog):
            whole = log_from(log)
            part = LogPart(0, whole.sessions, lambda: whole, lambda: whole.catalogue)
            return cls((part,), whole.lists.depth, whole.lists, lambda: whole)
        if log.sessions == 0:
            raise DataError(f"{log.folder}: none of its shards has a session")
        for done, shard in enumerate(log.shards):
            # What is mapped to be verified is let go.
            replace(shard).verify()
            if progress is not None:
                progress(done + 1, len(log.shards))
        shards = (shard for shard in log.shards if shard.sessions)
        return cls(tuple(map(_of_shard, shards)), log.depth, log.digest, log.read, log)

    def __repr__(self) -> str:
        if self.sharded is None:
            return repr(self.read())
        return f"{len(self.sharded.shards)} shards, {self.sessions} sessions"

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[LogPart]:
        return iter(self.parts)

    @property
    def shards(self) -> int:
        """How many parts there are, with those that have no session."""
        return 1 if self.sharded is None else len(self.sharded.shards)

    @property
    def sessions(self) -> int:
        """How many sessions there are, over all parts."""
        return sum(part.sessions for part in self.parts)

    def changed(self, change: Callable[[LogPart], ClickLog]) -> LogParts:
        """The same lists with other sessions: what `change` makes of every part.

        Shards of which no session is left are no parts any more; of a log in memory, its only part
        stays whatever is left of it.
        """
        in_memory = self.sharded is None

        def other(part: LogPart) -> LogPart:
            made = change(part)
            if in_memory:
                return LogPart(part.number, made.sessions, lambda: made, part.names)
            return LogPart(part.number, made.sessions, lambda: change(part), part.names)

        def read() -> ClickLog:
            raise DataError("a part of the sessions of a log in shards is not read as one log")

        kept = tuple(each for each in map(other, self.parts) if in_memory or each.sessions)
        return replace(self, parts=kept, read=kept[0].open if in_memory else read)


def parts_and_dataset(log: Any, features: Any) -> tuple[LogParts, Dataset | None]:
    """The parts of a log, and the features of its documents where they are not beside shards."""
    in_shards = isinstance(log, LogParts | ShardedLog) or is_sharded(log)
    parts = LogParts.of(log) if in_shards else None
    if parts is None or parts.sharded is None:
        whole, dataset = log_and_dataset(log if parts is None else parts.read(), features)
        return LogParts.of(whole), dataset
    if features is not None:
        raise SettingsError(
            f"{parts.sharded.folder}: a log in shards has its features beside it; give them when "
            "it is reduced"
        )
    return parts, None


def _of_shard(shard: Shard) -> LogPart:
    # Of a shard that is opened anew nothing stays mapped but what is in use.
    def sums() -> PairSums:
        opened = replace(shard)
        return PairSums(opened.pair_counts, opened.offsets)

    return LogPart(
        shard.number,
        shard.sessions,
        lambda: replace(shard).log,
        lambda: replace(shard).catalogue(),
        sums,
    )
