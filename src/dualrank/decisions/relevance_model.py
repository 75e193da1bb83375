"""The relevance of a pair told by its features and by where rankings put it.

    r(d) ≈ φ(d)·w

is the regression of clicks on exposure: Σ_d E_d φ_d φ_dᵀ w = Σ_d c_d φ_d, the sums of which add up
over queries, so that a bootstrap over queries fits it again in every resample at no cost.

φ holds the features (at most 32 of their principal directions), the scores of both rankings
relative to the other documents of the query, and how far up they put the pair. The last keep the
comparison honest: relevance that a ranker sees and the features do not tell must not be missed on
one side. The more there is, the more a small log would be misled by it; so each of these blocks is
drawn to 0, as far as makes its weights most likely (empirical Bayes: MacKay 1992). With many
sessions nothing is drawn any more.

Every query is judged by weights that were fitted to other queries (`FOLDS`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_DIRECTIONS = 32
SAMPLE = 20_000
FARTHEST = 4.0
"""Standard deviations from the mean beyond which a value says no more."""
FOLDS = 5
STEPS = 100
FREE, TIED = 1e-10, 1e9

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Basis:
    """φ of every pair, and which block each of its columns belongs to; block 0 is not drawn."""

    values: NDArray[np.float32]
    blocks: NDArray[np.int64]

    @classmethod
    def of(cls, blocks: list[Floats | NDArray[np.float32]], exposure: Floats) -> Basis:
        """Blocks of columns beside each other, each column on one scale where it was examined."""
        columns = np.concatenate([each.astype(np.float32) for each in blocks], axis=1)
        total = exposure.sum()
        mean = (exposure @ columns) / total
        spread = np.sqrt(np.maximum(exposure @ (columns - mean) ** 2 / total, 0.0))
        columns = (columns - mean) / np.where(spread > 1e-9, spread, np.inf)
        columns = np.clip(columns, -FARTHEST, FARTHEST)
        one = np.ones((len(columns), 1))
        numbers = [np.full(each.shape[1], i + 1) for i, each in enumerate(blocks)]
        return cls(
            np.concatenate([one, columns], axis=1).astype(np.float32),
            np.concatenate([[0], *numbers]),
        )

    @property
    def size(self) -> int:
        """How many columns there are."""
        return self.values.shape[1]


def principal_directions(features: NDArray[np.float32], seed: int) -> NDArray[np.float32]:
    """Features, standardised and turned into their principal directions, the widest first."""
    rng = np.random.default_rng([seed, 0x_9CA])
    rows = rng.choice(len(features), min(SAMPLE, len(features)), replace=False)
    sample = features[np.sort(rows)].astype(np.float64)
    mean, spread = sample.mean(axis=0), sample.std(axis=0)
    varied = spread > 1e-12 * np.maximum(np.abs(mean), 1e-300)
    scale = np.divide(1.0, spread, out=np.zeros(len(spread)), where=varied)
    standard = np.clip((sample - mean) * scale, -FARTHEST, FARTHEST)
    widths, directions = np.linalg.eigh(standard.T @ standard / len(standard))
    chosen = np.flatnonzero(widths > 1e-6)[::-1][:MOST_DIRECTIONS]
    turned = np.empty((len(features), len(chosen)), dtype=np.float32)
    for start in range(0, len(features), SAMPLE):
        part = slice(start, start + SAMPLE)
        near = np.clip((features[part] - mean) * scale, -FARTHEST, FARTHEST)
        turned[part] = near @ directions[:, chosen]
    return turned


def relative_to_query(scores: Floats, query: NDArray[np.integer]) -> Floats:
    """Scores minus the mean of their query; what a ranking leaves out counts as its lowest."""
    finite = np.isfinite(scores)
    lowest = scores[finite].min() if finite.any() else 0.0
    known = np.where(finite, scores, lowest)
    size = int(query.max()) + 1
    mean = np.bincount(query, known, size) / np.maximum(np.bincount(query, minlength=size), 1)
    found: Floats = known - mean[query]
    return found


def penalties(gram: Floats, target: Floats, noise: float, blocks: NDArray[np.int64]) -> Floats:
    """How much each weight is drawn to 0: noise over the variance of the weights of its block.

    That variance is the one that makes the clicks most likely, by expectation and maximisation.
    """
    drawn = np.where(blocks == 0, FREE, 1e4)
    for _ in range(STEPS):
        spread = np.linalg.inv(gram / noise + np.diag(drawn))
        weights = spread @ (target / noise)
        size = weights**2 + np.diag(spread)
        for block in range(1, int(blocks.max()) + 1):
            drawn[blocks == block] = min(1 / max(size[blocks == block].mean(), 1e-300), TIED)
    return drawn * noise
