"""As many whole shards of a log as fit into so much memory, as one log.

Queries are spread over shards by a hash, so that some shards are a random sample of the queries,
each with all of its sessions: what needs lists and features in memory looks at those, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dualrank.data.click_log import ClickLog, Column
from dualrank.data.dataset import Dataset
from dualrank.data.lists import PADDING, RankedLists
from dualrank.data.memory_limits import require_memory
from dualrank.data.shards.shard import Shard
from dualrank.data.shards.sharded_log import ShardedLog

BUDGET = 1 << 30
"""Bytes that a sample may take, with what is made of it while it is looked at."""
PER_POSITION = 100
"""Bytes of a position of a list: where it points, and its clicks, sessions and scores as floats."""
PER_PATTERN = 120
"""Bytes of a pattern of clicks, beside one for each position."""
COPIES = 3
"""Of the features: as they are, without gaps, and scaled."""


@dataclass(frozen=True, eq=False)
class ShardSample:
    """Some shards in memory: their log, the features of their documents, and how many they are."""

    log: ClickLog
    dataset: Dataset | None
    shards: int
    of_shards: int
    of_sessions: int

    @property
    def is_whole(self) -> bool:
        """Whether nothing was left out."""
        return self.shards == self.of_shards

    @property
    def sentence(self) -> str:
        """How much was looked at, in words."""
        return (
            f"looked at {self.shards} of {self.of_shards} shards, {self.log.sessions:,} of "
            f"{self.of_sessions:,} sessions"
        )


def bytes_of(shard: Shard) -> int:
    """Roughly what a shard takes in memory while it is looked at."""
    events = 8 * shard.depth * len(shard.events)
    patterns = PER_PATTERN + shard.depth + 4 * len(shard.columns) + events
    return (
        shard.lists * shard.depth * PER_POSITION
        + shard.patterns * patterns
        + shard.documents * (shard.feature_count or 0) * 4 * COPIES
    )


def sample_shards(log: ShardedLog, budget: int = BUDGET) -> ShardSample:
    """The first shards with sessions that fit into `budget` bytes, and one in any case."""
    shown = [shard for shard in log.shards if shard.sessions]
    room = np.cumsum([bytes_of(shard) for shard in shown])
    count = max(1, int((room <= budget).sum()))
    require_memory(int(room[count - 1]), f"{log.folder}: a shard, and what is made of it,")
    # Opened anew, so that nothing stays mapped.
    chosen = [replace(shard) for shard in shown[:count]]
    empty = len(log.shards) - len(shown)
    return ShardSample(
        replace(_joined([shard.log for shard in chosen], chosen), reading=log.reading),
        None if log.feature_count is None else _documents(chosen),
        len(chosen) + (empty if count == len(shown) else 0),
        len(log.shards),
        log.sessions,
    )


def read_documents(log: ShardedLog) -> Dataset:
    """All documents of a log in shards, with their names and features, in memory."""
    log.require_features()
    size = log.documents * (log.feature_count or 0) * 4
    require_memory(size, f"{log.folder}: the features of all of its shards at once")
    shards = [replace(shard) for shard in log.shards]
    for shard in shards:
        shard.verify()
    names = [shard.catalogue() for shard in shards]
    return replace(
        _documents(shards),
        query_ids=np.concatenate([each.query_ids for each in names]).astype(np.str_),
        doc_ids=np.concatenate([each.doc_ids for each in names]).astype(np.str_),
    )


def _joined(logs: Sequence[ClickLog], shards: Sequence[Shard]) -> ClickLog:
    """One log of several, whose lists, queries and documents are numbered on."""
    documents, queries, lists = (
        np.append(0, np.cumsum([getattr(shard, each) for shard in shards]))
        for each in ("documents", "queries", "lists")
    )
    shown = [
        np.where(log.lists.documents == PADDING, PADDING, log.lists.documents + before)
        for log, before in zip(logs, documents, strict=False)
    ]
    return ClickLog(
        RankedLists(
            np.concatenate(shown).astype(np.int32),
            np.concatenate(
                [log.lists.queries + n for log, n in zip(logs, queries, strict=False)]
            ).astype(np.int32),
        ),
        np.concatenate([log.list_of + n for log, n in zip(logs, lists, strict=False)]).astype(
            np.int32
        ),
        np.concatenate([log.clicks for log in logs]),
        np.concatenate([log.counts for log in logs]),
        {
            name: Column(column.names, np.concatenate([log.columns[name].codes for log in logs]))
            for name, column in logs[0].columns.items()
        },
        events={
            kind: np.concatenate([log.events[kind] for log in logs]) for kind in logs[0].events
        },
    )


def _documents(shards: Sequence[Shard]) -> Dataset:
    """The documents of several shards, under numbers for names."""
    parts = [shard.dataset for shard in shards]
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    return Dataset(
        features=np.concatenate([part.features for part in parts]),
        offsets=np.append(0, np.cumsum(lengths)),
        query_ids=np.arange(len(lengths)).astype(str),
        feature_names=parts[0].feature_names,
        source=str(shards[0].folder.parent),
    )
