"""How clicks on a displayed list hang together, once every probability on it is known.

Simulated users and fitted click models end in the same three ways to go down a page, each of which
says how likely a click is given the clicks above it. Sampling, the likelihood of a log and the
prediction of clicks follow from that alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Click = Callable[[int, Floats], NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class Pages(ABC):
    """Users in front of some lists: `attraction[l, k]` is P(click | examined), 0 at padding.

    What a user has in mind on the way down (where the last click was, whether the next document
    will be looked at) is summed out: only clicks are seen.
    """

    attraction: Floats

    def take(self, chosen: NDArray[np.integer]) -> Self:
        """The same users in front of these lists; a list may be chosen many times."""
        return replace(self, attraction=self.attraction[chosen])

    @abstractmethod
    def marginal(self) -> NDArray[np.float64]:
        """P(c_k = 1): clicks expected before anything is known of the session."""

    def conditional(self, clicks: NDArray[np.bool_]) -> NDArray[np.float64]:
        """P(c_k = 1 | c_1 … c_(k−1)) along these clicks, one row per list."""
        probabilities = np.empty(self.attraction.shape)

        def note(rank: int, probability: Floats) -> NDArray[np.bool_]:
            probabilities[:, rank] = probability
            return clicks[:, rank]

        self._walk(note)
        return probabilities

    def sample(self, rng: np.random.Generator) -> NDArray[np.bool_]:
        """One session on every list."""
        luck = rng.random(self.attraction.shape, dtype=np.float32)
        clicks = np.empty(luck.shape, dtype=bool)

        def decide(rank: int, probability: Floats) -> NDArray[np.bool_]:
            clicks[:, rank] = luck[:, rank] < probability
            return clicks[:, rank]

        self._walk(decide)
        return clicks

    def sample_counts(
        self, sessions: int | NDArray[np.integer], rng: np.random.Generator
    ) -> NDArray[np.integer]:
        """Clicks summed over so many sessions on each list: one number, or one for each."""
        counts = np.zeros(self.attraction.shape, dtype=np.int64)
        left = np.broadcast_to(sessions, len(counts)).copy()
        while left.any():
            lists = np.flatnonzero(left)
            counts[lists] += self.take(lists).sample(rng)
            left[lists] -= 1
        return counts

    @abstractmethod
    def _walk(self, click: Click) -> None:
        """Go down all lists at once; `click` hears P(c_k = 1 | c_<k) and says who clicks."""


@dataclass(frozen=True, eq=False)
class Independent(Pages):
    """Every document is clicked or not, whatever else is clicked: position-based users."""

    def marginal(self) -> NDArray[np.float64]:
        """The probabilities themselves."""
        return self.attraction.astype(np.float64)

    def sample(self, rng: np.random.Generator) -> NDArray[np.bool_]:
        """All positions at once, as no position waits for another."""
        luck = rng.random(self.attraction.shape, dtype=np.float32)
        clicks: NDArray[np.bool_] = luck < self.attraction
        return clicks

    def sample_counts(
        self, sessions: int | NDArray[np.integer], rng: np.random.Generator
    ) -> NDArray[np.integer]:
        """The sum of independent clicks is binomial: nobody needs to click one by one."""
        return rng.binomial(np.reshape(sessions, (-1, 1)), self.attraction)

    def _walk(self, click: Click) -> None:
        for rank in range(self.attraction.shape[1]):
            click(rank, self.attraction[:, rank])


@dataclass(frozen=True, eq=False)
class ByLastClick(Pages):
    """Examination depends on the rank and on the last click above.

        P(c_k = 1 | c_<k) = attraction_k · examination[k, r],   r = rank of the last click, 0: none

    Ranks of `examination`'s first axis count from 0, those of its second from 1.
    """

    examination: NDArray[np.float64]

    def marginal(self) -> NDArray[np.float64]:
        """P(c_k = 1) = Σ_r P(last click above k is r) · P(c_k = 1 | r)."""
        lists, depth = self.attraction.shape
        last = np.zeros((lists, depth + 1))
        last[:, 0] = 1.0
        probabilities = np.empty((lists, depth))
        for rank in range(depth):
            clicked = last * (self.attraction[:, rank, None] * self.examination[rank])
            probabilities[:, rank] = clicked.sum(axis=1)
            last -= clicked
            last[:, rank + 1] = probabilities[:, rank]
        return probabilities

    def _walk(self, click: Click) -> None:
        last = np.zeros(len(self.attraction), dtype=np.intp)
        for rank in range(self.attraction.shape[1]):
            clicked = click(rank, self.attraction[:, rank] * self.examination[rank, last])
            last = np.where(clicked, rank + 1, last)


@dataclass(frozen=True, eq=False)
class Chain(Pages):
    """Users read from the top until they stop; what is below is not examined.

        P(E_1 = 1) = 1
        P(c_k = 1 | E_k = 1) = attraction_k
        P(E_(k+1) = 1 | E_k = 1, c_k) = after_click_k or after_skip

    Cascade, dependent click model, click chain and both dynamic Bayesian networks differ only in
    what makes a user go on.
    """

    after_click: Floats
    after_skip: float

    def take(self, chosen: NDArray[np.integer]) -> Self:
        """The same users in front of these lists."""
        return replace(super().take(chosen), after_click=self.after_click[chosen])

    def marginal(self) -> NDArray[np.float64]:
        """P(c_k = 1) = P(E_k = 1) · attraction_k, with examination handed down the page."""
        going_on = self.attraction * self.after_click + (1 - self.attraction) * self.after_skip
        examined = np.cumprod(going_on, axis=1)
        examined = np.hstack([np.ones((len(examined), 1)), examined[:, :-1]])
        return np.asarray(self.attraction * examined, dtype=np.float64)

    def _walk(self, click: Click) -> None:
        reading = np.ones(len(self.attraction))
        for rank in range(self.attraction.shape[1]):
            attraction = self.attraction[:, rank]
            clicked = click(rank, attraction * reading)
            # A skip may also mean that nobody was looking.
            missed = 1 - reading * attraction
            skipped = reading * (1 - attraction)
            examined = np.divide(skipped, missed, out=np.zeros_like(missed), where=missed > 0)
            reading = np.where(clicked, self.after_click[:, rank], examined * self.after_skip)
