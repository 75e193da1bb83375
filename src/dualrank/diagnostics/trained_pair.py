"""Two rankers trained on the same clicks: one that believes them, one with dual learning.

What they are for is not ranking but their comparison on queries that neither has seen: a correction
that this log supports shows in it. Where nobody has trained such rankers yet, two that are small
and trained briefly do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dualrank.certainty import LEVEL
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.errors import DataError
from dualrank.evaluation.click_check import ClickCheck, Lead, hold_out
from dualrank.learning.fit import fit
from dualrank.learning.loop import part_of
from dualrank.propensity.bootstrap import Evidence, log_ratio
from dualrank.propensity.grouped_clicks import GroupedClicks
from dualrank.rankers.network import DNN
from dualrank.settings import TrainingSettings

RANKER = DNN(hidden=(64, 32))
STEPS = 1_500
HELD_OUT = 0.3
FEWEST_QUERIES = 10
# The better of two, and wrong one time in twenty.
BEYOND = NormalDist().inv_cdf(1 - LEVEL / 4)


@dataclass(frozen=True, eq=False)
class TrainedPair:
    """Scores of all documents by both rankers, and sessions on queries that neither has seen.

    `max_weight` is what dual learning clips its weights at. `imitated` are the scores of a third
    ranker, which repeats the order displayed.
    """

    naive: NDArray[np.float32]
    dual: NDArray[np.float32]
    held_out: ClickLog
    max_weight: float = np.inf
    seed: int = 0
    imitated: NDArray[np.float32] | None = None

    @cached_property
    def lead(self) -> Lead:
        """How much better dual learning predicts the held-out clicks."""
        return ClickCheck(self.held_out, self.seed).lead(self.dual, self.naive)

    @cached_property
    def beyond_position(self) -> Lead:
        """How much better the held-out clicks are predicted by features than by position alone.

        That is, by the better of the two rankers.
        """
        check, none = ClickCheck(self.held_out, self.seed), np.zeros_like(self.dual)
        leads = (check.lead(scores, none) for scores in (self.dual, self.naive))
        return max(leads, key=lambda lead: lead.in_errors)

    @property
    def tells(self) -> bool:
        """Whether the features tell which documents are clicked; two rankers were tried."""
        return self.beyond_position.in_errors > BEYOND

    @property
    def supports(self) -> bool:
        """Whether joint learning leads, and by something that the features tell."""
        return self.lead.is_clear and self.tells

    def examination(self, grouped: GroupedClicks) -> Evidence:
        """Where the propensity model of dual learning comes to rest, given the scores.

        The slope of l̂_IRW in φ is zero where every position has its share of the clicks weighted
        by inverse relevance,

            P(o_k)/P(o_1) = Σ c_k P(r_1)/P(r_k) / Σ c_1,      P(r_1)/P(r_k) = e^{f(x_1) − f(x_k)},

        over the lists that show both positions. Intervals take the ranker as given: they do not
        hold what another training, or another network, would have learned.
        """
        scores = grouped.lists.gather(self.dual)[grouped.list_of]
        inverse = np.exp(np.minimum(scores[:, :1] - scores, np.log(self.max_weight)))
        clicks = grouped.clicks * inverse * grouped.mask * grouped.mask[:, :1]
        at_first = grouped.mask * grouped.clicks[:, :1]
        sums = np.stack([grouped.sum_by_group(c) for c in (clicks, at_first)], axis=1)
        return Evidence("dual learning", sums, log_ratio, grouped.impressions, grouped.unclicked)


def train_pair(
    log: ClickLog,
    dataset: Dataset,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> TrainedPair:
    """Train both on 70% of the queries, and hold out the others."""
    queries = len(np.unique(log.lists.queries))
    if queries < FEWEST_QUERIES:
        raise DataError(
            f"the log has {queries} queries; rankers are compared from {FEWEST_QUERIES} on"
        )
    rest, held_out = hold_out(log, HELD_OUT, seed)
    assert held_out is not None
    settings = TrainingSettings(steps=STEPS, seed=seed)
    naive, dual, imitated = (
        fit(
            rest,
            dataset,
            method=method,
            ranker=RANKER,
            validation=0.0,
            settings=settings,
            progress=part_of(progress, number, 3),
        ).predict(dataset)
        for number, method in enumerate(("naive", "dla", "imitation"))
    )
    return TrainedPair(naive, dual, held_out, settings.max_weight, seed, imitated)
