"""The best pages for a query by BM25, without an index: from counts that are at hand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dualrank.pages.text_features import Parameters, bm25, inverse_document_frequency
from dualrank.pages.word_counts import FieldCounts, PageCounts, QueryWords

SEARCH = Parameters(k1=1.2, b=0.75)
"""What search engines commonly take, and the index of `index.py` does."""

_BLOCK_QUERIES = 64


def best_pages(
    pages: PageCounts, words: QueryWords, k: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The k best pages of every query, as pairs (query, page), best first.

    A page without any word of the query is never among them, so that a query can have fewer than
    k pages or none. Equal scores keep the order of the collection.
    """
    weights = _weights(pages.fields["whole"]).T.tocsr()
    # A repeated word counts once: k3 = 0.
    asked = (words.counts > 0).astype(np.float64)
    queries, found = [], []
    for start in range(0, asked.shape[0], _BLOCK_QUERIES):
        scores = (asked[start : start + _BLOCK_QUERIES] @ weights).tocsr()
        scores.sort_indices()
        for row in range(scores.shape[0]):
            inside = slice(scores.indptr[row], scores.indptr[row + 1])
            best = _best(scores.data[inside], k)
            found.append(scores.indices[inside][best].astype(np.int64))
            queries.append(np.full(len(best), start + row))
    return np.concatenate(queries), np.concatenate(found)


def _weights(field: FieldCounts) -> sparse.csr_array:
    """The BM25 weight of every word in every page."""
    counts = field.counts
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    values = bm25(
        counts.data.astype(np.float64),
        field.lengths[rows],
        field.mean_length,
        inverse_document_frequency(field)[counts.indices],
        np.ones(len(rows)),
        SEARCH,
    )
    return sparse.csr_array((values, counts.indices, counts.indptr), counts.shape)


def _best(scores: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """The places of the k highest, in order; only what can be among them is sorted."""
    if len(scores) > k:
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        candidates = np.flatnonzero(scores >= least)
    else:
        candidates = np.arange(len(scores))
    return candidates[np.argsort(-scores[candidates], kind="stable")][:k]
