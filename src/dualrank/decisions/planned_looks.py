"""Daily looks at an experiment whose end is planned: what each may spend of the level.

Where the number of sessions is fixed beforehand, an interval that holds for ever is wider than it
needs to be. Lan and DeMets ("Discrete sequential boundaries for clinical trials", Biometrika 1983)
spend the level by and by, as a function of how much of the plan is done; looks need not be planned.
With the function after O'Brien and Fleming little is spent early, and nearly all is left at the
end. Intervals with these boundaries hold on all looks together (Jennison and Turnbull 1989).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualrank.certainty import LEVEL

SHORTEST = 0.005
"""Looks that come sooner after the last one, as a share of the plan, are not taken."""
FURTHEST = 8.0
"""Standard errors that chance does not reach."""
_STEPS = 5


def spent(fraction: ArrayLike, level: float = LEVEL) -> NDArray[np.float64]:
    """How much of the level may be spent when this fraction of the plan is done.

    On either side 2 − 2 Φ(z / √τ), half of the level being spent at τ = 1.

    >>> spent([0.25, 0.5, 1.0]).round(5)
    array([1.00e-05, 3.05e-03, 5.00e-02])
    """
    from scipy.special import ndtr, ndtri

    tau = np.clip(np.asarray(fraction, dtype=np.float64), 1e-9, 1.0)
    return np.asarray(4 * ndtr(ndtri(level / 4) / np.sqrt(tau)))


def looks_taken(fractions: ArrayLike) -> NDArray[np.intp]:
    """Which of the looks (at growing fractions of the plan) are taken, the end being the last.

    >>> looks_taken([0.1, 0.1001, 0.6, 1.2, 1.3])
    array([0, 2, 3])
    """
    taken, last = [], 0.0
    for number, fraction in enumerate(np.asarray(fractions, dtype=np.float64).tolist()):
        if fraction - last >= SHORTEST and last < 1:
            taken.append(number)
            last = fraction
    return np.array(taken, dtype=np.intp)


def boundaries(fractions: ArrayLike, level: float = LEVEL) -> NDArray[np.float64]:
    """How many standard errors decide at each look, all looks together being wrong at `level`.

    The sum of what was seen is a Brownian motion in τ. What is left of its density below the
    boundaries is carried from look to look on a grid (Armitage, McPherson, Rowe 1969).

    >>> boundaries([0.25, 0.5, 0.75, 1.0]).round(2)
    array([4.33, 2.96, 2.36, 2.01])
    """
    taus = np.minimum(np.asarray(fractions, dtype=np.float64), 1.0)
    return _boundaries(tuple(taus.tolist()), level)


@lru_cache(maxsize=16)
def _boundaries(taus: tuple[float, ...], level: float) -> NDArray[np.float64]:
    found = np.empty(len(taus))
    below, before, used = _Below(np.zeros(1), np.ones(1)), 0.0, 0.0
    for look, tau in enumerate(taus):
        step, scale = math.sqrt(tau - before), math.sqrt(tau)
        bound = below.bound(float(spent(tau, level)) - used, step, FURTHEST * scale)
        found[look] = bound / scale
        used += below.crosses(bound, step)
        below, before = below.after(bound, step), tau
    found.setflags(write=False)
    return found


@dataclass(frozen=True, eq=False)
class _Below:
    """Where the sum is while no boundary was crossed: the weight of each point of a grid."""

    grid: NDArray[np.float64]
    weight: NDArray[np.float64]

    def crosses(self, bound: float, step: float) -> float:
        """How likely the sum, moved by a normal of deviation `step`, is beyond the bound."""
        from scipy.special import ndtr

        outside = ndtr((-bound - self.grid) / step) + ndtr((self.grid - bound) / step)
        return float(self.weight @ outside)

    def bound(self, allowed: float, step: float, furthest: float) -> float:
        """The bound that is crossed with the probability `allowed`."""
        from scipy.optimize import brentq

        if self.crosses(furthest, step) >= allowed:
            return furthest
        return float(brentq(lambda at: self.crosses(at, step) - allowed, 0.0, furthest, xtol=1e-7))

    def after(self, bound: float, step: float) -> _Below:
        """Where the sum is after such a move, if it stayed below."""
        points = int(min(max(2 * bound / step * _STEPS, 200), 4_000)) | 1
        grid = np.linspace(-bound, bound, points)
        density = np.exp(-0.5 * ((grid[:, None] - self.grid) / step) ** 2) @ self.weight
        width = np.full(points, grid[1] - grid[0])
        width[[0, -1]] /= 2
        return _Below(grid, density * width / (step * math.sqrt(2 * math.pi)))
