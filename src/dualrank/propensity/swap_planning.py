"""How many swaps tell the examination curve, which, and for what price: read off a log alone.

A curve is known to a precision p where the 95% interval of every position, as `estimate` has it,
reaches no farther than log(1 + p) to either side of the logarithm:

    t(0.975, groups − 1) · √(variance of log ê_k) ≤ log(1 + p)

`swap_designs` has the variance after N sessions, from the click-through of the lists that the log
shows and a rough curve. The latter is the harvested one where that is known within a factor of two;
else the worst is assumed, for precision and for costs.

What moved by itself is not added to what swaps tell. But it shows how much queries differ, which no
number of sessions takes away (`between_queries`), and that is added to every variance.

Of exchanges with the first result every position gets as many as it needs. Along the chain of
neighbours the variances V_k/m_k of m_k exchanges add up, and the last position is known soonest
where m_k ∝ √V_k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import bisect
from scipy.stats import t as student

from dualrank.certainty import LEVEL
from dualrank.clicks.models.counting import require_skips
from dualrank.data.click_log import PERIOD, ClickLog
from dualrank.data.inputs import log_from
from dualrank.errors import DataError, SettingsError
from dualrank.propensity.between_queries import between_queries
from dualrank.propensity.estimators import estimate
from dualrank.propensity.grouped_clicks import GroupedClicks
from dualrank.propensity.propensity import Propensity
from dualrank.propensity.swap_designs import (
    Exchange,
    ExchangeEvidence,
    LoggedLists,
    exchange_costs,
    shuffle_cost,
    shuffle_variances,
)
from dualrank.propensity.swap_plan import DesignName, PlannedDesign, SwapPlan
from dualrank.propensity.swap_words import as_percent
from dualrank.sentences import counted

PRECISION, SHARE = 0.1, 0.05
FEWEST_CLICKS = 10
"""With fewer at a position, how many sessions it needs is hardly known."""
ROUGHLY = 2.0
"""A curve that may be wrong by more than this factor is no better than the worst."""
MOST_SESSIONS = 1e12

Floats = NDArray[np.float64]


def plan_swaps(
    log: ClickLog | Any,
    *,
    precision: float = PRECISION,
    share: float = SHARE,
    positions: int | None = None,
    seed: int = 0,
) -> SwapPlan:
    """Plan swaps that tell the examination curve to a relative precision at every position.

    `log` may also be a file or a data frame. `share` is the share of sessions that may show another
    order. `positions` are how many count from the top; without it, all that have clicks enough.
    """
    check_goal(precision, share, positions)
    log = log_from(log)
    require_skips(log)
    grouped = GroupedClicks.of(log, seed=seed)
    harvested: Propensity | str
    try:
        harvested = estimate(grouped, "harvest-all-pairs", seed=seed)
    except DataError as error:
        harvested = str(error)
    return plan_of(log, grouped, harvested, precision, share, positions)


def check_goal(precision: float, share: float, positions: int | None) -> None:
    """Refuse what nobody can want, before a log is read."""
    for name, value in (("precision", precision), ("share", share)):
        if not 0 < value < 1:
            raise SettingsError(
                f"the {name} is above 0% and below 100%, not {as_percent(value)}: 10% is 0.1"
            )
    if positions is not None and positions < 2:
        raise SettingsError(f"a plan is for 2 positions or more, not {positions}")


def plan_of(
    log: ClickLog,
    grouped: GroupedClicks,
    harvested: Propensity | str,
    precision: float = PRECISION,
    share: float = SHARE,
    positions: int | None = None,
    *,
    times: float = 1.0,
) -> SwapPlan:
    """The plan for a log that is counted and harvested already; see `plan_swaps`.

    Where the log is a sample, there are so many `times` its sessions.
    """
    depth, cut = _planned_depth(grouped, positions)
    lists = LoggedLists.of(grouped, depth)
    reached = _precision_of(harvested, depth)
    curve = lists.click_through()
    cost_curve = np.sqrt(curve)
    rough = reached < ROUGHLY - 1
    if rough and isinstance(harvested, Propensity):
        curve = cost_curve = harvested.examination[:depth]
    between = between_queries(log, grouped, harvested, depth)
    planner = _Planner(
        lists=lists,
        curve=curve,
        cost_curve=cost_curve,
        between=between,
        errors=float(student.ppf(1 - LEVEL / 2, grouped.group_count - 1)),
        precision=precision,
        share=share,
        clicks_per_session=float(grouped.clicks.sum() / grouped.sessions.sum()),
        sessions_per_day=None if (daily := sessions_per_day(log)) is None else times * daily,
    )
    return SwapPlan(
        precision=precision,
        share=share,
        curve=curve,
        curve_by="harvested" if rough else "the worst",
        known=reached,
        limit=planner.precision_of(between),
        sessions_logged=round(times * log.sessions),
        clicks_per_session=planner.clicks_per_session,
        sessions_per_day=planner.sessions_per_day,
        designs=(planner.first_with_k(), planner.neighbours(), planner.full_shuffles()),
        cut=cut,
    )


@dataclass(frozen=True, eq=False)
class _Planner:
    """What every design is planned from."""

    lists: LoggedLists
    curve: Floats
    cost_curve: Floats
    between: Floats
    errors: float
    precision: float
    share: float
    clicks_per_session: float
    sessions_per_day: float | None

    def first_with_k(self) -> PlannedDesign:
        """Every position is compared with the first."""
        exchanges = [(0, k) for k in range(1, len(self.curve))]
        evidence = ExchangeEvidence.of(self.lists, exchanges, self.curve)
        # What remains for chance beside what lies between queries.
        room = (np.log1p(self.precision) / self.errors) ** 2 - self.between[1:]
        needs = evidence.per_exchange() / np.maximum(room, room.max() / 1e3)
        return self._exchanges("first with k", "pair-swaps", exchanges, evidence, needs)

    def neighbours(self) -> PlannedDesign:
        """Every position is compared with the one above it."""
        exchanges = [(k, k + 1) for k in range(len(self.curve) - 1)]
        evidence = ExchangeEvidence.of(self.lists, exchanges, self.curve)
        needs = np.sqrt(evidence.per_exchange())
        return self._exchanges("neighbours", "harvest-adjacent", exchanges, evidence, needs)

    def full_shuffles(self) -> PlannedDesign:
        """Every position is seen on the same documents."""
        each = shuffle_variances(self.lists, self.curve) / self.share
        cost = self.share * shuffle_cost(self.lists, self.cost_curve)
        shares = {"all": self.share}
        return self._design("full shuffles", "randomisation", shares, lambda n: each / n, cost)

    def _exchanges(
        self,
        name: DesignName,
        method: str,
        exchanges: Sequence[Exchange],
        evidence: ExchangeEvidence,
        needs: Floats,
    ) -> PlannedDesign:
        known = np.isfinite(needs).all() and (needs > 0).all()
        shares = self.share * (
            needs / needs.sum() if known else np.full(len(needs), 1 / len(needs))
        )

        def variances(sessions: float) -> Floats:
            steps = evidence.variances(sessions, shares)
            return np.append(0.0, steps if name == "first with k" else np.cumsum(steps))

        cost = float(shares @ exchange_costs(self.lists, exchanges, self.cost_curve))
        named = {
            f"{i + 1}-{j + 1}": s for (i, j), s in zip(exchanges, shares.tolist(), strict=True)
        }
        return self._design(name, method, named, variances, cost)

    def _design(
        self,
        name: DesignName,
        method: str,
        shares: dict[str, float],
        variances: Callable[[float], Floats],
        cost: float,
    ) -> PlannedDesign:
        """For how long, and what it costs: `cost` is the clicks lost per session of traffic."""

        def after(sessions: float) -> float:
            return self.precision_of(variances(sessions) + self.between)

        sessions = np.inf
        if after(MOST_SESSIONS) <= self.precision:
            # Precision may be infinite, of which only the sign is looked at.
            log_sessions = bisect(
                lambda at: np.sign(after(np.exp(at)) - self.precision), 0.0, np.log(MOST_SESSIONS)
            )
            sessions = float(np.ceil(np.exp(log_sessions)))
        days = None if self.sessions_per_day is None else sessions / self.sessions_per_day
        at_last = variances(min(sessions, MOST_SESSIONS)) + self.between
        with np.errstate(over="ignore"):
            reached = np.expm1(self.errors * np.sqrt(at_last))
        return PlannedDesign(
            name,
            method,
            shares,
            sessions,
            days,
            cost * sessions,
            1_000 * cost,
            cost / self.clicks_per_session,
            reached,
            after,
        )

    def precision_of(self, variances: Floats) -> float:
        """How far the widest of these intervals reaches, as a share."""
        with np.errstate(over="ignore"):
            return float(np.expm1(self.errors * np.sqrt(variances.max())))


def sessions_per_day(log: ClickLog) -> float | None:
    """The log's own traffic, where its periods are named by the times at which they begin."""
    if PERIOD not in log.columns:
        return None
    column = log.columns[PERIOD]
    sessions = np.bincount(column.codes, log.counts, len(column.names))
    begins = np.array([_seconds(name) for name in column.names])
    # How long the last one lasted is not known.
    days = (begins.max() - begins.min()) / 86_400
    before = sessions[begins < begins.max()].sum()
    return float(before / days) if days > 0 and before > 0 else None


def _seconds(name: str) -> float:
    """The time that a period is named by, since 1970; nan where it is none.

    Numbers count seconds, or thousandths, millionths and so on of them, if that is of this century.

    >>> _seconds("2026-05-01T00:00:00+00:00") == _seconds("1777593600000") == 1777593600.0
    True
    >>> _seconds("12"), _seconds("before")
    (nan, nan)
    """
    try:
        if "-" in name:
            return datetime.fromisoformat(name).timestamp()
        number = float(name)
    except (ValueError, OverflowError, OSError):
        return float("nan")
    units = (1.0, 1e3, 1e6, 1e9)
    return next((number / unit for unit in units if 1e9 <= number / unit < 5e9), float("nan"))


def _planned_depth(grouped: GroupedClicks, positions: int | None) -> tuple[int, str | None]:
    """How far down the log has clicks enough to plan from, and why not farther."""
    wanted = grouped.depth if positions is None else positions
    if grouped.depth < 2:
        raise DataError("the lists show one position only; there is no curve to measure")
    if wanted > grouped.depth:
        raise SettingsError(f"a plan for {wanted} positions, but lists show {grouped.depth}")
    both = grouped.mask & grouped.mask[:, :1]
    for k in range(wanted):
        clicks = int(grouped.clicks[both[:, k], k].sum())
        beside = int(grouped.clicks[both[:, k], 0].sum())
        if min(clicks, beside) < FEWEST_CLICKS:
            fewest = k if clicks <= beside else 0
            why = (
                f"position {fewest + 1} was clicked {counted(min(clicks, beside), 'times')} in "
                f"{counted(int(grouped.sessions[both[:, k]].sum()), 'sessions')} that show "
                f"positions 1 and {k + 1}"
            )
            if k < 2 or positions is not None:
                raise DataError(
                    f"{why}, and a plan needs {FEWEST_CLICKS} clicks at each position; log longer"
                )
            return k, f"The plan is for positions 1 to {k}: {why}."
    return wanted, None


def _precision_of(curve: Propensity | str, depth: int) -> float:
    """That of the worst position; infinite where the curve does not reach it."""
    if isinstance(curve, str) or curve.high is None or curve.depth < depth:
        return float("inf")
    return float((curve.high[:depth] / curve.examination[:depth]).max() - 1)
