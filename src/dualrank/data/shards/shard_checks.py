"""Whether the numbers of a shard can be what they stand for, whoever vouches for its bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualrank.data.lists import PADDING
from dualrank.errors import DataError

if TYPE_CHECKING:
    from dualrank.data.shards.shard import Shard

ROWS_AT_ONCE = 1 << 17


def require_sound(shard: Shard) -> None:
    """Refuse numbers that point nowhere, or contradict each other; some rows are in memory."""
    checks = _Checks(shard)
    checks.ranges()
    checks.rows_of_lists()
    checks.features()


class _Checks:
    def __init__(self, shard: Shard) -> None:
        self.shard, self.log = shard, shard.log

    def ranges(self) -> None:
        """Every number is one of those that there are."""
        shard, log = self.shard, self.log
        self._within("documents.npy", log.lists.documents, PADDING, shard.documents)
        self._within("queries.npy", log.lists.queries, 0, shard.queries)
        self._within("counts.npy", log.counts, 1, shard.sessions + 1)
        self._within("clicks.npy", log.clicks.view(np.uint8), 0, 2)
        for number, (name, values) in enumerate(shard.columns.items()):
            self._within(f"column_{number}.npy", log.columns[name].codes, 0, len(values))
        for number, kind in enumerate(shard.events):
            self._within(f"event_{number}.npy", log.events[kind], 0, np.inf)
        counts = shard.pair_counts
        self._within("pair_counts.npy", counts[:, 0], 0, shard.documents)
        self._within("pair_counts.npy", counts[:, 1], 1, shard.depth + 1)
        self._within("pair_counts.npy", counts[:, 2:], 0, shard.sessions + 1)
        self._rises("offsets.npy", shard.offsets, shard.documents, least=1)
        self._rises("starts.npy", shard.starts, shard.patterns)
        if len(shard.cumulative):
            self._rises("cumulative.npy", np.append(0, shard.cumulative[-1:]), shard.sessions)

    def rows_of_lists(self) -> None:
        """Rows belong to the lists that they are found by, and add up to their sessions."""
        shard, log = self.shard, self.log
        for first in range(0, shard.lists, ROWS_AT_ONCE):
            last = min(first + ROWS_AT_ONCE, shard.lists)
            starts = shard.starts[first : last + 1]
            rows = slice(starts[0], starts[-1])
            lengths = np.diff(starts)
            of = np.repeat(np.arange(first, last), lengths)
            self._require("list_of.npy", bool((lengths > 0).all()))
            self._require("list_of.npy", np.array_equal(of, log.list_of[rows]))
            before = shard.cumulative[first - 1] if first else 0
            sums = np.add.reduceat(log.counts[rows], starts[:-1] - starts[0])
            expected = before + np.cumsum(sums)
            self._require("cumulative.npy", np.array_equal(expected, shard.cumulative[first:last]))
            mask = log.lists.documents[first:last] != PADDING
            self._require("documents.npy", bool(mask.any(axis=1).all()))
            self._require("clicks.npy", not (log.clicks[rows] & ~mask[of - first]).any())

    def features(self) -> None:
        """Features are finite, or missing."""
        if self.shard.feature_count is None:
            return
        for block in _blocks(self.shard.dataset.features):
            self._require("features.npy", not np.isinf(block).any())

    def _within(self, name: str, values: NDArray[Any], least: int, below: float) -> None:
        for block in _blocks(values):
            # A nan is neither at least nor below anything.
            self._require(name, bool(block.min() >= least and block.max() < below))

    def _rises(self, name: str, values: NDArray[np.int64], end: int, least: int = 0) -> None:
        self._require(name, bool(values[0] == 0 and values[-1] == end))
        for first in range(0, len(values), ROWS_AT_ONCE):
            block = values[first : first + ROWS_AT_ONCE + 1]
            self._require(name, bool((np.diff(block) >= least).all()))

    def _require(self, name: str, holds: bool) -> None:
        if not holds:
            raise DataError(
                f"{self.shard.folder / name}: damaged: holds numbers that cannot be; reduce the "
                "log again"
            )


def _blocks(values: NDArray[Any]) -> list[NDArray[Any]]:
    if values.size == 0:
        return []
    return [values[i : i + ROWS_AT_ONCE] for i in range(0, len(values), ROWS_AT_ONCE)]
