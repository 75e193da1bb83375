"""Every way to estimate examination from a log, by name (but for dual learning, which trains)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.errors import DataError, SettingsError
from dualrank.propensity.bootstrap import RESAMPLES, Evidence, with_intervals
from dualrank.propensity.click_through import click_through
from dualrank.propensity.grouped_clicks import GroupedClicks
from dualrank.propensity.harvesting import harvest
from dualrank.propensity.pair_swaps import pair_swaps
from dualrank.propensity.pbm_examination import position_based_model
from dualrank.propensity.propensity import Propensity
from dualrank.propensity.randomisation import position_memory, shuffled
from dualrank.propensity.regression_em import regression_em
from dualrank.rankers.network import DNN, Linear

# Beyond this share of a position explained by the document, lists were not shuffled.
SHUFFLED_BELOW = 0.05

FROM_CLICKS: dict[str, Callable[[GroupedClicks], Evidence]] = {
    "click-through": click_through,
    "randomisation": shuffled,
    "pair-swaps": pair_swaps,
    "harvest-pivot": lambda grouped: harvest(grouped, "pivot"),
    "harvest-adjacent": lambda grouped: harvest(grouped, "adjacent"),
    "harvest-all-pairs": lambda grouped: harvest(grouped, "all-pairs"),
    "pbm": position_based_model,
}
FROM_FEATURES = ("regression-em",)
ESTIMATORS = (*FROM_CLICKS, *FROM_FEATURES)


def estimate(
    log: ClickLog | GroupedClicks,
    method: str,
    dataset: Dataset | None = None,
    *,
    ranker: DNN | Linear | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Propensity:
    """Examination by one method, with 95% intervals and the support of each position.

    `regression-em` takes the features of `dataset`, and a `ranker` as its regression (linear
    without one). A log that is counted already (`GroupedClicks.of`) is not counted again. Where the
    log does not determine even the second position, the error says why.
    """
    if method not in ESTIMATORS:
        raise SettingsError(f"there is no estimator {method!r}; there are {', '.join(ESTIMATORS)}")
    grouped = log if isinstance(log, GroupedClicks) else GroupedClicks.of(log, seed=seed)
    if method in FROM_CLICKS:
        evidence = FROM_CLICKS[method](grouped)
    elif dataset is None:
        raise DataError(f"{method} needs the features of the documents")
    else:
        evidence = regression_em(grouped, dataset, ranker, seed)
    return with_intervals(evidence, grouped, resamples=resamples, seed=seed)


def require_shuffled(grouped: GroupedClicks) -> None:
    """Stop where the log shows that its lists were not shuffled, or cannot show that they were."""
    memory = position_memory(grouped)
    if np.isnan(memory):
        raise DataError(
            "no query–document pair was seen twice, so that the log cannot show that its lists "
            "were shuffled"
        )
    if memory > SHUFFLED_BELOW:
        raise DataError(f"lists were not shuffled: the document tells {memory:.0%} of its position")
