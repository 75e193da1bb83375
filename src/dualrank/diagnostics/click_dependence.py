"""Are the clicks of a session independent, as the position-based model has it?

Under that model a user examines each position for itself: among the sessions that were shown one
list, those with a click at rank i click at rank k as often as those without. With n sessions on a
list, m_i of them with a click at i and m_k at k, one expects m_i m_k/n with both, and by chance
(hypergeometric) a variance of m_i m_k (n − m_i)(n − m_k)/(n² (n − 1)). Over all lists,

    ratio = Σ observed / Σ expected,

for two kinds of pairs, because two departures from the model would hide each other in their sum:

- *after the first*: i = 1. Nearly everybody looks at the first result, so that a ratio below 1 says
  that users stop after a click, as in the cascade model.
- *further down*: i > 1. A click there shows that this user came so far: a ratio above 1 says that
  users read from the top, or that some click much and others little.

The terms of different pairs are uncorrelated unless the model is wrong. Sessions are compared
within one context and period, so that a difference between those is not taken for one of users.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog
from dualrank.diagnostics.point import Point, Status, not_measured, worst
from dualrank.diagnostics.study import Study

NAME = "independent clicks"
FEWEST_EXPECTED = 30
ERRORS = 3.0
# Beyond these ratios (or their inverse) the dependence is worth knowing, or makes the model wrong.
NOTABLE, LARGE = 1.1, 2.0
ROWS_PER_BLOCK = 1 << 18

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Ratio:
    """Sessions with two clicks, against what independence expects."""

    observed: float
    expected: float
    variance: float

    @property
    def value(self) -> float:
        """Observed by expected."""
        return self.observed / self.expected if self.expected else float("nan")

    @property
    def error(self) -> float:
        """Its standard error, if clicks are independent."""
        return float(np.sqrt(self.variance)) / self.expected if self.expected else float("inf")

    @property
    def status(self) -> Status:
        """Whether it is far enough from 1 to matter, and no luck."""
        if self.expected < FEWEST_EXPECTED:
            return "not measured"
        if abs(self.value - 1) <= ERRORS * self.error:
            return "good"
        size = max(self.value, 1 / self.value) if self.value > 0 else np.inf
        return "failed" if size > LARGE else "warning" if size > NOTABLE else "good"

    def to_dict(self) -> dict[str, float]:
        """As plain values."""
        return {
            "ratio": self.value,
            "standard_error": self.error,
            "observed": self.observed,
            "expected": self.expected,
        }


def click_dependence(study: Study) -> Point:
    """Sessions with two clicks, after the first rank and further down."""
    sums = co_clicks(study.log)
    first, further = (
        Ratio(*(float(each[rows].sum()) for each in sums))
        for rows in (np.s_[:1, 1:], np.s_[1:, 2:])
    )
    numbers: dict[str, Any] = {
        "after_the_first": first.to_dict(),
        "further_down": further.to_dict(),
    }
    if first.status == further.status == "not measured":
        return not_measured(
            NAME,
            f"Only {first.expected + further.expected:.1f} sessions are expected to click twice on "
            "a list that others saw too, too few to compare.",
            **numbers,
        )
    said = " and ".join(
        f"{ratio.value:.2f} times as often {where}"
        for ratio, where in (
            (first, "after one on the first result"),
            (further, "after one further down"),
        )
        if ratio.status != "not measured"
    )
    said = f"Sessions click a second time {said} as independent clicks would"
    status = worst(first.status, further.status)
    if status == "good":
        return Point(NAME, status, numbers, f"{said}: the position-based model holds.")
    habits = []
    if first.status in ("warning", "failed") and first.value < 1:
        habits.append("users stop after a click, as in the cascade model")
    elif further.status in ("warning", "failed") and further.value < 1:
        habits.append("users stop after a click further down")
    if further.status in ("warning", "failed") and further.value > 1:
        habits.append(
            "who clicks further down has read more of the list than others, from the top or out "
            "of habit"
        )
    elif first.status in ("warning", "failed") and first.value > 1:
        habits.append("some users click much and others little")
    return Point(
        NAME,
        status,
        numbers,
        f"{said}: {', and '.join(habits)}, so that how likely a rank is seen does not depend on "
        "the rank alone.",
        "Compare click models (dualrank clicks fit LOG --model dbn, ubm), give contexts that tell "
        "users apart, and read an examination curve as the average over these lists.",
    )


def co_clicks(log: ClickLog) -> tuple[Floats, Floats, Floats]:
    """Sessions with clicks at ranks i < k, as `[i, k]`: observed, expected, and its variance."""
    stratum = _strata(log)
    strata = int(stratum.max(initial=-1)) + 1
    n = np.bincount(stratum, log.counts, strata).astype(np.float64)
    clicked = np.stack(
        [np.bincount(stratum[on], log.counts[on], strata) for on in log.clicks.T], axis=1
    ).astype(np.float64)
    several = n > 1
    n, clicked = n[several, None], clicked[several]
    expected = (clicked / n).T @ clicked
    spread = clicked * (n - clicked) / (n * np.sqrt(n - 1))
    rows = np.flatnonzero(several[stratum])
    observed = np.zeros_like(expected)
    for start in range(0, len(rows), ROWS_PER_BLOCK):
        block = rows[start : start + ROWS_PER_BLOCK]
        clicks = log.clicks[block].astype(np.float64)
        observed += (clicks * log.counts[block, None]).T @ clicks
    upper = np.triu(np.ones_like(expected), 1)
    return observed * upper, expected * upper, spread.T @ spread * upper


def _strata(log: ClickLog) -> NDArray[np.int64]:
    """One number per list and combination of contexts."""
    stratum = log.list_of.astype(np.int64)
    for column in log.columns.values():
        stratum = stratum * len(column.names) + column.codes
    return np.unique(stratum, return_inverse=True)[1].reshape(-1)
