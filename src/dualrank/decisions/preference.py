"""Which arm users prefer, from what their clicks counted: estimate, tests, interval, verdict.

The value of a session is what its clicks counted for one arm, less what they counted for the other.
Its mean over sessions is the preference: above zero the first arm is ahead.

Sessions are what is drawn anew for every user, so that the interval, and with it the decision, is
about sessions: about the traffic that was logged. Whether it would hold on *other queries* is told
by a second interval in which queries are what is drawn, each with all of its sessions; its
variance, Σ_q (Σ_{i ∈ q} (x_i − mean))², is never taken for less than that of sessions. Where
queries differ in their preference it falls with the number of queries, and more sessions of the
same ones do not help.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dualrank.certainty import LEVEL
from dualrank.decisions.always_valid import TIGHTEST, always_valid_radius
from dualrank.decisions.interleaving_log import InterleavedLog
from dualrank.decisions.planned_looks import boundaries, looks_taken
from dualrank.decisions.preference_card import comparison_card, draw_preferences
from dualrank.errors import SettingsError
from dualrank.evaluation.significance import fisher_test
from dualrank.showing.interval_rows import axes_of_rows
from dualrank.showing.visible import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST = 50
"""Sessions that prefer somebody, below which there is no interval: means are not yet normal."""
LEAST_QUERIES = 30
"""Equally frequent queries, or as many as theirs count for, that can speak of others."""
MOST_MORE = 1_000_000_000
"""No experiment has so many sessions."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Wins:
    """How many prefer the first arm, the second, and neither; `p_value` is of the sign test.

    It is None where documents count differently.
    """

    first: int
    second: int
    ties: int
    p_value: float | None


@dataclass(frozen=True)
class Look:
    """What was known at the end of a day: the mean over all sessions until then.

    `low` and `high` are None while too little is known for an interval.
    """

    day: str | None
    sessions: int
    mean: float
    low: float | None = None
    high: float | None = None

    @property
    def ahead(self) -> int:
        """1 where the interval says that the first arm is ahead, -1 the second, 0 neither."""
        if self.low is None or self.high is None:
            return 0
        return int(self.low > 0) - int(self.high < 0)


@dataclass(frozen=True)
class Preference:
    """The preference between two arms.

    `better` is the arm that the interval named, on the day of `decided_on`, or None. `level` is
    how often the interval may be wrong, on any of its looks. With `beyond_queries` the decision is
    about queries as such, and not about those of the log alone: the interval over queries, from
    `low_over_queries` to `high_over_queries` (None where there are too few), named the same arm.

    `by_session` is None where documents count differently: that random clicks count as much for
    either arm on average does not make both as likely to win then. `permutation_p` is of Fisher's
    randomisation test over queries. `more_sessions` is about how many would decide if the
    preference stays as it is: None if that is more than anybody has.
    """

    first: str
    second: str
    sessions: int
    mean: float
    deviation: float
    low: float | None
    high: float | None
    level: float
    better: str | None
    decided_on: str | None
    more_sessions: int | None
    by_session: Wins | None
    by_query: Wins
    permutation_p: float
    permutations: int
    beyond_queries: bool
    low_over_queries: float | None
    high_over_queries: float | None
    looks: tuple[Look, ...]


@dataclass(frozen=True)
class Comparison:
    """Every pair of arms of an interleaved log; `until` is where its end was planned."""

    arms: tuple[str, ...]
    sessions: int
    queries: int
    pairs: tuple[Preference, ...]
    until: int | None = None
    graded: bool = False
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Comparison({one_line(' '.join(self.verdict), 200)})"

    def _repr_html_(self) -> str:
        """A card for notebooks: the verdict, and the preference of every pair of arms."""
        return comparison_card(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the preference of every pair with its interval: right of zero for the first arm.

        The intervals hold whenever one looks; a pair with too few sessions has none yet, and stands
        as refused. Needs matplotlib.
        """
        ax = axes_of_rows(ax, len(self.pairs))
        draw_preferences(ax, self)
        return ax

    @property
    def verdict(self) -> list[str]:
        """Which arm is better, how sure that is, or what would tell; in sentences."""
        from dualrank.decisions.preference_words import verdict

        return verdict(self)

    @property
    def unit(self) -> str:
        """What a preference is counted in."""
        return "credit" if self.graded else "clicks"

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON holds it."""
        return asdict(self)


def compare(
    log: InterleavedLog,
    *,
    until: int | None = None,
    permutations: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Compare the arms of an interleaved log, pair by pair, the level shared among the pairs.

    Without `until` intervals hold on every day for ever; with it they hold on every day of an
    experiment of so many sessions, and are narrower at its end.
    """
    if until is not None and until < LEAST:
        raise SettingsError(f"until is a number of sessions, {LEAST} or more, not {until}")
    if permutations < 1:
        raise SettingsError(f"permutations is 1 or more, not {permutations}")
    pairs = list(combinations(range(len(log.arms)), 2))
    level = LEVEL / len(pairs)
    found = [_preference(log, one, other, level, until, permutations, seed) for one, other in pairs]
    return Comparison(
        log.arms,
        log.sessions,
        len(np.unique(log.query_of)),
        tuple(found),
        until,
        log.graded,
        log.notes,
    )


def _preference(
    log: InterleavedLog,
    one: int,
    other: int,
    level: float,
    until: int | None,
    permutations: int,
    seed: int,
) -> Preference:
    values = log.credits[:, one] - log.credits[:, other]
    # Credits are sums of fractions: what is equal differs in the last bits.
    values = np.where(np.abs(values) < 1e-12, 0.0, values)
    sums = _sums(log.query_of, values * log.counts)[np.unique(log.query_of)]
    test = fisher_test(sums, np.zeros(len(sums)), permutations=permutations, seed=seed)
    days = looks_by_day(values, log.counts, log.day_of, log.query_of)
    looks = with_intervals(days, level, until)
    wider = with_intervals(days.over_queries(), level, until)
    last = looks[-1]
    decided = next((look for look in looks if look.ahead), None)
    arms = log.arms[one], log.arms[other]
    better = None if decided is None else arms[0 if decided.ahead > 0 else 1]
    deviation = float(days.deviation[-1])
    more = None
    if better is not None:
        more = 0
    elif until is not None:
        more = max(until - log.sessions, 0)
    else:
        more = sessions_missing(float(days.mean[-1]), deviation, log.sessions, level)
    return Preference(
        *arms,
        log.sessions,
        float(days.mean[-1]),
        deviation,
        last.low,
        last.high,
        level,
        better,
        None if decided is None else decided.day,
        more,
        None if log.graded else sign_test(values, log.counts),
        replace(sign_test(sums), p_value=None) if log.graded else sign_test(sums),
        test.p_value,
        test.permutations,
        any(look.ahead * _sign(decided) > 0 for look in wider),
        wider[-1].low,
        wider[-1].high,
        looks,
    )


def _sign(look: Look | None) -> int:
    return 0 if look is None else look.ahead


@dataclass(frozen=True, eq=False)
class Days:
    """Of all sessions until the end of each day: how many, how many decided, mean, deviation.

    `clustered` is the deviation where queries, of which there are as good as `queries` equally
    frequent ones, are what is drawn.
    """

    names: Sequence[str | None]
    sessions: Floats
    decided: Floats
    mean: Floats
    deviation: Floats
    clustered: Floats
    queries: Floats

    def over_queries(self) -> Days:
        """The same as an interval over queries knows it."""
        enough = self.queries >= LEAST_QUERIES
        return replace(self, decided=np.where(enough, self.decided, 0.0), deviation=self.clustered)


def looks_by_day(
    values: Floats,
    counts: NDArray[np.int64],
    day_of: NDArray[np.int64],
    query_of: NDArray[np.int64],
) -> Days:
    """What the end of every day knows; sessions without a day are known from the start."""
    days, index = np.unique(day_of, return_inverse=True)
    n, decided, total, squares = (
        np.cumsum(_sums(index, each * counts))
        for each in (np.ones_like(values), values != 0, values, values**2)
    )
    mean = total / n
    variance = np.maximum(squares - n * mean**2, 0.0) / np.maximum(n - 1, 1)
    per_query = np.zeros((2, int(query_of.max(initial=0)) + 1))
    clustered, queries = np.empty((2, len(days)))
    order = np.argsort(index, kind="stable")
    parts = np.split(order, np.searchsorted(index[order], np.arange(1, len(days))))
    for day, rows in enumerate(parts):
        for known, each in zip(per_query, (counts, counts * values), strict=True):
            np.add.at(known, query_of[rows], each[rows])
        sessions, sums = per_query
        queries[day] = n[day] ** 2 / (sessions**2).sum()
        clustered[day] = ((sums - sessions * mean[day]) ** 2).sum() / n[day]
    clustered *= queries / np.maximum(queries - 1, 1)
    return Days(
        [_written(day) for day in days.tolist()],
        n,
        decided,
        mean,
        np.sqrt(variance),
        np.sqrt(np.maximum(clustered, variance)),
        queries,
    )


def with_intervals(days: Days, level: float, until: int | None) -> tuple[Look, ...]:
    """Looks at the ends of days, each with an interval that holds on all of them together."""
    enough = days.decided >= LEAST
    radius = np.full(len(days.mean), np.inf)
    if until is None:
        n, deviation = days.sessions[enough], days.deviation[enough]
        radius[enough] = always_valid_radius(n, deviation, level, TIGHTEST)
    else:
        there = np.flatnonzero(enough)
        taken = there[looks_taken(days.sessions[there] / until)]
        errors = boundaries(days.sessions[taken] / until, level)
        radius[taken] = errors * days.deviation[taken] / np.sqrt(days.sessions[taken])
        # Days between looks, and after the end, know what the last look before them knew.
        last = np.maximum.accumulate(np.where(np.isfinite(radius), np.arange(len(radius)), -1))
        days = replace(days, mean=np.where(last >= 0, days.mean[last], days.mean))
        radius = np.where(last >= 0, radius[last], np.inf)
    return tuple(
        Look(
            name,
            int(sessions),
            mean,
            mean - reach if math.isfinite(reach) else None,
            mean + reach if math.isfinite(reach) else None,
        )
        for name, sessions, mean, reach in zip(
            days.names,
            days.sessions.tolist(),
            days.mean.tolist(),
            radius.tolist(),
            strict=True,
        )
    )


def per_query(log: InterleavedLog) -> pa.Table:
    """What the clicks of every query counted for each arm: query_id, sessions, arm, credit."""
    sessions = np.bincount(log.query_of, log.counts, len(log.queries)).astype(np.int64)
    there = np.flatnonzero(sessions)
    parts = []
    for number, arm in enumerate(log.arms):
        credit = np.bincount(log.query_of, log.credits[:, number] * log.counts, len(log.queries))
        parts.append(
            pa.table(
                {
                    "query_id": pa.array(log.queries[there], pa.string()),
                    "sessions": sessions[there],
                    "arm": pa.array([arm] * len(there), pa.string()),
                    "credit": credit[there],
                }
            )
        )
    return pa.concat_tables(parts)


def sign_test(values: Floats, counts: NDArray[np.int64] | None = None) -> Wins:
    """Count who is ahead, and ask how likely chance is as lopsided, two-sided.

    What was seen counts half in the tail (Lancaster's mid-p): an exact test of few would be wrong
    less often than its level says, and find less.

    >>> sign_test(np.array([2.0, 1.0, 0.5, -1.0, 0.0]))
    Wins(first=3, second=1, ties=1, p_value=0.375)
    """
    from scipy.stats import binom

    weights = np.ones(len(values), np.int64) if counts is None else counts
    ahead, behind = int(weights[values > 0].sum()), int(weights[values < 0].sum())
    decided, fewer = ahead + behind, min(ahead, behind)
    tail = 2 * binom.cdf(fewer - 1, decided, 0.5) + binom.pmf(fewer, decided, 0.5)
    return Wins(ahead, behind, int(weights.sum()) - decided, min(float(tail), 1.0))


def sessions_missing(mean: float, deviation: float, sessions: int, level: float) -> int | None:
    """About how many more sessions the always-valid interval needs to exclude zero.

    If the true preference is what was seen, so many decide five times in six: the preference has
    to reach the interval's half-width and one standard error.

    >>> sessions_missing(0.05, 0.6, 1_000, 0.05)
    1600
    """
    if mean == 0 or deviation == 0:
        return None

    def short(total: float) -> bool:
        reach = float(always_valid_radius(total, deviation, level)) + deviation / math.sqrt(total)
        return abs(mean) < reach

    low, high = math.log(max(sessions, LEAST)), math.log(MOST_MORE)
    if short(MOST_MORE):
        return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if short(math.exp(middle)) else (low, middle)
    return max(round(math.exp(high)) - sessions, 1)


def _sums(index: NDArray[np.integer], values: NDArray[Any]) -> Floats:
    return np.bincount(index, values).astype(np.float64)


def _written(day: int) -> str | None:
    """A day since 1970 as it is written; None where it is not known."""
    try:
        return None if day < 0 else (date(1970, 1, 1) + timedelta(days=day)).isoformat()
    except OverflowError:
        return None
