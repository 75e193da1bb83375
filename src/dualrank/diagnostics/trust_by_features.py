"""Trust in the top where no document was seen both there and below.

Under the position-based model a ranker's score tells as much about clicks at one rank as at
another: log P(click) = log e_k + log r(x). Trust flattens that at the top, where what is not
relevant is clicked as well. So the held-out clicks are explained by

    P(k | a click) = softmax_k(b f + q f² + δ f log₂ k + φ_k),

with the scores f of dual learning, standardised. q takes up what is not linear in them, which would
otherwise be taken for a change along the list, as scores fall with the rank. δ = 0 without trust,
and above 0 with it. Errors are over queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog
from dualrank.evaluation.click_logit import ClickLogit

RIDGE = 1e-3
MOST_LISTS = 20_000

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Slope:
    """How much the scores tell about clicks, and how that grows with every doubling of the rank."""

    slope: float
    growth: float
    error: float

    @property
    def relative(self) -> float:
        """The growth as a share of the slope."""
        return self.growth / self.slope if self.slope > 0 else float("nan")


def slope_along_the_list(held_out: ClickLog, scores: NDArray[np.floating]) -> Slope | None:
    """b and δ, or None where there is nothing to fit."""
    clicks = held_out.clicks_per_list.astype(np.float64)
    mask = held_out.lists.mask
    useful = np.flatnonzero(clicks.any(axis=1) & (mask.sum(axis=1) > 1))[:MOST_LISTS]
    clicks, mask = clicks[useful], mask[useful]
    depth = clicks.shape[1]
    if len(useful) < 10 * depth:
        return None
    f = np.where(mask, scores[held_out.lists.documents[useful]], 0.0).astype(np.float64)
    spread = f[mask].std()
    if spread == 0:
        return None
    f = np.where(mask, (f - f[mask].mean()) / spread, 0.0)
    along = np.log2(np.arange(1, depth + 1))
    inputs = np.stack([f, f**2, f * (along - along.mean())], axis=2)
    logit = ClickLogit(inputs, clicks, mask)
    fitted = logit.fit(RIDGE)
    # Standard errors over queries: the slopes of a query's lists belong to one observation.
    _, query = np.unique(held_out.lists.queries[useful], return_inverse=True)
    slopes = np.stack([np.bincount(query, each) for each in logit.slopes(fitted).T], axis=1)
    inverse = np.linalg.inv(logit.information(fitted) + RIDGE * np.eye(len(fitted)))
    errors = np.sqrt(np.maximum(np.diag(inverse @ (slopes.T @ slopes) @ inverse), 0.0))
    return Slope(float(fitted[0]), float(fitted[2]), float(errors[2]))
