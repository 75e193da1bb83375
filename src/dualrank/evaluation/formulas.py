"""The formulas of the metrics, each for all queries at once.

Every function takes one value per document in ranked order: the documents of query `q` are
`offsets[q]:offsets[q + 1]`, best first. Ranks beyond `cutoff` do not count. The result has one
value per query. They are loops because queries differ in length: padding all of them to the
longest would cost more than the arithmetic.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray


@numba.njit(cache=True)
def discounted_cumulative_gain(
    gains: NDArray[np.float64],
    offsets: NDArray[np.int64],
    cutoff: int,
    discounts: NDArray[np.float64],
) -> NDArray[np.float64]:
    """DCG@k = Σ_{r ≤ k} (2^{y_r} − 1) / log2(r + 1).

    `gains` are 2^y − 1, `discounts` are 1 / log2(r + 1) for ranks from 1.
    """
    values = np.zeros(len(offsets) - 1)
    for q in range(len(values)):
        for rank in range(min(cutoff, offsets[q + 1] - offsets[q])):
            values[q] += gains[offsets[q] + rank] * discounts[rank]
    return values


@numba.njit(cache=True)
def expected_reciprocal_rank(
    satisfaction: NDArray[np.float64], offsets: NDArray[np.int64], cutoff: int
) -> NDArray[np.float64]:
    """ERR@k = Σ_{r ≤ k} 1/r · R_r · Π_{j < r} (1 − R_j) (Chapelle et al. 2009).

    `satisfaction` is R = (2^y − 1) / 2^ymax, the chance that a user who reads the document
    stops there.
    """
    values = np.zeros(len(offsets) - 1)
    for q in range(len(values)):
        reading = 1.0
        for rank in range(min(cutoff, offsets[q + 1] - offsets[q])):
            stops = satisfaction[offsets[q] + rank]
            values[q] += reading * stops / (rank + 1)
            reading *= 1.0 - stops
    return values


@numba.njit(cache=True)
def average_precision(
    relevant: NDArray[np.bool_], offsets: NDArray[np.int64], cutoff: int
) -> NDArray[np.float64]:
    """AP@k = 1/R · Σ_{r ≤ k, y_r ≥ 1} precision@r, with R the relevant documents of the query.

    R counts all of them, also beyond the cutoff, as in trec_eval.
    """
    values = np.zeros(len(offsets) - 1)
    for q in range(len(values)):
        found = 0
        for rank in range(offsets[q + 1] - offsets[q]):
            if relevant[offsets[q] + rank]:
                found += 1
                if rank < cutoff:
                    values[q] += found / (rank + 1)
        if found:
            values[q] /= found
    return values


@numba.njit(cache=True)
def reciprocal_rank(
    relevant: NDArray[np.bool_], offsets: NDArray[np.int64], cutoff: int
) -> NDArray[np.float64]:
    """RR@k = 1 / rank of the first document with y ≥ 1, or 0 where it is beyond k."""
    values = np.zeros(len(offsets) - 1)
    for q in range(len(values)):
        for rank in range(min(cutoff, offsets[q + 1] - offsets[q])):
            if relevant[offsets[q] + rank]:
                values[q] = 1.0 / (rank + 1)
                break
    return values


@numba.njit(cache=True)
def precision(
    relevant: NDArray[np.bool_], offsets: NDArray[np.int64], cutoff: int
) -> NDArray[np.float64]:
    """P@k = 1/k · |{r ≤ k: y_r ≥ 1}|; a list shorter than k is not excused, as in trec_eval."""
    values = np.zeros(len(offsets) - 1)
    for q in range(len(values)):
        found = 0
        for rank in range(min(cutoff, offsets[q + 1] - offsets[q])):
            found += relevant[offsets[q] + rank]
        values[q] = found / cutoff
    return values
