"""Have users changed how they look at lists? The curve of the latest round against that before.

Where a click falls on its list, P(k | a click) = softmax_k(b f(x_k) + φ_k), with f the scores of
the ranker from before the clicks were learned. The lists of the new round have a term of their own,

    P(k | a click) = softmax_k(b f(x_k) + φ_k + δ_k),        δ_1 = 0,

and δ is 0 where nothing has changed. Both are fitted together (`evaluation.click_logit`). How sure
a δ is, the clicks at its position say by an exact test: of n there, a on the new lists, where
E would be expected with δ_k = 0, a is binomial with E / (E + n − a). (The error of a fitted δ says
nothing there: without a click it is 0, however few were expected.) Clicks of one query are alike,
and the first position has its own luck: by what errors over queries are larger for that than
√(1/a + 1/(n − a)), the error of δ is. Unlike `diagnostics.stability`, which compares the same
document at the same position and is immune to a wrong f, this has power where most queries are
rare; as f is never quite right, a change counts only where it is also notable.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import binom
from scipy.stats import t as student

from dualrank.diagnostics.stability import NOTABLE
from dualrank.evaluation.click_logit import ClickLogit
from dualrank.online.learner.laid_out import LaidOut

FALSE_ALARMS = 1e-6
"""How often a round raises a false alarm: with a round a minute, once in two years."""
FEWEST_QUERIES = 10
FEWEST_CLICKS = 20
"""Clicks at a position, before and after together, below which nothing is said of it."""
FEWEST_FIRST = 10
"""Clicks at the first position, before and after each, that others can be held against."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Movement:
    """By how much examination changed, relative to the first position: e^δ, with its errors."""

    factor: Floats
    error: Floats
    needed: float
    """Standard errors on either side of the interval of all positions together."""

    @property
    def is_clear(self) -> bool:
        """Whether some position moved beyond its interval, and notably."""
        return bool(self._clear.any())

    @property
    def _clear(self) -> NDArray[np.bool_]:
        size = np.abs(np.log(self.factor))
        return (size > self.needed * self.error) & (size > np.log(NOTABLE))

    @property
    def said(self) -> str:
        """What moved most, in words."""
        strength = np.where(self._clear, np.abs(np.log(self.factor)), 0.0)
        k = int(strength.argmax())
        size = float(np.exp(np.abs(np.log(self.factor[k]))))
        reach = float(np.exp(self.needed * self.error[k]))
        more = "more" if self.factor[k] > 1 else "less"
        return (
            f"users look {size:.2f} times {more} at position {k + 1} than before (interval "
            f"{size / reach:.2f}–{size * reach:.2f}): what was learned about position before "
            "counts no longer"
        )


def movement(before: LaidOut, after: LaidOut, level: float = FALSE_ALARMS) -> Movement | None:
    """The change from lists to later ones; nothing where there is too little to tell."""
    depth = max(before.depth, after.depth)
    before, after = before.padded(depth), after.padded(depth)
    queries = min(before.queries, after.queries)
    clicks = np.stack([before.clicks.sum(axis=0), after.clicks.sum(axis=0)])
    tested = np.flatnonzero((clicks.sum(axis=0) >= FEWEST_CLICKS) & (clicks[0] > 0))
    tested = tested[tested > 0]
    if queries < FEWEST_QUERIES or len(tested) == 0 or clicks[:, 0].min() < FEWEST_FIRST:
        return None
    mask = np.concatenate([before.mask, after.mask])
    inputs = np.zeros((*mask.shape, 1 + len(tested)))
    inputs[:, :, 0] = np.concatenate([before.scores, after.scores])
    for j, k in enumerate(tested):
        inputs[len(before) :, k, 1 + j] = mask[len(before) :, k]
    logit = ClickLogit(inputs, np.concatenate([before.clicks, after.clicks]), mask)
    fitted = logit.fit()
    over_queries = logit.errors(fitted, np.concatenate([before.query, after.query]))
    change = np.clip(fitted[1 : 1 + len(tested)], -20, 20)
    utility = np.where(mask, logit.utilities(fitted), -np.inf)[len(before) :]
    expected = _without(change, softmax(utility, axis=1)[:, tested], after.clicks.sum(axis=1))
    factor, error = np.ones(depth), np.full(depth, np.inf)
    factor[tested] = np.exp(change)
    found, dof = over_queries[1 : 1 + len(tested)], queries - 1
    error[tested] = _errors(change, found, clicks[:, tested], expected, dof)
    needed = float(student.isf(level / (2 * len(tested)), dof))
    return Movement(factor, error, needed)


def _without(change: Floats, chance: Floats, clicks: Floats) -> Floats:
    """The clicks that would be expected at each position, had it alone not changed."""
    odds = chance * np.exp(-change)
    found: Floats = clicks @ (odds / (1 - chance + odds))
    return found


def _errors(
    change: Floats, over_queries: Floats, clicks: Floats, expected: Floats, dof: int
) -> Floats:
    """The errors by which an exact test of the clicks before and after finds changes as sure."""
    old, new = clicks
    by_chance = binom(old + new, expected / (expected + old))
    # Half of what is as likely: without a change, either side is as likely as the other.
    tail = np.where(change > 0, by_chance.sf(new), by_chance.cdf(new - 1)) + by_chance.pmf(new) / 2
    sure = student.isf(tail, dof)
    with np.errstate(divide="ignore"):
        counted = np.sqrt(1 / old + 1 / new)
    wider = np.maximum(over_queries / counted, 1.0)
    alone = np.where(sure > 1, np.abs(change) / np.maximum(sure, 1.0), counted)
    found: Floats = alone * wider
    return found
