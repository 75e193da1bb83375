"""Likelihood as an estimator of examination: φ from clicks that the ranker has not seen.

A ranker that has learned the clicks of a list explains them too well, and leaves too little to
position. So the queries are split in two, a ranker is trained on each half, and φ is fitted to the
clicks of either half beside the scores of the other half's ranker,

    P(k | a click) = softmax_k(w f(x_k) + φ_k)

over all clicks at once. Intervals are those of the fit, with the spread of queries (sandwich): they
hold the noise of queries and clicks, but not what the features miss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dualrank.certainty import NORMAL_95
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.errors import DataError
from dualrank.evaluation.click_logit import ClickLogit
from dualrank.learning.combination import HeldOut
from dualrank.learning.logging_scores import Ground
from dualrank.learning.loop import part_of
from dualrank.learning.plan import Plan
from dualrank.learning.train_one import train_one
from dualrank.learning.whole_source import WholeSource
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.network import DNN
from dualrank.rankers.ranker import RankerSettings
from dualrank.settings import TrainingSettings

HELD_OUT = 0.1
"""The share of each half whose clicks say when to stop."""
FEWEST_QUERIES = 20


def estimate_by_likelihood(
    log: ClickLog,
    dataset: Dataset,
    method: str = "likelihood",
    *,
    ranker: RankerSettings | None = None,
    settings: TrainingSettings | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Propensity:
    """The examination under which clicks are most likely, by `likelihood` or `grounded`."""
    plan = Plan(
        method=method,
        ranker=ranker or DNN(),
        settings=settings or TrainingSettings(),
        validation=HELD_OUT,
    )
    queries = np.unique(log.lists.queries)
    if len(queries) < FEWEST_QUERIES:
        raise DataError(f"it needs {FEWEST_QUERIES} queries at least, half of them to train on")
    clicks = log.clicks_per_list.astype(np.float64)
    if not clicks.any(axis=0).all():
        position = 1 + int(np.argmin(clicks.any(axis=0)))
        raise DataError(f"nobody clicked at position {position}, so that no curve has it")
    rng = np.random.default_rng([plan.settings.seed, 0x_11CE])
    half = np.isin(log.lists.queries, rng.permutation(queries)[: len(queries) // 2])
    grounded = plan.way.ground
    count = 2 if grounded is None else 3
    imitation = None
    if grounded is not None:
        # Orders cost no click, so that all of them may be known.
        first = part_of(progress, 0, count)
        whole = WholeSource.of(log, dataset, plan)
        imitation = train_one(whole, plan.for_method(grounded), progress=first)
    columns = np.zeros((*log.lists.documents.shape, 2))
    for number, judged in enumerate((half, ~half)):
        rest, part = (log.take_lists(np.flatnonzero(chosen)) for chosen in (~judged, judged))
        bar = part_of(progress, count - 2 + number, count)
        source = WholeSource.of(rest, dataset, plan)
        model = train_one(source, plan, ground=imitation, progress=bar)
        ground = None if imitation is None else Ground.of(imitation, rest.lists, dataset)
        scores = HeldOut(part, dataset, ground, reads=False).scores(model)
        columns[judged, :, number] = scores
    columns /= columns[log.lists.mask].std(axis=0).clip(min=1e-12)
    logit = ClickLogit(columns * log.lists.mask[:, :, None], clicks, log.lists.mask)
    at = logit.fit()
    spread = logit.errors(at, log.lists.queries)
    phi, error = at[2:] - at[2], NORMAL_95 * spread[2:]
    curve = np.exp(phi)
    shown = log.lists.mask[log.list_of]
    return replace(
        Propensity.of(curve, method=method),
        low=curve * np.exp(-error),
        high=curve * np.exp(error),
        sessions=log.sessions,
        support=(log.counts @ shown).astype(np.int64),
        details={"intervals_over": "queries"},
    )
