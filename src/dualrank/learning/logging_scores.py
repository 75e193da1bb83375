"""What the logging ranker must have thought of the documents it displayed.

A model that imitates the order (Plackett and Luce's) takes the logging ranker's score for z(x) plus
what features do not tell, with a Gumbel distribution. The order itself says more: with
D_i = Σ e^{z} over the document on rank i and all candidates below it, displayed or not,

    e^{−s_k} = Σ_{i ≤ k} E_i / D_i,        E_i ~ Exp(1), independent

given the order (the gaps between the first arrivals of a Poisson process), so that

    s_k ≈ −log Σ_{i ≤ k} 1 / D_i.

Where features tell all that the logging ranker knew, s_k is z(x_k); where they tell nothing, s_k
depends on the rank alone. In between, it is the best of both.

Of a list with gaps it is known how its documents stand to each other, but not what else stood above
or below them. The model holds among them alone: the ranks and the candidates are then theirs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists
from dualrank.learning.model import Model

CELLS_PER_BLOCK = 4_000_000


@dataclass(frozen=True, eq=False)
class Ground:
    """A model that imitates the order displayed, as the ground that another stands on.

    `scores` are z of every document. What lies under lists is divided by `scale`, so that it
    differs within lists by 1 on average.
    """

    model: Model
    scores: NDArray[np.float32]
    scale: float

    @classmethod
    def of(cls, model: Model, lists: RankedLists, dataset: Dataset) -> Ground:
        """The ground under these lists."""
        scores = model.predict(dataset)
        return cls(model, scores, spread_of(logging_scores(scores, lists, dataset), lists.mask))

    def under(self, lists: RankedLists, dataset: Dataset) -> NDArray[np.float32]:
        """s of the documents displayed, laid out like the lists."""
        found = logging_scores(self.scores, lists, dataset) / self.scale
        return found.astype(np.float32)

    def by_order(self, lists: RankedLists, dataset: Dataset) -> NDArray[np.float64]:
        """What the order tells of the documents displayed beyond their features: s − z, scaled."""
        by_features = lists.gather(self.scores) / self.scale
        return self.under(lists, dataset).astype(np.float64) - by_features


def logging_scores(
    imitated: NDArray[np.floating], lists: RankedLists, dataset: Dataset
) -> NDArray[np.float64]:
    """The expected scores of displayed documents, laid out like the lists, 0 at padding.

    `imitated` is z for every document of `dataset`, on the scale of the imitation's likelihood.
    """
    scores, mask = imitated.astype(np.float64), lists.mask
    total = np.where(mask, scores[lists.documents], -np.inf)
    # log D from the last rank up, beginning with what was not displayed; then log Σ 1/D down.
    total = np.hstack([total, _not_displayed(scores, lists, dataset)[:, None]])
    log_d = np.logaddexp.accumulate(total[:, ::-1], axis=1)[:, :0:-1]
    inverse = np.where(mask, -log_d, -np.inf)
    return np.where(mask, -np.logaddexp.accumulate(inverse, axis=1), 0.0)


def spread_of(values: NDArray[np.floating], mask: NDArray[np.bool_]) -> float:
    """The standard deviation of laid-out values within lists; 1 where they do not differ."""
    counts = np.maximum(mask.sum(axis=1, keepdims=True), 1)
    apart = values - np.where(mask, values, 0.0).sum(axis=1, keepdims=True) / counts
    return float(apart[mask].std()) or 1.0


def _not_displayed(
    scores: NDArray[np.float64], lists: RankedLists, dataset: Dataset
) -> NDArray[np.float64]:
    """log Σ e^z over the candidates of each list's query that stood below what it displays."""
    found = np.empty(len(lists))
    lengths = dataset.lengths[lists.queries]
    block = max(1, CELLS_PER_BLOCK // int(dataset.lengths.max()))
    for start in range(0, len(lists), block):
        part = slice(start, start + block)
        counts, first = lengths[part], dataset.offsets[lists.queries[part]]
        begins = np.append(0, np.cumsum(counts)[:-1])
        rows = np.arange(counts.sum()) + np.repeat(first - begins, counts)
        values = scores[rows]
        shown = lists.documents[part]
        inside = shown >= 0
        own = np.repeat(begins - first, inside.sum(axis=1)) + shown[inside]
        values[own] = -np.inf
        most = np.maximum.reduceat(values, begins)
        most = np.where(np.isfinite(most), most, 0.0)
        with np.errstate(divide="ignore"):
            sums = np.add.reduceat(np.exp(values - np.repeat(most, counts)), begins)
            found[part] = most + np.log(sums)
    found[lists.have_gaps] = -np.inf
    return found
