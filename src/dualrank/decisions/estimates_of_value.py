"""Estimates of what rankings earn, of the log and of every resample of its queries.

- *direct*: relevance by the model alone, fitted to other queries.
- *ips*: inverse propensity. What was never displayed counts as nothing.
- *self-normalised*: the same, divided by the share of the ranking's examination that falls on
  displayed documents, so that what was never displayed counts as the mean of what was.
- *clipped*: inverse propensity where none counts for less than 10/√N of a session.
- *doubly-robust*: the model, mended by what inverse propensity finds beyond it,

      V_direct + ω (V_filled − V_direct),

  with inverse propensity where a document was displayed. At ω = 1 it is without bias whatever the
  model says, and as noisy as inverse propensity (in a log positions are known, so that nothing of
  the model remains). So ω is as small as the two agree (shrinkage: Su et al., ICML 2020): with δ
  their difference and σ its standard error, ω = b²/(b² + σ²), b² = max(0, δ² − 4σ²). With more
  sessions σ vanishes, and with it whatever is wrong with the model; until then the interval allows
  for what of it may not be seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrank.decisions.group_sums import GroupSums, in_folds
from dualrank.decisions.relevance_model import FOLDS

Floats = NDArray[np.float64]

DIRECT, IPS, NORMALISED, CLIPPED = "direct", "ips", "self-normalised", "clipped"
DOUBLY_ROBUST, AFFINE = "doubly-robust", "affine"
FILLED = "filled"
"""Inverse propensity where a document was displayed, and the model where it was not: one of the two
that the doubly robust estimate lies between, and not shown by itself."""
AGREEMENT = 4.0
"""Squared standard errors that the model and inverse propensity may differ by as a matter of
course: two of them."""
UNSEEN = 0.4
"""Standard errors of that difference by which the model may be wrong unseen. Both were chosen on
other worlds than those of docs/estimate.md."""


@dataclass(frozen=True, eq=False)
class Fit:
    """Weights of the model by fold, `[fold, resample, φ]`, each fitted to the other folds."""

    weights: Floats
    penalty: Floats
    inverse: Floats
    noise: float

    @classmethod
    def of(cls, gram: Floats, clicked: Floats, penalty: Floats, noise: float, draws: Floats) -> Fit:
        """Of every resample, of which `draws` says how often each group is in it."""
        groups, size = clicked.shape
        fold = in_folds(groups)
        flat = gram.reshape(groups, -1)
        grams = [draws[:, fold == f] @ flat[fold == f] for f in range(FOLDS)]
        sides = [draws[:, fold == f] @ clicked[fold == f] for f in range(FOLDS)]
        all_grams, all_sides = sum(grams), sum(sides)
        weights = np.stack(
            [
                _solved(
                    (all_grams - grams[f]).reshape(-1, size, size), all_sides - sides[f], penalty
                )
                for f in range(FOLDS)
            ]
        )
        inverse = np.linalg.inv(gram.sum(axis=0) + np.diag(penalty))
        return cls(weights, penalty, inverse, noise)

    def value(self, base: Floats, slope: Floats, draws: Floats) -> Floats:
        """base + slope·w, summed over the groups of every resample."""
        fold = in_folds(len(base))
        found: Floats = draws @ base
        for f in range(FOLDS):
            mine = fold == f
            added: Floats = ((draws[:, mine] @ slope[mine]) * self.weights[f]).sum(axis=1)
            found = found + added
        return found

    def bias(self, slope: Floats) -> float:
        """How far the penalty is expected to move base + slope·w."""
        moved = self.inverse @ slope
        return float(np.sqrt(self.noise * (moved**2 @ self.penalty)))


def _solved(gram: Floats, side: Floats, penalty: Floats) -> Floats:
    found = np.linalg.solve(gram + np.diag(penalty), side[..., None])[..., 0]
    return found.astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class Values:
    """Per session, what the new and the old ranking earn: `[new or old, resample]`, the first of
    which is the log itself; `bias` is what the model's penalty adds to the error of the difference.
    """

    earned: Floats
    bias: float = 0.0

    @property
    def points(self) -> tuple[float, float]:
        """New and old, of the log itself."""
        return float(self.earned[0, 0]), float(self.earned[1, 0])

    @property
    def difference(self) -> Floats:
        """New minus old, of the log and of every resample."""
        return self.earned[0] - self.earned[1]

    @property
    def error(self) -> float:
        """The standard error of the difference."""
        resampled = self.difference[1:]
        spread = resampled.std(ddof=1) if len(resampled) > 1 else 0.0
        return float(np.hypot(spread, self.bias))


@dataclass(frozen=True, eq=False)
class Robust:
    """The doubly robust estimate, and how far clicks had to mend the model."""

    values: Values
    share: float
    """ω."""
    disagreement: float
    """δ/σ."""


def values_of(sums: GroupSums, fit: Fit, draws: Floats, t: int) -> dict[str, Values]:
    """Every estimate of target t but the doubly robust one."""
    # A resample may hold no session of a small part; it counts as one that earns nothing.
    sessions = np.maximum(draws @ sums.sessions[t], 1e-12)

    def both(name: str) -> Floats:
        base = sums.base[name][t]
        if name not in sums.slope:
            return np.stack([draws @ base[s] for s in (0, 1)]) / sessions
        slope = sums.slope[name][t]
        return np.stack([fit.value(base[s], slope[s], draws) for s in (0, 1)]) / sessions

    def bias(name: str) -> float:
        slope = sums.slope[name][t].sum(axis=1)
        return fit.bias(slope[0] - slope[1]) / float(sums.sessions[t].sum())

    plain = both(IPS)
    share = np.stack(
        [
            (draws @ sums.supported[t, s]) / np.maximum(draws @ sums.worth[t, s], 1e-12)
            for s in (0, 1)
        ]
    )
    return {
        DIRECT: Values(both(DIRECT), bias(DIRECT)),
        IPS: Values(plain),
        NORMALISED: Values(plain / np.maximum(share, 1e-12)),
        CLIPPED: Values(both(CLIPPED)),
        FILLED: Values(both(FILLED), bias(FILLED)),
    }


def doubly_robust(direct: Values, filled: Values) -> Robust:
    """The model, mended as far as it must be."""
    gap = filled.difference - direct.difference
    sigma = float(gap[1:].std(ddof=1)) if len(gap) > 1 else 0.0
    if sigma == 0:
        return Robust(filled, 1.0, 0.0)
    delta = float(gap[0])
    beyond = max(delta**2 - AGREEMENT * sigma**2, 0.0)
    share = beyond / (beyond + sigma**2)
    mixed = (1 - share) * direct.earned + share * filled.earned
    left = max(delta**2 - sigma**2, 0.0) + (UNSEEN * sigma) ** 2
    bias = np.hypot((1 - share) * np.sqrt(direct.bias**2 + left), share * filled.bias)
    return Robust(Values(mixed, float(bias)), share, delta / sigma)
