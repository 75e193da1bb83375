"""What sessions are worth when users do more than click: Σ_k w_k · amount_k at every position.

Kinds k are `click` and the further `events` of a log; the weights are the user's. A weight says
how many clicks a purchase is worth, or a second spent reading.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog
from dualrank.data.log.log_options import CLICK
from dualrank.errors import DataError, SettingsError


def event_weights(given: Mapping[str, float] | None) -> dict[str, float] | None:
    """Weights by kind, checked: a click weighs 1 unless it is among them.

    None where clicks alone count, whatever they weigh.

    >>> event_weights({"purchase": 5})
    {'click': 1.0, 'purchase': 5.0}
    >>> event_weights({"click": 2})
    """
    if given is None:
        return None
    weights = {CLICK: 1.0}
    for kind, weight in given.items():
        try:
            weights[kind] = float(weight)
        except (TypeError, ValueError):
            weights[kind] = np.nan
        if not 0 <= weights[kind] < np.inf:
            raise SettingsError(
                f"the event {kind!r} weighs {weight!r}; expected a number of 0 or more"
            )
    if not any(weights.values()):
        raise SettingsError(
            f"nothing has a weight above 0 among the events {', '.join(weights)}, which leaves "
            "nothing to learn; give one a weight"
        )
    counted = {kind: weight for kind, weight in weights.items() if weight or kind == CLICK}
    return counted if len(counted) > 1 else None


def values_by_row(log: ClickLog, weights: Mapping[str, float]) -> NDArray[np.float64]:
    """The value at every position, summed over the sessions of each row of the log.

    It is given on the scale of clicks, as if all of it added up to as many as there are: a loss
    that is fit for clicks would take seconds for very long steps.
    """
    clicks = log.clicks * log.counts[:, None]
    values: NDArray[np.float64] = weights.get(CLICK, 0.0) * clicks.astype(np.float64)
    for kind, weight in weights.items():
        if kind != CLICK:
            values = values + weight * log.event(kind)
    total = float(values.sum())
    if total == 0:
        named = " or ".join(kind for kind, weight in weights.items() if weight)
        raise DataError(
            f"none of the {log.sessions} sessions has a {named}: there is nothing to learn from, "
            "or to judge rankers by"
        )
    values *= max(int(clicks.sum()), 1) / total
    return values


def values_by_list(log: ClickLog, weights: Mapping[str, float]) -> NDArray[np.float64]:
    """The value at every position, summed over the sessions of each list."""
    values = values_by_row(log, weights)
    return np.stack([np.bincount(log.list_of, v, len(log.lists)) for v in values.T], axis=1)
