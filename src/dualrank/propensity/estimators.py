"""Every way to estimate examination from clicks alone, by name.

Those that need features too, and train something, are in `learning.estimates`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from dualrank.data.click_log import ClickLog
from dualrank.data.shards.sharded_log import ShardedLog
from dualrank.errors import DataError, SettingsError
from dualrank.propensity.bootstrap import RESAMPLES, Evidence, with_intervals
from dualrank.propensity.click_through import click_through
from dualrank.propensity.grouped_clicks import GroupedClicks
from dualrank.propensity.grouped_parts import Grouped, GroupedParts, grouped_clicks
from dualrank.propensity.harvesting import harvest
from dualrank.propensity.pair_swaps import pair_swaps
from dualrank.propensity.pbm_examination import position_based_model
from dualrank.propensity.propensity import Propensity
from dualrank.propensity.randomisation import position_memory, shuffled

# Beyond this share of a position explained by the document, lists were not shuffled.
SHUFFLED_BELOW = 0.05

Estimator = Callable[..., Evidence]
"""From counted clicks (`GroupedClicks`; of a log in shards, `GroupedParts`) to evidence."""

ESTIMATORS: dict[str, Estimator] = {
    "click-through": click_through,
    "randomisation": shuffled,
    "pair-swaps": pair_swaps,
    "harvest-pivot": partial(harvest, way="pivot"),
    "harvest-adjacent": partial(harvest, way="adjacent"),
    "harvest-all-pairs": partial(harvest, way="all-pairs"),
    "pbm": position_based_model,
}


def estimate(
    log: ClickLog | ShardedLog | Grouped,
    method: str | Estimator,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Propensity:
    """Examination by one method, with 95% intervals and the support of each position.

    `method` is one of `ESTIMATORS`, or a function of your own from counted clicks to `Evidence`;
    one that needs more than clicks gets it by `functools.partial`. A log that is counted already
    (`GroupedClicks.of`) is not counted again. A log in shards is counted one shard after the other,
    by functions that ask for sums (`grouped.total`). Where the log does not determine even the
    second position, the error says why.
    """
    if isinstance(method, str):
        if method not in ESTIMATORS:
            raise SettingsError(
                f"there is no estimator {method!r}; there are {', '.join(ESTIMATORS)}"
            )
        method = ESTIMATORS[method]
    grouped: Grouped
    if isinstance(log, GroupedClicks | GroupedParts):
        grouped = log
    else:
        grouped = grouped_clicks(log, seed=seed)
    return with_intervals(method(grouped), grouped, resamples=resamples, seed=seed)


def require_shuffled(grouped: Grouped) -> None:
    """Stop where the log shows that its lists were not shuffled, or cannot show that they were."""
    memory = position_memory(grouped)
    if np.isnan(memory):
        raise DataError(
            "no query–document pair was seen twice beside others, so that the log cannot show "
            "that its lists were shuffled"
        )
    if memory > SHUFFLED_BELOW:
        raise DataError(f"lists were not shuffled: the document tells {memory:.0%} of its position")
