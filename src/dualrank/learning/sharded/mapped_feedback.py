"""Labels of the lists that are drawn from shards, with the features of their documents.

What `LoggedClicks`, `ReadClicks` and `DisplayedOrder` hold for all lists of a log is made here for
those of one batch, from rows that are mapped: the same lists come up for the same random state, and
with the same labels. Only the features of these lists are read, and scaled.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualrank.corrections.correction import Correction
from dualrank.data.dataset import Dataset
from dualrank.data.lists import PADDING, RankedLists
from dualrank.data.scaling import Scaler
from dualrank.errors import SettingsError
from dualrank.learning.feedback import (
    LISTS_FOR_ONE_ORDER,
    Feedback,
    require_comparisons,
    require_read_down,
    with_others,
)
from dualrank.learning.logging_scores import Ground, logging_scores
from dualrank.learning.plan import Plan
from dualrank.learning.sharded.own_shards import LISTS_PER_BLOCK, ROWS_PER_BLOCK, Drawn, Whole
from dualrank.learning.sharded.read_ahead import ReadAhead, cut
from dualrank.rankers.batch import Batch

if TYPE_CHECKING:
    from dualrank.learning.sharded.sharded_source import ShardedSource

BYTES_OF_CANDIDATE = 60


def require_drawn(plan: Plan) -> None:
    """Refuse to train on shards what takes all lists at once."""
    method, ranker = plan.way, plan.ranker
    why = None
    if ranker.makes.whole or ranker.makes.at_once:
        why = f"a ranker of kind {ranker.kind} takes all lists at once"
    elif plan.events is not None:
        why = "weighted events are brought to the scale of clicks over all lists"
    elif method.drawn is None:
        why = f"method {method.name} makes the labels of all lists before the first step"
    if why is not None:
        raise SettingsError(
            f"{why}, and of a log in shards some are drawn at every step; train on one shard, "
            "which is a reduced log of its own with a random sample of the queries "
            "(log/00000/log.parquet, with the features of all documents)"
        )


def mapped_feedback(
    source: ShardedSource,
    plan: Plan,
    correction: Correction,
    scaler: Scaler,
    ground: Ground | None = None,
) -> Feedback:
    """What the loop draws from, as the method of a plan has it."""
    require_drawn(plan)
    require_comparisons(source.sample.lists)
    drawn, steps = plan.way.drawn, plan.suited.steps
    if drawn == "order":
        return MappedOrder(source, scaler, steps)
    if drawn == "reading":
        _require_whole_lists(source)
    return MappedClicks(
        source,
        scaler,
        steps,
        context=plan.context,
        reads=drawn == "reading",
        clicked_only=correction.clicked_only,
        ground=None if ground is None else MappedGround.of(source, ground),
    )


class MappedClicks(ReadAhead[Whole]):
    """Clicks of the lists that are drawn, as `LoggedClicks` and, where users `read`, `ReadClicks`.

    Lists without a click are left out where they say nothing (`clicked_only`), before anything is
    read of their documents.
    """

    def __init__(
        self,
        source: ShardedSource,
        scaler: Scaler,
        steps: int = 1,
        *,
        context: str | None = None,
        reads: bool = False,
        clicked_only: bool = False,
        ground: MappedGround | None = None,
    ) -> None:
        super().__init__(source, scaler, steps)
        self._context, self._reads, self._ground = context, reads, ground
        self._clicked_only = clicked_only

    @property
    def bytes_of_list(self) -> int:
        """With a ground, the candidates of a list are looked at, too."""
        below = 0 if self._ground is None else self._ground.bytes_of_list
        return super().bytes_of_list + below

    def lots(self, size: int, rng: np.random.Generator) -> Whole:
        """Tickets, as for lists of one log."""
        return rng.integers(self._own.sessions, size=size)

    def batches(self, lots: list[Whole], size: int) -> list[Batch]:
        """Labels and features of the lists that tickets fall on."""
        drawn = self._own.read(np.concatenate(lots), self._context)
        speaks = drawn.lists >= 0
        if self._clicked_only:
            speaks &= drawn.clicks.any(axis=1)
        batch = Batch(
            drawn.documents,
            drawn.clicks,
            size,
            None if self._context is None else drawn.contexts,
            ground=None if self._ground is None else self._ground.under(drawn),
            examined=drawn.examined if self._reads else None,
        )
        return cut(self.with_features(batch, drawn, speaks), speaks, len(lots))


Shares = NDArray[np.float64]


class MappedOrder(ReadAhead[tuple[Whole, Shares]]):
    """The order displayed, followed by other candidates, as `DisplayedOrder`."""

    @property
    def bytes_of_list(self) -> int:
        """Fewer lists are drawn than were asked for, each with as many candidates again."""
        return 2 * super().bytes_of_list // LISTS_FOR_ONE_ORDER

    def lots(self, size: int, rng: np.random.Generator) -> tuple[Whole, Shares]:
        """Tickets of a quarter as many lists, and where the other candidates stand."""
        tickets = rng.integers(self._own.sessions, size=max(1, size // LISTS_FOR_ONE_ORDER))
        return tickets, rng.random((len(tickets), self.lists.depth))

    def batches(self, lots: list[tuple[Whole, Shares]], size: int) -> list[Batch]:
        """The lists that tickets fall on, and candidates."""
        tickets, shares = (np.concatenate(each) for each in zip(*lots, strict=True))
        drawn = self._own.read(tickets)
        lists = RankedLists(drawn.documents, np.zeros(len(tickets), np.int32))
        batch = with_others(lists, *_candidates(drawn), shares, len(lots[0][0]))
        speaks = drawn.lists >= 0
        found = self.with_features(replace(batch, queries=None), drawn, speaks)
        return cut(found, speaks, len(lots))


class MappedGround:
    """What lists stand on: what the logging ranker must have thought of their documents.

    `scores` are those of the ground's model for all documents of this worker's shards, by shard:
    4 bytes a document. A query has so many `candidates` in the mean.
    """

    def __init__(
        self, ground: Ground, scores: dict[int, NDArray[np.float32]], candidates: float
    ) -> None:
        self._ground, self._scores = ground, scores
        self.bytes_of_list = int(BYTES_OF_CANDIDATE * candidates)
        """What a list takes, about, while its candidates are looked at."""

    @classmethod
    def of(cls, source: ShardedSource, ground: Ground) -> MappedGround:
        """Score the documents of this worker's shards, block by block."""
        model, scores = ground.model, {}
        for shard in source.own.shards:
            features = shard.dataset.features
            scores[shard.number] = np.empty(shard.documents, np.float32)
            for start in range(0, shard.documents, ROWS_PER_BLOCK):
                block = slice(start, start + ROWS_PER_BLOCK)
                scores[shard.number][block] = model.predict(features[block])
        queries = sum(shard.queries for shard in source.log.shards)
        return cls(ground, scores, source.log.documents / queries)

    def under(self, drawn: Drawn) -> NDArray[np.float32]:
        """s of the documents displayed, laid out like the lists of the batch.

        Each list is looked at with all candidates of its query, one list's after the other's.
        """
        firsts, lengths = _candidates(drawn)
        begins = np.append(0, np.cumsum(lengths))
        scores = np.zeros(begins[-1], np.float32)
        for part in drawn.parts:
            counts = lengths[part.places]
            inside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            rows = np.repeat(firsts[part.places], counts) + inside
            places = np.repeat(begins[part.places], counts) + inside
            scores[places] = self._scores[part.shard.number][rows]
        moved = (begins[:-1] - firsts)[:, None]
        shown = drawn.documents
        own = np.where(shown == PADDING, PADDING, shown + moved).astype(np.int32)
        lists = RankedLists(own, np.arange(len(own), dtype=np.int32))
        nameless = np.broadcast_to(np.str_(""), len(own))
        candidates = Dataset(np.empty((len(scores), 0), np.float32), begins, nameless)
        found = logging_scores(scores, lists, candidates) / self._ground.scale
        return found.astype(np.float32)


def _candidates(drawn: Drawn) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the candidates of each list's query begin in its shard, and how many there are.

    Of lists in other workers' shards it is one, which nobody looks at.
    """
    count = len(drawn.lists)
    firsts, lengths = np.zeros(count, np.int64), np.ones(count, np.int64)
    for part in drawn.parts:
        offsets, queries = part.shard.offsets, part.shard.log.lists.queries
        query = queries[drawn.lists[part.places]]
        firsts[part.places] = offsets[query]
        lengths[part.places] = offsets[query + 1] - offsets[query]
    return firsts, lengths


def _require_whole_lists(source: ShardedSource) -> None:
    """Refuse gaps, wherever in this worker's shards they are."""
    for shard in source.own.shards:
        for start in range(0, shard.lists, LISTS_PER_BLOCK):
            block = slice(start, start + LISTS_PER_BLOCK)
            lists = RankedLists(shard.log.lists.documents[block], shard.log.lists.queries[block])
            require_read_down(lists)
