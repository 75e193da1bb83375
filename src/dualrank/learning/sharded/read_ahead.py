"""Batches of the next steps, whose lists are read together, in the order in which they lie on disk.

Lists that are drawn at random lie anywhere. Where shards do not fit into memory, a step that looked
for its own lists alone would wait for the disk some thousand times. So tickets of many steps are
drawn at once, their lists are read shard by shard from the first to the last, and kept until their
step comes: what is waited for is one way through the shards, at the speed at which the disk is read
through. Which lists a step has does not change by that: tickets are drawn ahead from a copy of the
random state, and the state moves on when a batch is taken, so that a checkpoint holds that of its
own step.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dualrank.data.lists import PADDING, RankedLists
from dualrank.data.scaling import Scaler
from dualrank.learning.sharded.own_shards import Drawn, copy_rows
from dualrank.rankers.batch import Batch

if TYPE_CHECKING:
    from dualrank.learning.sharded.sharded_source import ShardedSource

MOST_BYTES = 1 << 27
"""Of what is kept for later steps, and of what is at hand while it is read."""
BYTES_OF_POSITION = 40
BYTES_OF_LIST = 50
"""What a list takes beside its features: documents, labels, tickets, and copies on the way."""

Lots = TypeVar("Lots")


@dataclass(frozen=True, eq=False)
class _Ready:
    """A batch, and the random states before and after it is drawn; features as they are on disk."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    batch: Batch


class ReadAhead(ABC, Generic[Lots]):
    """A source of labelled lists in shards; `steps` of them will be asked for.

    What is drawn for one step are `Lots`: tickets, and whatever else is random.
    """

    def __init__(self, source: ShardedSource, scaler: Scaler, steps: int) -> None:
        self.lists: RankedLists = source.sample.lists
        self._own, self._scaler = source.own, scaler
        self._is_share = source.workers.count > 1
        self._left = steps
        self._ready, self._size = deque[_Ready](), 0

    def draw(self, size: int, rng: np.random.Generator) -> Batch:
        """Draw lists in proportion to their sessions; of those, the ones in this worker's shards.

        `size` is that of the draw of all workers, and of the batch's `drawn`.
        """
        now = rng.bit_generator.state
        if not self._ready or (self._ready[0].before, self._size) != (now, size):
            self._ready, self._size = deque(self._next_steps(size, rng)), size
        ready = self._ready.popleft()
        self._left -= 1
        rng.bit_generator.state = ready.after
        features = ready.batch.features
        assert features is not None
        return replace(ready.batch, features=self._scaler.transform(features))

    def _next_steps(self, size: int, rng: np.random.Generator) -> list[_Ready]:
        room = MOST_BYTES // (size * self.bytes_of_list)
        ahead, states, lots = copy.deepcopy(rng), [rng.bit_generator.state], []
        for _ in range(max(1, min(self._left, room))):
            lots.append(self.lots(size, ahead))
            states.append(ahead.bit_generator.state)
        batches = self.batches(lots, size)
        return [
            _Ready(before, after, batch)
            for (before, after), batch in zip(pairwise(states), batches, strict=True)
        ]

    @property
    def bytes_of_list(self) -> int:
        """What a list that is read ahead takes, about."""
        of_position = 4 * self._scaler.input_count + BYTES_OF_POSITION
        return self.lists.depth * of_position + BYTES_OF_LIST

    @abstractmethod
    def lots(self, size: int, rng: np.random.Generator) -> Lots:
        """What is random about a step."""

    @abstractmethod
    def batches(self, lots: list[Lots], size: int) -> list[Batch]:
        """The batches of some steps."""

    def with_features(self, batch: Batch, drawn: Drawn, speaks: NDArray[np.bool_]) -> Batch:
        """A batch whose lists point to the features of their documents, if they speak."""
        documents = np.where(speaks[:, None], batch.documents, PADDING)
        mask = documents != PADDING
        row_of = np.full(documents.shape, PADDING, dtype=np.int32)
        row_of[mask] = np.arange(int(mask.sum()))
        features = np.empty((int(mask.sum()), self._scaler.input_count), np.float32)
        for part in drawn.parts:
            copy_rows(part.shard.dataset.features, part.places, documents, row_of, features)
        return replace(batch, documents=row_of, features=features, is_share=self._is_share)


def cut(batch: Batch, speaks: NDArray[np.bool_], steps: int) -> list[Batch]:
    """A batch of several steps cut into those of each, without the lists that do not speak."""
    assert batch.features is not None
    count, found = len(batch) // steps, list[Batch]()
    ends = np.append(0, np.cumsum((batch.documents != PADDING).sum(axis=1)))
    for start in range(0, len(batch), count):
        rows = start + np.flatnonzero(speaks[start : start + count])
        first, last = ends[start], ends[start + count]
        part = batch.take(rows)
        own = np.where(part.documents == PADDING, PADDING, part.documents - first)
        found.append(
            replace(part, documents=own.astype(np.int32), features=batch.features[first:last])
        )
    return found
