"""How far estimated examination is from the truth, as the paper measures it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualrank.errors import DataError


def inverse_propensity_mse(estimated_examination: ArrayLike, true_examination: ArrayLike) -> float:
    """The mean squared error of inverse propensity weights, as in the paper's Figure 2.

        MSE = 1/|π_q| · Σ_i (g_0/g_i − ρ_0^η/ρ_i^η)²

    over the positions `i = 0, …, |π_q| − 1` of a displayed list: `estimated_examination` is g,
    `true_examination` is ρ^η. Only ratios to the first position enter, so that each curve may
    have any scale.

    >>> inverse_propensity_mse([1.0, 0.5], [0.75, 0.25])
    0.5
    """
    estimated = require_examination(estimated_examination, "the estimated examination")
    true = require_examination(true_examination, "the true examination")
    if len(estimated) != len(true):
        raise DataError(
            f"the estimated examination has {len(estimated)} positions, the true one {len(true)}"
        )
    return float(np.mean((estimated[0] / estimated - true[0] / true) ** 2))


def require_examination(values: ArrayLike, what: str = "examination") -> NDArray[np.float64]:
    """A curve of which every position has an inverse."""
    curve = np.asarray(values, dtype=np.float64)
    if curve.ndim != 1 or len(curve) == 0:
        raise DataError(f"{what} must be one number per position, not of shape {curve.shape}")
    bad = np.flatnonzero(~(np.isfinite(curve) & (curve > 0)))
    if len(bad):
        raise DataError(
            f"{what} of position {bad[0] + 1} is {curve[bad[0]]:g}; it must be above 0 and finite"
        )
    return curve
