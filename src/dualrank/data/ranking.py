"""Sorting the documents of every query at once."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

# Up to about this length comparing all pairs is faster than sorting, as nothing branches.
_RUN = 32


@numba.njit(cache=True)
def rank_segments(scores: NDArray[np.floating], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """All documents, query by query, best first; ties keep the order of the input.

    The documents of query `q` are `offsets[q]:offsets[q + 1]`. This is the order of
    `np.lexsort((-scores, query_of_document))`, without sorting the queries as well. The scores
    hold no nan.
    """
    order = np.empty(len(scores), np.int64)
    longest = _RUN
    for q in range(len(offsets) - 1):
        longest = max(longest, offsets[q + 1] - offsets[q])
    scratch = np.empty(longest, np.int64)
    for q in range(len(offsets) - 1):
        start, stop = offsets[q], offsets[q + 1]
        for run in range(start, stop, _RUN):
            _sort_run(scores, order, scratch, run, min(run + _RUN, stop))
        width = _RUN
        while width < stop - start:
            for left in range(start, stop - width, 2 * width):
                _merge(scores, order, scratch, left, left + width, min(left + 2 * width, stop))
            width *= 2
    return order


@numba.njit(cache=True)
def _sort_run(
    scores: NDArray[np.floating],
    order: NDArray[np.int64],
    ranks: NDArray[np.int64],
    start: int,
    stop: int,
) -> None:
    """Rank each of a few documents by counting those that stand before it."""
    for i in range(stop - start):
        before_i = 0
        for j in range(i):
            j_is_first = scores[start + j] >= scores[start + i]
            before_i += j_is_first
            ranks[j] += 1 - j_is_first
        ranks[i] = before_i
    for i in range(stop - start):
        order[start + ranks[i]] = start + i


@numba.njit(cache=True)
def _merge(
    scores: NDArray[np.floating],
    order: NDArray[np.int64],
    scratch: NDArray[np.int64],
    left: int,
    middle: int,
    right: int,
) -> None:
    """Merge the sorted neighbours `left:middle` and `middle:right`; on a tie the left is first."""
    waiting = middle - left
    for i in range(waiting):  # a slice assignment would take seconds to compile
        scratch[i] = order[left + i]
    taken = 0
    for place in range(left, right):
        if taken == waiting:
            return
        if middle < right and scores[order[middle]] > scores[scratch[taken]]:
            order[place] = order[middle]
            middle += 1
        else:
            order[place] = scratch[taken]
            taken += 1
