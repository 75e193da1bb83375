"""Sorting the documents of every query at once."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray


@numba.njit(cache=True)
def rank_segments(scores: NDArray[np.floating], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """All documents, query by query, best first; ties keep the order of the input.

    The documents of query `q` are `offsets[q]:offsets[q + 1]`. This is the order of
    `np.lexsort((-scores, query_of_document))`, without sorting the queries as well, which takes
    several times as long. The scores hold no nan.
    """
    order = np.empty(len(scores), np.int64)
    for q in range(len(offsets) - 1):
        start, stop = offsets[q], offsets[q + 1]
        ranked = np.argsort(-scores[start:stop], kind="mergesort")
        for i in range(stop - start):
            order[start + i] = start + ranked[i]
    return order


def by_rank(
    scores: NDArray[np.floating], mask: NDArray[np.bool_], worth: NDArray[np.floating]
) -> NDArray[np.float64]:
    """What every document of `[lists, positions]` gets where rank r (from 0) is worth `worth[r]`.

    Documents of equal score share what their ranks are worth together. By a stable sort they would
    keep the order in which they stand, and a score that tells nothing would repeat what was shown.

    >>> by_rank(np.array([[1.0, 2.0, 1.0]]), np.ones((1, 3), bool), np.arange(3.0))
    array([[1.5, 0. , 1.5]])
    """
    keys = np.where(mask, -scores, np.inf)
    order = np.argsort(keys, axis=1, kind="stable")
    ranked = np.take_along_axis(keys, order, axis=1)
    differs = np.ones(ranked.shape, dtype=bool)
    differs[:, 1:] = ranked[:, 1:] != ranked[:, :-1]
    tie = np.cumsum(differs.ravel()) - 1
    total = np.bincount(tie, np.broadcast_to(worth, ranked.shape).ravel())
    shared = (total / np.bincount(tie))[tie].reshape(ranked.shape)
    found = np.empty(ranked.shape)
    np.put_along_axis(found, order, shared, axis=1)
    return found
