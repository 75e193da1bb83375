"""A probability per query–document pair, and how well the log knows each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from dualrank.certainty import LEVEL, NORMAL_95
from dualrank.clicks.models.counting import Floats, ratio


@dataclass(frozen=True, eq=False)
class PairParameter:
    """`values[pair]` with a 95% interval, and what is believed of a pair that was never seen.

    The interval is that of the evidence alone, [0, 1] where nothing was seen: with the prior
    it would claim to know documents that nobody looked at. What all pairs share (examination,
    continuation) counts as known in it.
    """

    values: Floats
    low: Floats
    high: Floats
    unseen: float

    @classmethod
    def from_trials(
        cls, values: Floats, successes: Floats, trials: Floats, unseen: float
    ) -> PairParameter:
        """Jeffreys' interval for `successes` out of `trials`; fractions are allowed."""
        failures = trials - successes
        low = stats.beta.ppf(LEVEL / 2, successes + 0.5, failures + 0.5)
        high = stats.beta.ppf(1 - LEVEL / 2, successes + 0.5, failures + 0.5)
        return cls(
            values,
            np.minimum(np.where(successes < 1e-9, 0.0, low), values),
            np.maximum(np.where(failures < 1e-9, 1.0, high), values),
            unseen,
        )

    @classmethod
    def from_examinations(
        cls, values: Floats, clicks: Floats, skips: Floats, squares: Floats, unseen: float
    ) -> PairParameter:
        """Attraction, from clicks and from skips that may not have been examined.

        `skips` is Σ w and `squares` Σ w² over the skips of a pair, with w = P(examined | clicks).
        The observed information on α is

            clicks / α² + Σ w² / (1 − α)²

        which at the maximum, with T = clicks + Σ w, is T (1 − α + α Σ w² / Σ w) / (α (1 − α)): that
        of as many certain trials as stand above the fraction.
        """
        seen = clicks + skips
        alpha, certainty = ratio(clicks, seen), ratio(squares, skips, otherwise=1.0)
        trials = seen * (1 - alpha * (1 - certainty))
        return cls.from_trials(values, alpha * trials, trials, unseen)

    @classmethod
    def from_information(cls, values: Floats, information: Floats, unseen: float) -> PairParameter:
        """The normal interval of an estimate with this Fisher information, cut to [0, 1]."""
        reach = np.divide(
            NORMAL_95, np.sqrt(information), out=np.ones_like(values), where=information > 0
        )
        return cls(values, np.maximum(values - reach, 0.0), np.minimum(values + reach, 1.0), unseen)

    def complement(self) -> PairParameter:
        """The probability of the opposite."""
        return PairParameter(1 - self.values, 1 - self.high, 1 - self.low, 1 - self.unseen)

    def times(self, other: PairParameter) -> PairParameter:
        """The product of two probabilities that were estimated independently.

        Distances from value to bound add in squares on the log scale (Zou and Donner 2008).
        """

        def log(values: Floats) -> Floats:
            return np.log(np.maximum(values, 1e-12))

        value = log(self.values) + log(other.values)
        below = np.hypot(log(self.values) - log(self.low), log(other.values) - log(other.low))
        above = np.hypot(log(self.high) - log(self.values), log(other.high) - log(other.values))
        product = self.values * other.values
        return PairParameter(
            product,
            np.where((self.low == 0) | (other.low == 0), 0.0, np.exp(value - below)),
            np.maximum(np.minimum(np.exp(value + above), 1.0), product),
            self.unseen * other.unseen,
        )
