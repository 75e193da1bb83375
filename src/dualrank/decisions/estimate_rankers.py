"""`estimate`: what a new ranker would have earned on the logged queries, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from dualrank.clicks.models.counting import require_countable, require_skips
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.inputs import log_and_dataset
from dualrank.data.log.log_options import CLICK
from dualrank.decisions.counterfactual import Counterfactual
from dualrank.decisions.curve_choice import choose_curve, require_known
from dualrank.decisions.estimating import FEWEST_QUERIES, RESAMPLES, Progress, Work
from dualrank.decisions.given_rankings import LOGGED, ranked_queries, scores_of, unseen_queries
from dualrank.errors import DataError, SettingsError
from dualrank.learning.event_values import event_weights
from dualrank.progress import shows_progress
from dualrank.propensity.propensity import Propensity


@shows_progress("estimating what the ranker would earn")
def estimate(
    log: ClickLog | Any,
    model: Any,
    features: Dataset | Any,
    *,
    against: Any = LOGGED,
    propensity: Propensity | str | Path | None = None,
    events: Mapping[str, float] | None = None,
    only_displayed: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
    progress: Progress | None = None,
) -> Counterfactual:
    """What `model` would have earned on the queries of a log, compared with what `against` would.

    Both are models, their directories, run files of any engine, or scores of all documents;
    `against` may be "logged": what the log displayed. `propensity` is a curve, a file of one,
    "harvested" from documents that the log shows at several positions, or "dla", the one that the
    model learned (or that is learned for the purpose); without it the log decides. `events` weigh
    kinds of events beside clicks. With `only_displayed` a ranking orders those documents alone that
    the log displayed for the query, as a re-ranker does.

    Intervals are over queries. See `decisions.estimates_of_value` for the estimators.

    >>> import dualrank as dr
    >>> data = dr.generate_splits("tiny")
    >>> lists = dr.top_lists(data.train, data.train.features[:, 0])
    >>> log = dr.sample_log(data.train, lists, dr.PositionBasedUser(), 20_000)
    >>> new = data.train.features[:, 0] + data.train.features[:, 1]  # scores of a new ranker
    >>> curve = dr.Propensity(dr.PositionBasedUser().examination(10), method="known")
    >>> answer = dr.estimate(log, new, data.train, propensity=curve, resamples=100)
    >>> lead = answer.estimates[0]
    >>> lead.metric, lead.low < lead.difference < lead.high
    ('clicks', True)
    """
    weights = event_weights(events)
    if resamples < 2:
        raise SettingsError(f"resamples={resamples}: an interval needs two or more")
    require_known(propensity)
    log, dataset = log_and_dataset(log, features)
    assert dataset is not None
    _check(log, dataset)
    new = scores_of(model, dataset, "the new ranking")
    if new.scores is None:
        raise SettingsError("the new ranking is what was logged: there is nothing to estimate")
    old = scores_of(against, dataset, "the old ranking")
    if new.name == old.name:
        old = replace(old, name=f"{old.name} (old)")
    log, notes = unseen_queries(log, dataset, (new, old))
    log, left_out = ranked_queries(log, dataset, (new, old))
    log = log.take_lists(np.flatnonzero(log.sessions_per_list))
    _check_queries(log, weights)
    curve = choose_curve(propensity, log, dataset, new.model, seed, progress)
    work = Work(log, dataset, new, old, curve, weights, only_displayed, seed, (*notes, *left_out))
    # Thousands of small products, which threads on busy cores make several times slower.
    with threadpool_limits(1, "blas"):
        return work.result(resamples, progress)


def _check(log: ClickLog, dataset: Dataset) -> None:
    require_countable(log)
    require_skips(log)
    if log.lists.documents.max(initial=-1) >= dataset.document_count:
        raise DataError(
            f"the log shows documents that {dataset.source} does not have; give the features of "
            "all that was displayed"
        )
    if not log.clicks.any():
        raise DataError(f"none of the {log.sessions} sessions has a click: nothing can be told")


def _check_queries(log: ClickLog, weights: Mapping[str, float] | None) -> None:
    """Refuse a log in which what counts happened on too few queries."""
    kinds = [kind for kind, weight in (weights or {CLICK: 1.0}).items() if weight]
    happened = np.zeros(len(log.clicks), dtype=bool)
    for kind in kinds:
        happened |= (log.clicks if kind == CLICK else log.event(kind)).any(axis=1)
    queries = len(np.unique(log.lists.queries[log.list_of[happened]]))
    if queries < FEWEST_QUERIES:
        what = "clicks" if kinds == [CLICK] else f"events ({', '.join(kinds)})"
        raise DataError(
            f"there are {what} on {queries} queries to judge by; intervals over queries need "
            f"{FEWEST_QUERIES} at least"
        )
