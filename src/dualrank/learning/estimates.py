"""Every estimate of examination that a log allows, and why it does not allow the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from dualrank.clicks.models.counting import require_skips
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.inputs import log_and_dataset
from dualrank.errors import DataError, SettingsError
from dualrank.learning.dual_estimate import check_refits, estimate_by_dual_learning
from dualrank.learning.likelihood_estimate import estimate_by_likelihood
from dualrank.learning.regression_em import estimate_by_regression_em
from dualrank.propensity.bootstrap import RESAMPLES
from dualrank.propensity.estimators import ESTIMATORS, Estimator, estimate, require_shuffled
from dualrank.propensity.grouped_clicks import GroupedClicks
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.ranker import RankerSettings
from dualrank.settings import TrainingSettings, settings_with

LIKELIHOODS = ("likelihood", "grounded")
TRAINED = ("regression-em", "dla", *LIKELIHOODS)
"""Estimators that train a ranker on the features of the documents."""
METHODS = (*ESTIMATORS, *TRAINED)
REFITS = 5


@dataclass(frozen=True)
class Estimates:
    """What was `found` by each method, and of the others the reason why not."""

    found: dict[str, Propensity] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def estimate_propensities(
    log: ClickLog | Any,
    dataset: Dataset | Any | None = None,
    *,
    methods: Sequence[str | Estimator] | None = None,
    ranker: RankerSettings | None = None,
    over: Literal["auto", "queries", "sessions"] = "auto",
    resamples: int = RESAMPLES,
    refits: int = REFITS,
    settings: TrainingSettings | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Estimates:
    """Estimate examination by every method, or by those that are named or given as functions.

    Whoever names `randomisation` says that the lists were shuffled; otherwise the log must show it.
    `ranker` is what regression-EM (by default linear), dual learning and likelihood (by default a
    network) score documents with. `settings` are for the latter, or given directly (`steps=500`);
    `refits` are for the intervals of dual learning. Log and features may be files or data frames.
    """
    settings = settings_with(settings or TrainingSettings(seed=seed), options)
    log, dataset = log_and_dataset(log, dataset)
    for method in methods or ():
        if isinstance(method, str) and method not in METHODS:
            raise SettingsError(f"there is no estimator {method!r}; there are {', '.join(METHODS)}")
    check_refits(refits)
    if log.lists.depth < 2:
        raise DataError("the lists show one position only; there is no examination to compare")
    require_skips(log)
    if dataset is not None:
        dataset = dataset.filled()
    grouped = GroupedClicks.of(log, over, seed)
    estimates = Estimates()

    def find(method: str | Estimator) -> Propensity:
        if not isinstance(method, str) or method in ESTIMATORS:
            if method == "randomisation" and methods is None:
                require_shuffled(grouped)
            return estimate(grouped, method, resamples=resamples, seed=seed)
        if dataset is None:
            raise DataError("it needs the features of the documents")
        if method == "regression-em":
            return estimate_by_regression_em(
                grouped, dataset, ranker=ranker, resamples=resamples, seed=seed
            )
        if method in LIKELIHOODS:
            return estimate_by_likelihood(
                log, dataset, str(method), ranker=ranker, settings=settings, progress=progress
            )
        return estimate_by_dual_learning(
            log, dataset, ranker=ranker, settings=settings, refits=refits, progress=progress
        )

    for method in METHODS if methods is None else dict.fromkeys(methods):
        name = method if isinstance(method, str) else getattr(method, "__name__", "own")
        try:
            estimates.found[name] = find(method)
        except DataError as error:
            estimates.refused[name] = str(error)
    return estimates
