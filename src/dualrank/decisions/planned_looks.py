"""Daily looks at an experiment whose end is planned: what each may spend of the level.

Where the number of sessions is fixed beforehand, an interval that holds for ever is wider than it
needs to be. Lan and DeMets ("Discrete sequential boundaries for clinical trials", Biometrika 1983)
spend the level by and by, as a function of how much of the plan is done; looks need not be planned.
With the function after O'Brien and Fleming little is spent early, and nearly all is left at the
end. Intervals with these boundaries hold on all looks together (Jennison and Turnbull 1989).
"""

from __future__ import annotations

import math

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
    array([1.000e-05, 3.050e-03, 5.000e-02])
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
    from scipy.optimize import brentq
    from scipy.special import ndtr

    taus = np.minimum(np.asarray(fractions, dtype=np.float64), 1.0)
    found = np.empty(len(taus))
    # Before the first look everything is at zero.
    grid, weight = np.zeros(1), np.ones(1)
    before, used = 0.0, 0.0
    for look, tau in enumerate(taus.tolist()):
        may = float(spent(tau, level))
        step, scale = math.sqrt(tau - before), math.sqrt(tau)

        def crosses(errors: float, step: float = step, scale: float = scale) -> float:
            bound = errors * scale
            return float(weight @ (ndtr((-bound - grid) / step) + ndtr((grid - bound) / step)))

        allowed = may - used
        if crosses(FURTHEST) >= allowed:
            found[look] = FURTHEST
        else:
            found[look] = brentq(lambda e: crosses(e) - allowed, 0.1, FURTHEST, xtol=1e-6)  # noqa: B023
        used += crosses(found[look])
        bound = found[look] * scale
        points = int(min(max(2 * bound / step * _STEPS, 200), 4_000)) | 1
        new = np.linspace(-bound, bound, points)
        density = np.exp(-0.5 * ((new[:, None] - grid) / step) ** 2) @ weight
        density /= step * math.sqrt(2 * math.pi)
        trapezoid = np.full(points, new[1] - new[0])
        trapezoid[[0, -1]] /= 2
        grid, weight, before = new, density * trapezoid, tau
    return found
