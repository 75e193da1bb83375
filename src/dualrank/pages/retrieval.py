"""The best pages for a query by BM25, without an index: from counts that are at hand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dualrank.pages.text_features import Parameters, bm25, inverse_document_frequency
from dualrank.pages.word_counts import PageCounts, QueryWords

SEARCH = Parameters(k1=1.2, b=0.75)
"""What search engines commonly take, and the index of `index.py` does."""

_BLOCK_QUERIES = 64


def best_pages(
    pages: PageCounts,
    words: QueryWords,
    k: int,
    *,
    field: str = "whole",
    parameters: Parameters = SEARCH,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The k best pages of every query, as pairs (query, page), best first.

    A page without any word of the query is never among them, so that a query can have fewer than
    k pages or none. Equal scores keep the order of the collection.
    """
    weights = _weights(pages, field, parameters).T.tocsr()
    asked = words.counts
    if parameters.k3 == 0:
        asked = sparse.csr_array(
            (np.ones_like(asked.data), asked.indices, asked.indptr), asked.shape
        )
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


def _weights(pages: PageCounts, field: str, parameters: Parameters) -> sparse.csr_array:
    """The BM25 weight of every word in every page."""
    counts = pages.fields[field]
    rows = np.repeat(np.arange(counts.counts.shape[0]), np.diff(counts.counts.indptr))
    columns = counts.counts.indices
    values = bm25(
        counts.counts.data.astype(np.float64),
        counts.lengths[rows],
        counts.mean_length,
        inverse_document_frequency(counts)[columns],
        np.ones(len(rows)),
        parameters,
    )
    return sparse.csr_array((values, columns, counts.counts.indptr), counts.counts.shape)


def _best(scores: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """The places of the k highest, in order; only what can be among them is sorted."""
    if len(scores) > k:
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        candidates = np.flatnonzero(scores >= least)
    else:
        candidates = np.arange(len(scores))
    return candidates[np.argsort(-scores[candidates], kind="stable")][:k]
