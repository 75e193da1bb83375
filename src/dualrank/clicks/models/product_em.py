"""EM where a click needs two things: P(c = 1) = attraction of the pair · examination of the cell.

A cell is what examination depends on: the rank (position-based model), or rank and last click
(user browsing model). The log then reduces to how often each pair was clicked and skipped in each
cell; an iteration costs a few nanoseconds per such entry, however many sessions stand behind it.

A factor can be moved between the two sides without changing any probability. `anchor` takes that
freedom away: examination of that cell is 1, so attraction is the probability of a click there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.models.counting import Floats, ratio, tally
from dualrank.clicks.models.em import EM, HALF, Beta, Climb, Parameters, climb, weighted_log
from dualrank.clicks.models.pair_parameter import PairParameter


@dataclass(frozen=True, eq=False)
class ProductCounts:
    """Clicks and skips per (pair, cell), sorted by pair; `offsets` says where each pair starts."""

    offsets: NDArray[np.int64]
    cell: NDArray[np.int32]
    clicks: Floats
    skips: Floats
    cells: int

    @classmethod
    def grouped(
        cls,
        pair: NDArray[np.integer],
        cell: NDArray[np.integer],
        clicks: NDArray[np.number],
        skips: NDArray[np.number],
        *,
        pairs: int,
        cells: int,
    ) -> ProductCounts:
        """Sum entries of the same pair and cell."""
        key, inverse = np.unique(pair.astype(np.int64) * cells + cell, return_inverse=True)
        return cls(
            np.searchsorted(key, np.arange(pairs + 1) * cells),
            (key % cells).astype(np.int32),
            tally(inverse, clicks, len(key)),
            tally(inverse, skips, len(key)),
            cells,
        )

    @property
    def pairs(self) -> int:
        """How many pairs there are, with and without entries."""
        return len(self.offsets) - 1

    @property
    def pair(self) -> NDArray[np.int64]:
        """The pair of every entry."""
        return np.repeat(np.arange(self.pairs), np.diff(self.offsets))

    def per_pair(self, values: Floats) -> Floats:
        """Sums of per-entry values over each pair."""
        return tally(self.pair, values, self.pairs)

    def per_cell(self, values: Floats) -> Floats:
        """Sums of per-entry values over each cell."""
        return tally(self.cell, values, self.cells)


@dataclass(frozen=True, eq=False)
class ProductFit:
    """Both factors, and how they were reached."""

    attraction: Floats
    examination: Floats
    climb: Climb


def fit_product(
    counts: ProductCounts,
    attraction_prior: Beta,
    settings: EM,
    *,
    examination_prior: Beta = HALF,
    anchor: int | None = 0,
    start: ProductFit | None = None,
) -> ProductFit:
    """Climb to the mode of the posterior, from `start` or from the click-through of the cells.

    With o the examination and r the attraction behind a skip, the E step has

        P(r = 1 | skip) = α (1 − θ) / (1 − α θ),    P(o = 1 | skip) = θ (1 − α) / (1 − α θ)
    """
    pair_clicks, cell_clicks = counts.per_pair(counts.clicks), counts.per_cell(counts.clicks)
    pair_shows = pair_clicks + counts.per_pair(counts.skips)
    cell_shows = cell_clicks + counts.per_cell(counts.skips)

    def step(now: Parameters) -> tuple[Parameters, float]:
        attraction, examination = now
        attracted, examined, log_likelihood = _expect(
            counts.offsets, counts.cell, counts.skips, attraction, examination
        )
        log_likelihood += weighted_log(pair_clicks, attraction)
        log_likelihood += weighted_log(cell_clicks, examination)
        objective = log_likelihood + attraction_prior.log_density(attraction)
        free = examination if anchor is None else np.delete(examination, anchor)
        objective += examination_prior.log_density(free)
        better_examination = examination_prior.estimate(cell_clicks + examined, cell_shows)
        if anchor is not None:
            better_examination[anchor] = 1.0
        better_attraction = attraction_prior.estimate(pair_clicks + attracted, pair_shows)
        return (better_attraction, better_examination), objective

    if start is None:
        first = _start(pair_clicks, pair_shows, cell_clicks, cell_shows, attraction_prior, anchor)
    else:
        first = start.attraction, start.examination
    (attraction, examination), path = climb(step, first, settings)
    return ProductFit(attraction, examination, path)


def attraction_of_pairs(counts: ProductCounts, fit: ProductFit, unseen: float) -> PairParameter:
    """Attraction with its evidence: clicks, and skips by w = P(examined | skip)."""
    attraction = fit.attraction[counts.pair]
    examination = fit.examination[counts.cell]
    neither = np.maximum(1 - attraction * examination, _TINY)
    w = examination * (1 - attraction) / neither
    clicks, skips, squares = (
        counts.per_pair(values)
        for values in (counts.clicks, counts.skips * w, counts.skips * w * w)
    )
    return PairParameter.from_examinations(fit.attraction, clicks, skips, squares, unseen)


def _start(
    pair_clicks: Floats,
    pair_shows: Floats,
    cell_clicks: Floats,
    cell_shows: Floats,
    prior: Beta,
    anchor: int | None,
) -> tuple[Floats, Floats]:
    through = ratio(cell_clicks, cell_shows, otherwise=0.5)
    highest = through.max() if anchor is None else through[anchor]
    examination = np.clip(through / highest if highest > 0 else through, 0.05, 0.95)
    if anchor is not None:
        examination[anchor] = 1.0
    # Two pseudo-trials at least: a start at 0 or 1 would never move.
    strength = max(prior.successes + prior.failures, 2.0)
    attraction = (pair_clicks + strength * prior.mean) / (pair_shows + strength)
    return attraction, examination


_TINY = 1e-12


@numba.njit(cache=True)
def _expect(
    offsets: NDArray[np.int64],
    cell: NDArray[np.int32],
    skips: Floats,
    attraction: Floats,
    examination: Floats,
) -> tuple[Floats, Floats, float]:
    """Skips that were attractive, per pair; that were examined, per cell; their log-likelihood."""
    attracted = np.empty(len(attraction))
    examined = np.zeros(len(examination))
    log_likelihood = 0.0
    for pair in range(len(attraction)):
        alpha = attraction[pair]
        unseen = 0.0
        for entry in range(offsets[pair], offsets[pair + 1]):
            if skips[entry] == 0:
                continue
            theta = examination[cell[entry]]
            neither = max(1.0 - alpha * theta, _TINY)
            share = skips[entry] / neither
            unseen += share * (1.0 - theta)
            examined[cell[entry]] += share * theta * (1.0 - alpha)
            log_likelihood += skips[entry] * math.log(neither)
        attracted[pair] = alpha * unseen
    return attracted, examined, log_likelihood
