"""EM where a click needs two things: P(c = 1) = attraction of the pair · examination of the cell.

A cell is what examination depends on: the rank (position-based model), or rank and last click
(user browsing model). The log then reduces to how often each pair was clicked and skipped in each
cell; an iteration costs a few nanoseconds per such entry, however many sessions stand behind it.

A factor can be moved between the two sides without changing any probability. `anchor` takes that
freedom away: examination of that cell is 1, so attraction is the probability of a click there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    """Both factors, attraction for every part of the log, and how they were reached."""

    attraction: Sequence[Floats]
    examination: Floats
    climb: Climb


def fit_product(
    parts: Sequence[ProductCounts],
    attraction_prior: Beta,
    settings: EM,
    *,
    examination_prior: Beta = HALF,
    anchor: int | None = 0,
    start: ProductFit | None = None,
) -> ProductFit:
    """Climb to the mode of the posterior, from `start` or from the click-through of the cells.

    `parts` are the counts of every part of the log, whose expectations of cells add up. With o the
    examination and r the attraction behind a skip, the E step has

        P(r = 1 | skip) = α (1 − θ) / (1 − α θ),    P(o = 1 | skip) = θ (1 − α) / (1 − α θ)
    """
    cell_clicks, cell_shows = (np.zeros(parts[0].cells) for _ in range(2))
    for counts in parts:
        cell_clicks += counts.per_cell(counts.clicks)
        cell_shows += counts.per_cell(counts.clicks + counts.skips)

    def step(now: Parameters) -> tuple[Parameters, float]:
        (examination,) = now.shared
        free = examination if anchor is None else np.delete(examination, anchor)
        objective = examination_prior.log_density(free) + weighted_log(cell_clicks, examination)
        better, examined = list[tuple[Floats, ...]](), cell_clicks.copy()
        for counts, (attraction,) in zip(parts, now.pairs, strict=True):
            attracted, shows, seen, log_likelihood = _expect(
                counts.offsets,
                counts.cell,
                counts.clicks,
                counts.skips,
                attraction,
                examination,
            )
            objective += log_likelihood + attraction_prior.log_density(attraction)
            better.append((attraction_prior.estimate(attracted, shows),))
            examined += seen
        better_examination = examination_prior.estimate(examined, cell_shows)
        if anchor is not None:
            better_examination[anchor] = 1.0
        return Parameters(better, (better_examination,)), objective

    if start is None:
        examination = _start(cell_clicks, cell_shows, anchor)
        attraction = [_start_of_pairs(counts, attraction_prior) for counts in parts]
    else:
        examination, attraction = start.examination, list(start.attraction)
    first = Parameters([(each,) for each in attraction], (examination,))
    found, path = climb(step, first, settings)
    return ProductFit([each for (each,) in found.pairs], found.shared[0], path)


def attraction_of_pairs(
    counts: ProductCounts, attraction: Floats, examination: Floats, unseen: float
) -> PairParameter:
    """Attraction with its evidence: clicks, and skips by w = P(examined | skip)."""
    alpha, theta = attraction[counts.pair], examination[counts.cell]
    w = theta * (1 - alpha) / np.maximum(1 - alpha * theta, _TINY)
    clicks, skips, squares = (
        counts.per_pair(values)
        for values in (counts.clicks, counts.skips * w, counts.skips * w * w)
    )
    return PairParameter.from_examinations(attraction, clicks, skips, squares, unseen)


def _start(cell_clicks: Floats, cell_shows: Floats, anchor: int | None) -> Floats:
    through = ratio(cell_clicks, cell_shows, otherwise=0.5)
    highest = through.max() if anchor is None else through[anchor]
    examination: Floats = np.clip(through / highest if highest > 0 else through, 0.05, 0.95)
    if anchor is not None:
        examination[anchor] = 1.0
    return examination


def _start_of_pairs(counts: ProductCounts, prior: Beta) -> Floats:
    # Two pseudo-trials at least: a start at 0 or 1 would never move.
    strength = max(prior.successes + prior.failures, 2.0)
    clicks = counts.per_pair(counts.clicks)
    shows = clicks + counts.per_pair(counts.skips)
    return (clicks + strength * prior.mean) / (shows + strength)


_TINY = 1e-12


@numba.njit(cache=True)
def _expect(
    offsets: NDArray[np.int64],
    cell: NDArray[np.int32],
    clicks: Floats,
    skips: Floats,
    attraction: Floats,
    examination: Floats,
) -> tuple[Floats, Floats, Floats, float]:
    """Per pair, displays that were attractive and all of them; per cell, skips that were examined.

    The log-likelihood is without Σ clicks log θ, which cells have in common.
    """
    attracted, shows = np.empty(len(attraction)), np.empty(len(attraction))
    examined = np.zeros(len(examination))
    log_likelihood = 0.0
    for pair in range(len(attraction)):
        alpha = attraction[pair]
        unseen = clicked = skipped = 0.0
        for entry in range(offsets[pair], offsets[pair + 1]):
            clicked += clicks[entry]
            if skips[entry] == 0:
                continue
            skipped += skips[entry]
            theta = examination[cell[entry]]
            neither = max(1.0 - alpha * theta, _TINY)
            share = skips[entry] / neither
            unseen += share * (1.0 - theta)
            examined[cell[entry]] += share * theta * (1.0 - alpha)
            log_likelihood += skips[entry] * math.log(neither)
        attracted[pair] = clicked + alpha * unseen
        shows[pair] = clicked + skipped
        if clicked > 0:
            log_likelihood += clicked * math.log(alpha)
    return attracted, shows, examined, log_likelihood
