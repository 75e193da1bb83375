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

NEWTON_STEPS = 50
TOLERANCE = 1e-8
RIDGE = 1e-3
LONGEST_STEP = 2.0
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
    positions = np.broadcast_to(np.eye(depth)[:, 1:], (len(f), depth, depth - 1))
    inputs = np.concatenate(
        [positions, np.stack([f, f**2, f * (along - along.mean())], axis=2)], axis=2
    )
    _, query = np.unique(held_out.lists.queries[useful], return_inverse=True)
    weights, errors = _fit(inputs, clicks, mask, query)
    return Slope(float(weights[-3]), float(weights[-1]), float(errors[-1]))


def _fit(
    inputs: Floats, clicks: Floats, mask: NDArray[np.bool_], query: NDArray[np.integer]
) -> tuple[Floats, Floats]:
    """The weights of greatest likelihood, and their standard errors over queries (sandwich)."""
    count = inputs.shape[2]
    weights = np.zeros(count)
    total = clicks.sum(axis=1)
    for _ in range(NEWTON_STEPS):
        utility = np.where(mask, inputs @ weights, -np.inf)
        p = np.exp(utility - utility.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        residual = clicks - total[:, None] * p
        mean = np.einsum("lk,lkp->lp", p, inputs)
        spread = inputs * np.sqrt(total[:, None] * p)[..., None]
        flat = spread.reshape(-1, count)
        bend = flat.T @ flat - (mean * total[:, None]).T @ mean + RIDGE * np.eye(count)
        slopes = np.einsum("lk,lkp->lp", residual, inputs)
        step = np.linalg.solve(bend, slopes.sum(axis=0) - RIDGE * weights)
        step *= min(1.0, LONGEST_STEP / max(np.abs(step).max(), 1e-300))
        weights = weights + step
        if np.abs(step).max() < TOLERANCE:
            break
    of_queries = np.stack([np.bincount(query, column) for column in slopes.T], axis=1)
    inverse = np.linalg.inv(bend)
    variance = inverse @ (of_queries.T @ of_queries) @ inverse
    return weights, np.sqrt(np.diag(variance))
