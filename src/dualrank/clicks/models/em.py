"""Expectation–maximisation: one driver for all models, and when it stops."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from dualrank.clicks.models.counting import Floats, ratio
from dualrank.errors import SettingsError
from dualrank.pace import Heard
from dualrank.progress import shows_progress


@dataclass(frozen=True, eq=False)
class Parameters:
    """Those of the pairs, for every part of the log, and those that all pairs share."""

    pairs: list[tuple[Floats, ...]]
    shared: tuple[Floats, ...]

    def __iter__(self) -> Iterator[tuple[Floats, ...]]:
        yield from self.pairs
        yield self.shared


Step = Callable[[Parameters], tuple[Parameters, float]]


@dataclass(frozen=True)
class EM:
    """How to climb, and when to stop.

    `tolerance` is in nats of the whole log: it stops when it estimates that less is still to be
    gained. A hundredth of a nat moves no parameter by more than about a seventh of its standard
    error (√0.02), however large the log is. `accelerated` leaps along the path of EM (SQUAREM,
    Varadhan and Roland 2008), which ends in the same place after far fewer iterations.
    """

    max_iterations: Annotated[int, "At most so many iterations of EM.", {"min": 1}] = 5_000
    tolerance: Annotated[
        float, "EM stops when less is to be gained (nats of the whole log).", {"min": 0.0}
    ] = 0.01
    accelerated: bool = True

    def __post_init__(self) -> None:
        if self.max_iterations < 1:
            raise SettingsError(f"EM needs at least one iteration, not {self.max_iterations}")
        if not 0 <= self.tolerance < math.inf:
            raise SettingsError(f"tolerance is a number of nats, 0 or more, not {self.tolerance}")


@dataclass(frozen=True)
class Climb:
    """The objective along the way, which never falls, and whether it had settled at the end."""

    objective: tuple[float, ...] = ()
    iterations: int = 0
    converged: bool = True


class Way:
    """How much of the way from the first gap to the tolerance is done, in percent."""

    def __init__(self, tolerance: float, progress: Heard | None) -> None:
        self._tolerance, self._progress = tolerance, progress
        self._first, self._done = 0.0, 0.0

    def report(self, gap: float) -> None:
        """Tell of this gap, if it is the smallest so far."""
        if self._progress is None or not self._tolerance < gap < np.inf:
            return
        self._first = max(self._first, gap)
        if self._first > gap:
            share = np.log(self._first / gap) / np.log(self._first / self._tolerance)
            self._done = max(self._done, float(share))
            self._progress(100 * self._done, 100)


@shows_progress("EM")
def climb(
    step: Step, start: Parameters, settings: EM, *, progress: Heard | None = None
) -> tuple[Parameters, Climb]:
    """Repeat `step`, which gives better parameters and the objective of those it was given.

    Two steps give the direction r = θ₁ − θ₀ and how fast it fades, v = θ₂ − 2 θ₁ + θ₀. With
    L = ‖r‖/‖v‖, about 1/(1 − rate), the leap is θ₀ + 2 L r + L² v; it is taken back where the
    objective would fall. The gap to the top is about L times the last gain. It fades by about the
    same share in every step, so that its logarithm tells `progress` how much of the way is done.
    """
    objective: list[float] = []
    way = Way(settings.tolerance, progress)
    iterations, calm = 0, 0
    now = Parameters(list(start.pairs), start.shared)
    while iterations < settings.max_iterations:
        one, value = step(now)
        two, value_of_one = step(one)
        objective += [value, value_of_one]
        iterations += 2
        leap, length = _leap(now, one, two)
        if settings.accelerated and length > 1:
            after, value_of_leap = step(leap)
            iterations += 1
            if value_of_leap >= value_of_one:
                objective.append(value_of_leap)
                two = after
            del after
        now = two
        # Parameters of all pairs are large: nothing is kept of those that were passed.
        del one, two, leap
        gap = length * (value_of_one - value)
        way.report(gap)
        calm = calm + 1 if gap < settings.tolerance else 0
        if calm == 2:
            return now, Climb(tuple(objective), iterations, True)
    return now, Climb(tuple(objective), iterations, False)


def _leap(zero: Parameters, one: Parameters, two: Parameters) -> tuple[Parameters, float]:
    """Where the path leads to, and L; a value that would leave (0, 1) takes the second step.

    What is left of the first two is let go part by part, so that no more than three are in memory.
    """
    moving, fading = 0.0, 0.0
    for parts in zip(zero, one, two, strict=True):
        for a, b, c in zip(*parts, strict=True):
            direction = np.ravel(b - a)
            bend = np.ravel(c - b) - direction
            moving += float(direction @ direction)
            fading += float(bend @ bend)
    if moving == 0 or fading == 0:
        return two, 1.0
    length = math.sqrt(moving / fading)
    pairs = []
    for number, far in enumerate(two.pairs):
        pairs.append(_farther(zero.pairs[number], one.pairs[number], far, length))
        zero.pairs[number] = one.pairs[number] = ()
    return Parameters(pairs, _farther(zero.shared, one.shared, two.shared, length)), length


def _farther(
    zero: tuple[Floats, ...], one: tuple[Floats, ...], two: tuple[Floats, ...], length: float
) -> tuple[Floats, ...]:
    leap = []
    for a, b, c in zip(zero, one, two, strict=True):
        far = a + 2 * length * (b - a) + length**2 * (c - 2 * b + a)
        leap.append(np.where((far > 0) & (far < 1), far, c))
    return tuple(leap)


@dataclass(frozen=True)
class Prior:
    """A Beta prior on a probability, as `strength` trials seen beforehand that succeed with `mean`.

    Where `mean` is None it is read off the log (each model says how), so that what is known of
    few sessions is drawn towards what is usual in this log. A mean of one half, as other
    tools have, would call most documents of a web log more attractive the less is known of them.
    """

    strength: Annotated[
        float,
        "How many trials the prior of a document counts as.",
        {"name": "--prior-strength", "min": 0.0},
    ] = 2.0
    mean: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.strength < math.inf:
            raise SettingsError(f"the strength of a prior is 0 or more, not {self.strength}")
        if self.mean is not None and not 0 < self.mean < 1:
            raise SettingsError(f"the mean of a prior is between 0 and 1, not {self.mean}")

    def at(self, mean: float) -> Beta:
        """The prior with its mean, which is `mean` unless it was given."""
        mean = float(np.clip(mean, 1e-4, 1 - 1e-4)) if self.mean is None else self.mean
        return Beta(mean * self.strength, (1 - mean) * self.strength, mean)


@dataclass(frozen=True)
class Beta:
    """Pseudo-counts of successes and failures."""

    successes: float
    failures: float
    mean: float

    def estimate(self, successes: Floats, trials: Floats) -> Floats:
        """(successes + prior) / (trials + prior): the mode of the posterior, in (0, 1)."""
        total = trials + self.successes + self.failures
        # Rounding may put a sum of expectations a little above the number of trials.
        return np.minimum(ratio(successes + self.successes, total, self.mean), 1.0)

    def log_density(self, values: Floats) -> float:
        """The log density up to a constant: what smoothing adds to the objective."""
        if self.successes + self.failures == 0:
            return 0.0
        return float(
            self.successes * np.log(values).sum() + self.failures * np.log1p(-values).sum()
        )


HALF = Beta(0.5, 0.5, 0.5)
"""One trial that half succeeds: for what all pairs share, it keeps values off 0 and 1, no more."""


def weighted_log(counts: Floats, probabilities: Floats) -> float:
    """Σ n log p, where what was never seen counts nothing."""
    seen = counts > 0
    return float(counts[seen] @ np.log(probabilities[seen]))
