"""Two quick rankers on the same clicks: one that believes them, one with dual learning.

They are small and trained briefly, on part of the queries. What they are for is not ranking but the
comparison on the other queries: a correction that this log supports shows there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.errors import DataError
from dualrank.evaluation.click_check import ClickCheck, Lead
from dualrank.learning.fit import fit
from dualrank.propensity.bootstrap import Evidence, log_ratio
from dualrank.propensity.grouped_clicks import GroupedClicks
from dualrank.rankers.network import DNN
from dualrank.settings import TrainingSettings

RANKER = DNN(hidden=(64, 32))
STEPS = 1_500
HELD_OUT = 0.3
FEWEST_QUERIES = 10


@dataclass(frozen=True, eq=False)
class Twins:
    """Scores of all documents by both rankers, and how they predict held-out clicks."""

    naive: NDArray[np.float32]
    dual: NDArray[np.float32]
    lead: Lead
    training: NDArray[np.int64]
    """The lists that they were trained on; the others were held out."""
    max_weight: float

    def examination(self, grouped: GroupedClicks) -> Evidence:
        """Where the propensity model of dual learning comes to rest, given the scores.

        The slope of l̂_IRW in φ is zero where every position has its share of the clicks weighted
        by inverse relevance,

            P(o_k)/P(o_1) = Σ c_k P(r_1)/P(r_k) / Σ c_1,      P(r_1)/P(r_k) = e^{f(x_1) − f(x_k)},

        over the lists that show k documents. Intervals take the ranker as given: they do not hold
        what another training, or another network, would have learned.
        """
        scores = grouped.lists.gather(self.dual)[grouped.list_of]
        inverse = np.exp(np.minimum(scores[:, :1] - scores, np.log(self.max_weight)))
        clicks = grouped.clicks * inverse * grouped.mask
        at_first = grouped.mask * grouped.clicks[:, :1]
        sums = np.stack([grouped.sum_by_group(c) for c in (clicks, at_first)], axis=1)

        def missing(k: int) -> str:
            return f"position {k + 1} was never clicked in {grouped.impressions[k]} sessions"

        return Evidence("dual learning", sums, log_ratio, grouped.impressions, missing)


def train_twins(
    log: ClickLog,
    dataset: Dataset,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Twins:
    """Train both on 70% of the queries, and compare them on the others."""
    queries = np.unique(log.lists.queries)
    if len(queries) < FEWEST_QUERIES:
        raise DataError(
            f"the log has {len(queries)} queries; rankers are compared from {FEWEST_QUERIES} on"
        )
    rng = np.random.default_rng([seed, 0x_7919])
    chosen = rng.choice(queries, round(HELD_OUT * len(queries)), replace=False)
    held = np.isin(log.lists.queries, chosen)
    training = np.flatnonzero(~held)
    check = ClickCheck(log.take_lists(np.flatnonzero(held)), seed)
    train_log = log.take_lists(training)
    settings = TrainingSettings(steps=STEPS, seed=seed)
    methods = ("naive", "dla")
    scores = []
    for number, method in enumerate(methods):

        def report(done: int, total: int, before: int = number) -> None:
            if progress:
                progress(before * total + done, len(methods) * total)

        model = fit(
            train_log,
            dataset,
            method=method,
            ranker=RANKER,
            validation=0.0,
            settings=settings,
            progress=report,
        )
        scores.append(model.predict(dataset))
    naive, dual = scores
    return Twins(naive, dual, check.lead(dual, naive), training, settings.max_weight)
