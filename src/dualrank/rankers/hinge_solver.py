"""Dual coordinate descent for weighted pairs, one query at a time.

With U_p the weight of the pair p = (i, j) in the objective, the problem and its dual are

    min_w  ½‖w‖² + Σ_p U_p · max(0, 1 − w·(x_i − x_j))
    max_α  Σ_p α_p − ½‖w(α)‖²   with 0 ≤ α_p ≤ U_p  and  w(α) = Σ_p α_p (x_i − x_j).

A step solves the dual exactly for one α_p (Hsieh et al. 2008, as in liblinear). Pairs of a
query share few documents, so the steps work on the scores s = Xw of these documents and their
Gram matrix K = XXᵀ: a pair whose α_p stays costs a comparison, one whose α_p moves costs as many
additions as the query has documents, and features are read only to compute s on arrival and to
update w on leaving.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from dualrank.rankers.pairs import Pairs

# Sums may be reordered, so that they are vectorised; infinities and nan keep their meaning.
_FAST = {"reassoc", "contract", "nsz"}


class Blocks(NamedTuple):
    """The pairs of each query in terms of the query's own documents.

    Block b has the documents `rows[row_offsets[b]:row_offsets[b + 1]]` and the pairs
    `pair_offsets[b]:pair_offsets[b + 1]`, whose `better` and `worse` count within the block.
    Its Gram matrix starts at `gram[gram_offsets[b]]`.
    """

    rows: NDArray[np.int64]
    row_offsets: NDArray[np.int64]
    better: NDArray[np.int32]
    worse: NDArray[np.int32]
    pair_offsets: NDArray[np.int64]
    gram: NDArray[np.float64]
    gram_offsets: NDArray[np.int64]


def make_blocks(features: NDArray[np.float32], pairs: Pairs) -> Blocks:
    """Number the documents of each query's pairs and compute their Gram matrices."""
    block = np.repeat(np.arange(len(pairs.offsets) - 1), np.diff(pairs.offsets))
    keys = np.concatenate([block * len(features) + rows for rows in (pairs.better, pairs.worse)])
    documents, place = np.unique(keys, return_inverse=True)
    sizes = np.bincount(documents // len(features), minlength=len(pairs.offsets) - 1)
    row_offsets = np.append(0, np.cumsum(sizes))
    local = (place - np.tile(row_offsets[block], 2)).astype(np.int32)
    rows = documents % len(features)
    gram_offsets = np.append(0, np.cumsum(sizes**2))
    return Blocks(
        rows=rows,
        row_offsets=row_offsets,
        better=local[: len(pairs)],
        worse=local[len(pairs) :],
        pair_offsets=pairs.offsets,
        gram=_gram_matrices(features, rows, row_offsets, gram_offsets),
        gram_offsets=gram_offsets,
    )


@numba.njit(cache=True, fastmath=_FAST)
def _dot(x, w):  # type: ignore[no-untyped-def]
    total = 0.0
    for f in range(len(w)):
        total += x[f] * w[f]
    return total


@numba.njit(cache=True, fastmath=_FAST)
def _gram_matrices(features, rows, row_offsets, gram_offsets):  # type: ignore[no-untyped-def]
    gram = np.empty(gram_offsets[-1])
    for b in range(len(row_offsets) - 1):
        own = rows[row_offsets[b] : row_offsets[b + 1]]
        K = gram[gram_offsets[b] : gram_offsets[b + 1]].reshape(len(own), len(own))
        for i in range(len(own)):
            x = features[own[i]].astype(np.float64)
            for j in range(i + 1):
                K[i, j] = K[j, i] = _dot(features[own[j]], x)
    return gram


@numba.njit(cache=True, fastmath=_FAST)
def descend(features, blocks, order, U, alpha, w):  # type: ignore[no-untyped-def]
    """One epoch: a step on every pair, queries in the given order; `alpha` and `w` change."""
    largest = np.diff(blocks.row_offsets).max()
    scores, moved = np.empty(largest), np.empty(largest)
    for b in order:
        own = blocks.rows[blocks.row_offsets[b] : blocks.row_offsets[b + 1]]
        m = len(own)
        K = blocks.gram[blocks.gram_offsets[b] : blocks.gram_offsets[b + 1]].reshape(m, m)
        for k in range(m):
            scores[k] = _dot(features[own[k]], w)
            moved[k] = 0.0
        for p in range(blocks.pair_offsets[b], blocks.pair_offsets[b + 1]):
            i, j = blocks.better[p], blocks.worse[p]
            slope = scores[i] - scores[j] - 1.0
            if (slope >= 0.0 and alpha[p] <= 0.0) or (slope <= 0.0 and alpha[p] >= U[p]):
                continue
            curvature = K[i, i] + K[j, j] - 2.0 * K[i, j]
            # Two equal documents cannot be told apart: their loss is 1 and α_p at its bound.
            wanted = alpha[p] - slope / curvature if curvature > 0.0 else U[p]
            step = min(max(wanted, 0.0), U[p]) - alpha[p]
            alpha[p] += step
            moved[i] += step
            moved[j] -= step
            for k in range(m):
                scores[k] += step * (K[i, k] - K[j, k])
        for k in range(m):
            if moved[k] != 0.0:
                x = features[own[k]]
                for f in range(len(w)):
                    w[f] += moved[k] * x[f]


@numba.njit(cache=True, fastmath=_FAST)
def weights_of(features, blocks, alpha):  # type: ignore[no-untyped-def]
    """w(α) = Σ_p α_p (x_i − x_j)."""
    w = np.zeros(features.shape[1])
    share = np.zeros(len(blocks.rows))
    for b in range(len(blocks.row_offsets) - 1):
        first = blocks.row_offsets[b]
        for p in range(blocks.pair_offsets[b], blocks.pair_offsets[b + 1]):
            share[first + blocks.better[p]] += alpha[p]
            share[first + blocks.worse[p]] -= alpha[p]
    for k in range(len(share)):
        x = features[blocks.rows[k]]
        for f in range(len(w)):
            w[f] += share[k] * x[f]
    return w


@numba.njit(cache=True, fastmath=_FAST)
def hinge_loss(features, blocks, U, w):  # type: ignore[no-untyped-def]
    """Σ_p U_p · max(0, 1 − w·(x_i − x_j))."""
    scores = np.empty(len(blocks.rows))
    for k in range(len(scores)):
        scores[k] = _dot(features[blocks.rows[k]], w)
    total = 0.0
    for b in range(len(blocks.row_offsets) - 1):
        first = blocks.row_offsets[b]
        for p in range(blocks.pair_offsets[b], blocks.pair_offsets[b + 1]):
            margin = scores[first + blocks.better[p]] - scores[first + blocks.worse[p]]
            total += U[p] * max(0.0, 1.0 - margin)
    return total
