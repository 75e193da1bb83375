"""What the lists of a round were worth to users: clicks as if all positions were examined alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dualrank.certainty import NORMAL_95
from dualrank.data.click_log import ClickLog
from dualrank.propensity.propensity import Propensity


@dataclass(frozen=True)
class Worth:
    """Corrected clicks a session, with a 95% interval over queries."""

    mean: float
    low: float | None = None
    high: float | None = None


def corrected_worth(log: ClickLog | None, curve: Propensity | None) -> Worth | None:
    """Σ_k c_k / e_k a session, where e is the curve; nothing where the curve is too short.

    It is a ratio of sums over queries, of which the error is that of its linearisation.
    """
    if log is None or curve is None or curve.depth < log.lists.depth:
        return None
    weights = curve.weights[: log.lists.depth]
    value = np.bincount(log.lists.queries, log.clicks_per_list @ weights)
    sessions = np.bincount(log.lists.queries, log.sessions_per_list)
    value, sessions = value[sessions > 0], sessions[sessions > 0]
    mean, queries = float(value.sum() / sessions.sum()), len(sessions)
    if queries < 2:
        return Worth(mean)
    error = (value - mean * sessions).std(ddof=1) * np.sqrt(queries) / sessions.sum()
    reach = NORMAL_95 * float(error)
    return Worth(mean, mean - reach, mean + reach)
