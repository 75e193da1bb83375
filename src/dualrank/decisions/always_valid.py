"""An interval that holds on every day at once: one may look whenever one likes, and stop.

The 95% interval of a usual test holds on the one day that was planned. Who looks every day and
stops when it excludes zero is wrong far more often than one time in twenty.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualrank.certainty import LEVEL

TIGHTEST = 10_000
"""Sessions at which the interval is as narrow as it can be; it must not depend on what is seen."""


def always_valid_radius(
    sessions: ArrayLike, deviation: ArrayLike, level: float = LEVEL, tightest: float = TIGHTEST
) -> NDArray[np.float64]:
    """How far the interval around the mean of `sessions` values reaches on either side.

    The asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas
    ("Time-uniform central limit theory and asymptotic confidence sequences", Annals of Statistics
    2024), which is Robbins' normal mixture with an estimated deviation σ:

        σ √( (t + r) / t² · log( (t + r) / (r α²) ) )

    over t sessions. With probability 1 − α it holds for all t together, once t is large enough for
    means to be normal. r makes it narrowest at t = `tightest`.

    >>> always_valid_radius([100, 10_000, 1_000_000], 1.0).round(3)
    array([0.908, 0.03 , 0.004])
    """
    t = np.asarray(sessions, dtype=np.float64)
    r = tightest / mixture(level)
    log = np.log((t + r) / r) - 2 * math.log(level)
    return np.asarray(np.asarray(deviation) * np.sqrt((t + r) * log) / t)


def mixture(level: float) -> float:
    """How many times r the sessions are at which the interval is narrowest.

    Waudby-Smith et al. give −2 log α + log(1 − 2 log α), nearly the minimum.
    """
    return -2 * math.log(level) + math.log(1 - 2 * math.log(level))
