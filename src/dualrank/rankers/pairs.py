"""Which document should stand above which other one, read off grades or clicks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualrank.data.dataset import Dataset
from dualrank.data.lists import PADDING, RankedLists
from dualrank.errors import DataError


@dataclass(frozen=True, eq=False)
class Pairs:
    """Weighted preferences: row `better[p]` should score above row `worse[p]`, with `weight[p]`.

    The pairs of one query stand together: those of query `q` are `offsets[q]:offsets[q + 1]`.
    `normaliser` is the n by which the sum of their losses is divided.
    """

    better: NDArray[np.int32]
    worse: NDArray[np.int32]
    weight: NDArray[np.float64]
    offsets: NDArray[np.int64]
    normaliser: float

    def __len__(self) -> int:
        return len(self.better)


def preference_pairs_from_grades(dataset: Dataset) -> Pairs:
    """Every pair of documents of one query with `grade_i > grade_j`, each of weight 1.

    n is the number of pairs, so that C weighs the mean loss of a pair against `½‖w‖²`, however
    many documents a query has. SVM-rank divides by the number of queries instead: its C is this
    one times queries / pairs.

    >>> data = Dataset.from_arrays([[0.0]] * 4, qid=[1, 1, 2, 2], grades=[0, 2, 1, 1])
    >>> pairs = preference_pairs_from_grades(data)
    >>> pairs.better, pairs.worse
    (array([1], dtype=int32), array([0], dtype=int32))
    """
    grades = dataset.require_grades()
    better, worse = [], []
    for start, end in zip(dataset.offsets[:-1], dataset.offsets[1:], strict=True):
        own = grades[start:end]
        i, j = np.nonzero(own[:, None] > own[None, :])
        better.append((start + i).astype(np.int32))
        worse.append((start + j).astype(np.int32))
    counts = np.array([len(rows) for rows in better])
    if not counts.any():
        raise DataError(
            "nothing to learn from: no query has two documents of different grades, "
            f"among {len(dataset)} queries"
        )
    return Pairs(
        better=np.concatenate(better),
        worse=np.concatenate(worse),
        weight=np.ones(counts.sum()),
        offsets=np.append(0, np.cumsum(counts[counts > 0])),
        normaliser=float(counts.sum()),
    )


def preference_pairs_from_clicks(
    lists: RankedLists, clicks: ArrayLike, weighted: ArrayLike | None = None
) -> Pairs:
    """Every clicked document against every other one displayed with it (Joachims et al. 2017).

    `clicks[l, k]` counts the clicks on rank k + 1 of list l, and `weighted[l, k]` is what they are
    worth, such as their number over the examination of the rank; without it the count itself
    (NoCorrect). Document i, displayed at rank k, is preferred to each other document j of its list
    with the weight a_ij = weighted[l, k]. Where both i and j were clicked, both directions exist.
    n is the number of clicks, as in the paper, where each click is one observation. It does not
    depend on `weighted`: twice the weight everywhere is twice the C.

    The loss depends on i and j alone, so equal pairs from several lists of a query are merged
    into one with the sum of their weights.

    >>> lists = RankedLists(np.array([[4, 7, -1]], np.int32), np.array([0], np.int32))
    >>> pairs = preference_pairs_from_clicks(lists, [[0, 3, 0]], weighted=[[0, 6, 0]])
    >>> pairs.better, pairs.worse, pairs.weight
    (array([7], dtype=int32), array([4], dtype=int32), array([6.]))
    """
    counts = _checked_clicks(lists, clicks)
    worth = counts if weighted is None else _checked_clicks(lists, weighted)
    clicked, rank = np.nonzero(counts)
    shown = lists.documents[clicked]
    others = (shown != PADDING) & (np.arange(lists.depth) != rank[:, None])
    if not others.any():
        raise DataError(
            "nothing to learn from: no list has a click on one of two or more documents, "
            f"among {len(lists)} lists"
        )
    rivals = others.sum(axis=1)
    better = np.repeat(lists.documents[clicked, rank], rivals)
    worse = shown[others]
    weight = np.repeat(worth[clicked, rank], rivals)

    # A query's rows stand together in a data set, so this order also keeps queries together.
    key = better.astype(np.int64) * (int(lists.documents.max()) + 1) + worse
    _, first, merged = np.unique(key, return_index=True, return_inverse=True)
    query = np.repeat(lists.queries[clicked], rivals)[first]
    total = np.zeros(len(first))
    np.add.at(total, merged, weight)
    return Pairs(
        better=better[first],
        worse=worse[first],
        weight=total,
        offsets=np.r_[0, np.flatnonzero(np.diff(query)) + 1, len(first)],
        normaliser=float(counts.sum()),
    )


def _checked_clicks(lists: RankedLists, clicks: ArrayLike) -> NDArray[np.float64]:
    counts = np.asarray(clicks, dtype=np.float64)
    if counts.shape != lists.documents.shape:
        raise DataError(
            f"clicks has shape {counts.shape}, but the lists have shape {lists.documents.shape}"
        )
    wrong = np.argwhere(~(np.isfinite(counts) & (counts >= 0)))
    if len(wrong):
        row, rank = wrong[0]
        raise DataError(
            f"list {row} has {counts[row, rank]:g} clicks at position {rank + 1}; "
            "counts are 0 or more"
        )
    unseen = np.argwhere((counts > 0) & ~lists.mask)
    if len(unseen):
        row, rank = unseen[0]
        raise DataError(
            f"list {row} has a click at position {rank + 1}, where no document was displayed"
        )
    return counts
