"""How much queries differ in examination, as far as documents that moved by themselves tell.

An interval over queries says how a curve would differ had other queries been asked, one over
sessions how it would differ had other people asked the same ones. Where examination is the same for
all queries both are alike. Where it is not, the first is wider by a variance that more sessions of
the same queries do not take away.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from dualrank.certainty import LEVEL
from dualrank.data.click_log import ClickLog
from dualrank.errors import DataError
from dualrank.propensity.bootstrap import RESAMPLES
from dualrank.propensity.estimators import estimate
from dualrank.propensity.grouped_clicks import GroupedClicks
from dualrank.propensity.propensity import Propensity

ENOUGH_SESSIONS = 300_000
CLEARLY = 3.0
"""In standard errors of a variance, how much wider the interval over queries must be."""

Floats = NDArray[np.float64]


def between_queries(
    log: ClickLog, grouped: GroupedClicks, harvested: Propensity | str, depth: int
) -> Floats:
    """The part of the variance of every log ê_k that lies between queries.

    `harvested` is by all pairs, over the groups of `grouped`. Nothing where that is no curve, where
    groups are sessions, or where both intervals are as wide as luck makes them.
    """
    found = np.zeros(depth)
    if isinstance(harvested, str) or harvested.high is None or grouped.over == "sessions":
        return found
    part = _part(log)
    by_session = GroupedClicks.of(part, "sessions")
    try:
        same_queries = estimate(by_session, "harvest-all-pairs")
    except DataError:  # what a part of the sessions does not tell, all of them hardly do
        return found
    common = min(depth, harvested.depth, same_queries.depth)
    whole = _variances(harvested, grouped.group_count)[:common]
    # The variance of a part is greater by as much as the part is smaller.
    within = _variances(same_queries, by_session.group_count)[:common]
    within *= part.sessions / log.sessions
    known = np.isfinite(whole) & np.isfinite(within) & (within > 0)
    # Groups of unequal size count as fewer equal ones.
    sizes = np.bincount(grouped.group, grouped.sessions)
    groups = sizes.sum() ** 2 / (sizes**2).sum()
    luck = CLEARLY * np.sqrt(2 / max(groups - 1, 1) + 4 / RESAMPLES)
    # Of all positions together: the variance of a single one is hardly known.
    if known.any() and np.median(whole[known] / within[known]) > 1 + luck:
        found[:common][known] = np.maximum(whole - within, 0.0)[known]
    return found


def _part(log: ClickLog) -> ClickLog:
    """Not more sessions than it takes to see, drawn at random."""
    if log.sessions <= ENOUGH_SESSIONS:
        return log
    rng = np.random.default_rng(0x_BE7)
    counts = rng.binomial(log.counts, ENOUGH_SESSIONS / log.sessions)
    drawn = np.flatnonzero(counts)
    return replace(log.take_rows(drawn), counts=counts[drawn])


def _variances(curve: Propensity, groups: int) -> Floats:
    """Those behind the intervals, of the logarithms."""
    if curve.high is None:
        return np.full(curve.depth, np.nan)
    errors = student.ppf(1 - LEVEL / 2, groups - 1)
    variances: Floats = (np.log(curve.high / curve.examination) / errors) ** 2
    return variances
