"""From sums over a log to a curve with intervals, by resampling groups of the log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from dualrank.certainty import LEVEL
from dualrank.errors import DataError
from dualrank.propensity.grouped_parts import Grouped
from dualrank.propensity.propensity import Propensity

RESAMPLES = 400
MOST_NUMBERS = 1 << 24
"""Of statistics that are held at once while resamples are summed."""

# Sums over groups, `[…, *statistic]`, to log examination, `[…, positions]`; nan where the sums do
# not determine it, −inf where no click was seen.
LogCurve = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What an estimator found in a log: statistics per group, and what stands behind them.

    `support` counts the observations behind each position; `missing(k)` says in words why
    position k (from 0) is not determined.
    """

    method: str
    statistics: NDArray[np.float64]
    log_curve: LogCurve
    support: NDArray[np.int64]
    missing: Callable[[int], str]


def with_intervals(
    evidence: Evidence,
    grouped: Grouped,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Propensity:
    """The curve of the whole log, and its 95% interval from resampled groups.

    The interval is that of a normal distribution on the logarithmic scale, with the standard
    deviation over resamples (groups drawn with replacement) and Student's quantile for the number
    of groups:

        log ê_k ± t(0.975, groups − 1) · sd_b(log ê_k^(b))

    A curve ends before the first position that the log does not determine; `details["ends"]` then
    says why.
    """
    total = evidence.statistics.sum(axis=0)
    curve = evidence.log_curve(total[None])[0]
    with np.errstate(invalid="ignore"):
        curve = curve - curve[0]
    unknown = np.flatnonzero(~np.isfinite(curve))
    depth = int(unknown[0]) if len(unknown) else len(curve)
    reason = evidence.missing(depth) if depth < len(curve) else None
    if depth < 2:
        raise DataError(reason or "the lists show one position only")
    groups = len(evidence.statistics)
    details: dict[str, Any] = {"intervals_over": grouped.over, "groups": groups}
    if reason is not None:
        details["ends"] = reason
    examination = np.exp(curve[:depth])
    low = high = None
    if resamples and groups > 1:
        curves = resampled_curves(evidence, resamples, seed)
        spread = spread_of(curves)[:depth] * student.ppf(1 - LEVEL / 2, groups - 1)
        with np.errstate(over="ignore"):  # beyond all numbers is unbounded
            low, high = examination * np.exp(-spread), examination * np.exp(spread)
    return Propensity(
        examination,
        evidence.method,
        grouped.session_count,
        low,
        high,
        details,
        evidence.support[:depth],
    )


def log_ratio(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """The log curve of two rows of sums, `[…, 2, positions]`: the logarithm of their ratio."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: NDArray[np.float64] = np.log(sums[..., 0, :]) - np.log(sums[..., 1, :])
    return ratio


def resampled_sums(
    statistics: NDArray[np.float64], resamples: int = RESAMPLES, seed: int = 0
) -> NDArray[np.float64]:
    """Statistics per group, `[groups, …]`, summed over groups drawn with replacement."""
    return _weighted(_draws(len(statistics), resamples, seed), statistics)


def resampled_curves(
    evidence: Evidence, resamples: int = RESAMPLES, seed: int = 0
) -> NDArray[np.float64]:
    """The curves of `resampled_sums`, of some at a time: long lists have large statistics."""
    statistics = evidence.statistics
    draws = _draws(len(statistics), resamples, seed)
    at_once = max(1, MOST_NUMBERS // statistics[0].size)
    parts = (draws[start : start + at_once] for start in range(0, resamples, at_once))
    return np.concatenate([evidence.log_curve(_weighted(part, statistics)) for part in parts])


def _draws(groups: int, resamples: int, seed: int) -> NDArray[np.int64]:
    """How often every group is in every resample."""
    rng = np.random.default_rng([seed, 0x_B007])
    return rng.multinomial(groups, np.full(groups, 1 / groups), size=resamples)


def _weighted(weights: NDArray[np.int64], statistics: NDArray[np.float64]) -> NDArray[np.float64]:
    sums: NDArray[np.float64] = weights @ statistics.reshape(len(statistics), -1)
    return sums.reshape(len(weights), *statistics.shape[1:])


def spread_of(curves: NDArray[np.float64]) -> NDArray[np.float64]:
    """The standard deviation of log curves, relative to the first position, over resamples.

    Where a position has so few clicks that a resample may have none, those resamples say nothing
    finite; the rest understate the spread, so that it is taken as unbounded beyond one in twenty.
    """
    with np.errstate(invalid="ignore"):
        curves = curves - curves[:, :1]
    finite = np.isfinite(curves)
    many = finite.mean(axis=0) >= 0.95
    spread = np.full(curves.shape[1], np.inf)
    spread[many] = [curves[finite[:, k], k].std(ddof=1) for k in np.flatnonzero(many)]
    return spread
