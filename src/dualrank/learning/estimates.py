"""Every estimate of examination that a log allows, and why it does not allow the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.errors import DataError, SettingsError
from dualrank.learning.dual_estimate import check_refits, estimate_by_dual_learning
from dualrank.propensity.bootstrap import RESAMPLES
from dualrank.propensity.estimators import ESTIMATORS, Estimator, estimate, require_shuffled
from dualrank.propensity.grouped_clicks import GroupedClicks
from dualrank.propensity.propensity import Propensity
from dualrank.propensity.regression_em import regression_em
from dualrank.rankers.network import DNN, Linear
from dualrank.settings import TrainingSettings

# Each makes of counted clicks, features, a ranker and a seed what an estimator returns.
FROM_FEATURES = {"regression-em": regression_em}
NEED_FEATURES = (*FROM_FEATURES, "dla")
METHODS = (*ESTIMATORS, *NEED_FEATURES)
REFITS = 5


@dataclass(frozen=True)
class Estimates:
    """What was `found` by each method, and of the others the reason why not."""

    found: dict[str, Propensity] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def estimate_propensities(
    log: ClickLog,
    dataset: Dataset | None = None,
    *,
    methods: Sequence[str | Estimator] | None = None,
    ranker: DNN | Linear | None = None,
    over: Literal["auto", "queries", "sessions"] = "auto",
    resamples: int = RESAMPLES,
    refits: int = REFITS,
    settings: TrainingSettings | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Estimates:
    """Estimate examination by every method, or by those that are named or given as functions.

    Whoever names `randomisation` says that the lists were shuffled; otherwise the log must show it.
    `ranker` is what regression-EM (by default linear) and dual learning (by default a network)
    score documents with; `refits` and `settings` are for dual learning.
    """
    for method in methods or ():
        if isinstance(method, str) and method not in METHODS:
            raise SettingsError(f"there is no estimator {method!r}; there are {', '.join(METHODS)}")
    check_refits(refits)
    if log.lists.depth < 2:
        raise DataError("the lists show one position only; there is no examination to compare")
    grouped = GroupedClicks.of(log, over, seed)
    estimates = Estimates()
    for method in METHODS if methods is None else dict.fromkeys(methods):
        name = method if isinstance(method, str) else getattr(method, "__name__", "own")
        try:
            if method in NEED_FEATURES and dataset is None:
                raise DataError("it needs the features of the documents")
            if method == "randomisation" and methods is None:
                require_shuffled(grouped)
            if method == "dla" and dataset is not None:
                estimates.found[name] = estimate_by_dual_learning(
                    log,
                    dataset,
                    ranker=ranker,
                    settings=settings or TrainingSettings(seed=seed),
                    refits=refits,
                    progress=progress,
                )
                continue
            if name in FROM_FEATURES and dataset is not None:
                method = partial(FROM_FEATURES[name], dataset=dataset, ranker=ranker, seed=seed)
            estimates.found[name] = estimate(grouped, method, resamples=resamples, seed=seed)
        except DataError as error:
            estimates.refused[name] = str(error)
    return estimates
