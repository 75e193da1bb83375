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
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dualrank.certainty import alarm_errors, seen
from dualrank.data.click_log import ClickLog
from dualrank.data.log_parts import LogParts

# Enough for a ratio of 2 to be seen.
FEWEST_EXPECTED = 30
# Two ratios are looked at together.
ERRORS = alarm_errors(2)
# Beyond these ratios (or their inverse) the dependence is worth knowing, or makes the model wrong.
NOTABLE, LARGE = 1.1, 2.0
ROWS_PER_BLOCK = 1 << 18

Floats = NDArray[np.float64]
Status = Literal["good", "warning", "failed", "not measured"]


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
    def is_clear(self) -> bool:
        """Whether it is no luck."""
        return abs(self.value - 1) > ERRORS * self.error

    @property
    def shows(self) -> float:
        """How far from 1 it must be to be seen."""
        return seen(ERRORS) * self.error

    @property
    def status(self) -> Status:
        """Whether it is far enough from 1 to matter, and no luck."""
        if self.expected < FEWEST_EXPECTED:
            return "not measured"
        if not self.is_clear:
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


@dataclass(frozen=True)
class Dependence:
    """Second clicks after one on the first rank, and after one further down."""

    after_the_first: Ratio
    further_down: Ratio
    partial: bool = False
    """Whether lists have gaps, so that it is not known what was clicked above a document."""

    @classmethod
    def of(cls, log: ClickLog | LogParts) -> Dependence:
        """Count a log, one part after the other."""
        parts = LogParts.of(log)
        sums, partial = np.zeros((3, parts.depth, parts.depth)), False
        for part in parts:
            clicked = part.log
            sums += co_clicks(clicked)
            partial = partial or bool(clicked.lists.have_gaps.any())
        first, further = (
            Ratio(*(float(each[rows].sum()) for each in sums))
            for rows in (np.s_[:1, 1:], np.s_[1:, 2:])
        )
        return cls(first, further, partial)

    @property
    def ends_sessions(self) -> bool:
        """Whether a click mostly ends the session, so that no curve by position is right.

        Then what is below a relevant document is not seen because of the document. (Where some
        users click much and others little, ratios are above 1, but each position is still seen by
        its share of users.)
        """
        ratios = (self.after_the_first, self.further_down)
        return any(ratio.status == "failed" and ratio.value < 1 for ratio in ratios)

    @property
    def reads_from_the_top(self) -> bool:
        """Whether users read down the list, and clicks end sessions or part of them.

        Then clicks further down come together more often than those with the first result do: who
        clicks there came so far, and who clicked the first may have left. Users some of whom click
        much and others little would raise both alike; and where a click on the first makes others
        no rarer, nobody leaves because of it. Lists with gaps do not show what was read.
        """
        if self.partial:
            return False
        first, further = self.after_the_first, self.further_down
        if min(first.expected, further.expected) < FEWEST_EXPECTED:
            return self.ends_sessions
        apart = further.value - first.value
        differ = apart > ERRORS * np.hypot(first.error, further.error) and apart > NOTABLE - 1
        leave = first.value < 1 - ERRORS * first.error
        return self.ends_sessions or bool(differ and leave)


def read_down(log: ClickLog) -> NDArray[np.bool_]:
    """What the sessions of each row of the log have surely read, if they read from the top.

    Everything down to the last click, and all of the list where there is none.
    """
    depth = log.lists.depth
    last = np.where(log.clicks, np.arange(depth), -1).max(axis=1)
    last[last < 0] = depth
    read: NDArray[np.bool_] = np.arange(depth) <= last[:, None]
    return read


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
