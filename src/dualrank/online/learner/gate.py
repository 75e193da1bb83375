"""Which of two rankers held-out clicks prefer: before a version goes live, and as long as it is.

Two questions are asked of the same lists. Does one ranker predict better which documents are
clicked, position accounted for (`evaluation.click_check`)? And would it have earned more clicks
(`decisions.estimate`, where the log allows a verdict)? Each gives a difference in standard errors
over queries; a ranker is worse where either says so. Of few queries the error is not well known
itself: the difference is that of a normal distribution which is as rare as the one found is in
Student's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from scipy.stats import t as student

from dualrank.certainty import NORMAL_95
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.decisions.click_metrics import CLICKS
from dualrank.decisions.estimate_rankers import estimate
from dualrank.decisions.verdict_of_estimate import verdict_of
from dualrank.errors import DataError
from dualrank.evaluation.click_check import CLEAR, ClickCheck
from dualrank.online.learner.laid_out import reach_of
from dualrank.propensity.propensity import Propensity
from dualrank.sentences import counted

FEWEST_QUERIES = 10
"""Held-out queries with clicks below which nothing is decided."""
WORSE = 3.0
"""Standard errors by which a candidate must be behind to be refused. The live version was itself
chosen on these queries, and looks better there than it is: at two, most of its equals would be
refused sooner or later."""
SURE = 3.5
"""Those by which a live version must be behind to be taken back: it is looked at after every round,
and each look may err."""
MUCH = 0.02
"""The share of clicks whose loss is more than versions differ by that are nearly alike."""
RESAMPLES = 200

Scores = NDArray[np.floating]


@dataclass(frozen=True)
class Judged:
    """How far a ranker is ahead of another on held-out clicks, in standard errors over queries."""

    predicts: float | None
    """By the likelihood of clicks; nothing where there are too few."""
    earns: float | None
    """By estimated clicks a session; nothing where no verdict is possible."""
    queries: int
    clicks: int
    loses: float = 0.0
    """The share of its clicks that the other one would lose by it, as estimated."""

    @property
    def can_tell(self) -> bool:
        """Whether there were clicks enough."""
        return self.predicts is not None

    def is_worse(self, errors: float = WORSE) -> bool:
        """Whether it is behind by more than so many standard errors, in either way.

        Where much would be lost, one standard error less is enough: versions that are nearly
        alike, of which one looks better by chance, are so in what they earn.
        """
        if self.earns is not None and self.loses > MUCH and self.earns < 1 - errors:
            return True
        return any(each is not None and each < -errors for each in (self.predicts, self.earns))

    def is_better(self, errors: float = CLEAR) -> bool:
        """Whether it is ahead by more than so many in one way, and behind in none."""
        known = [each for each in (self.predicts, self.earns) if each is not None]
        return bool(known) and max(known) > errors and min(known) > 0

    def said(self, other: str) -> str:
        """In words."""
        if not self.can_tell:
            return (
                f"clicks on {counted(self.queries, 'queries')} are held out; {FEWEST_QUERIES} are "
                "needed to compare"
            )
        parts = [f"{self.predicts:+.1f} in predicting clicks"]
        if self.earns is not None:
            parts.append(f"{self.earns:+.1f} in clicks earned")
        return (
            f"against {other}, on {counted(self.clicks, 'clicks')} of "
            f"{counted(self.queries, 'queries')} held out: {', '.join(parts)} (standard errors)"
        )


class Gate:
    """Held-out lists with their clicks, by which versions are compared.

    `curve` is what is believed about position; `current` marks the lists of today's habits, which
    alone the curve fits. Without a curve nothing is estimated.
    """

    def __init__(
        self,
        log: ClickLog,
        dataset: Dataset,
        curve: Propensity | None = None,
        current: NDArray[np.bool_] | None = None,
    ) -> None:
        self.dataset = dataset
        self._log = log
        self._curve = curve
        self._current = np.ones(len(log.lists), bool) if current is None else current
        clicked = log.clicks_per_list.any(axis=1) & (log.lists.mask.sum(axis=1) > 1)
        self._told = np.flatnonzero(clicked)

    def judge(self, scores: Scores, over: Scores) -> Judged:
        """The first ranker against the second, both by their scores of all documents.

        Lists with a document that both score far from all others have features that went wrong,
        and are left out; where one alone does, that score counts as far, and no further.
        """
        tamed, odd = zip(*(self._tamed(each) for each in (scores, over)), strict=True)
        shows_odd = ((odd[0] & odd[1])[self._log.lists.documents] & self._log.lists.mask).any(
            axis=1
        )
        told = self._told[~shows_odd[self._told]]
        queries = len(np.unique(self._log.lists.queries[told]))
        clicks = int(self._log.clicks_per_list[told].sum())
        if queries < FEWEST_QUERIES:
            return Judged(None, None, queries, clicks)
        lead = ClickCheck(self._log.take_lists(told)).lead(*tamed)
        current = np.flatnonzero(self._current & ~shows_odd)
        earns, loses = self._earns(scores, over, current)
        return Judged(as_normal(lead.in_errors, lead.queries), earns, queries, clicks, loses)

    def _tamed(self, scores: Scores) -> tuple[Scores, NDArray[np.bool_]]:
        """Scores within reach of all others, and those that were not."""
        shown = self._log.lists.documents[self._told][self._log.lists.mask[self._told]]
        if len(shown) == 0:
            return scores, np.zeros(len(scores), bool)
        low, high = reach_of(scores[np.unique(shown)])
        return scores.clip(low, high), (scores < low) | (scores > high)

    def _earns(
        self, scores: Scores, over: Scores, lists: NDArray[np.integer]
    ) -> tuple[float | None, float]:
        """The estimated difference in clicks, in standard errors, and the share that is lost.

        Nothing is known where the estimate does not stand on enough.
        """
        nothing = None, 0.0
        if self._curve is None or len(lists) == 0 or np.array_equal(scores, over):
            return nothing
        try:
            found = estimate(
                self._log.take_lists(lists),
                scores,
                self.dataset,
                against=over,
                propensity=self._curve,
                only_displayed=True,
                resamples=RESAMPLES,
            )
        except DataError:
            return nothing
        verdict = verdict_of(found)
        main = found[CLICKS]
        half = (main.high - main.low) / 2
        unsupported = verdict.decision == "cannot tell" and main.sign != 0
        if unsupported or not half > 0:
            return nothing
        lost = -main.difference / main.old if main.old > 0 else 0.0
        queries = len(np.unique(self._log.lists.queries[lists]))
        return as_normal(main.difference / half * NORMAL_95, queries), float(lost)


def as_normal(in_errors: float, queries: int) -> float:
    """The normal deviate that is as rare as so many standard errors, estimated from few queries.

    >>> round(as_normal(-3.0, 10), 2), round(as_normal(-3.0, 1000), 2)
    (-2.43, -2.99)
    """
    if queries < 2:
        return 0.0
    rarity = np.maximum(student.sf(abs(in_errors), queries - 1), np.finfo(float).tiny)
    return float(np.copysign(norm.isf(rarity), in_errors))
