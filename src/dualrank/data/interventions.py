"""Lists as shown where positions are to be compared: shuffled, swapped, of several rankers.

Each shows the same documents at several positions, from which examination can be estimated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dualrank.data.lists import PADDING, RankedLists


def shuffle_lists(lists: RankedLists, copies: int, rng: np.random.Generator) -> RankedLists:
    """Every list `copies` times, each time in another order; padding stays at the end."""
    documents = np.tile(lists.documents, (copies, 1))
    luck = rng.random(documents.shape) + (documents == PADDING)
    shuffled = np.take_along_axis(documents, np.argsort(luck, axis=1), axis=1)
    return RankedLists(shuffled, np.tile(lists.queries, copies))


def swap_with_first(lists: RankedLists) -> RankedLists:
    """Every list as it is, and with its first result exchanged with each of the others."""
    parts = [lists]
    for k in range(1, lists.depth):
        long = np.flatnonzero(lists.mask[:, k])
        documents = lists.documents[long]
        documents[:, [0, k]] = documents[:, [k, 0]]
        parts.append(RankedLists(documents, lists.queries[long]))
    return join_lists(parts)


def join_lists(parts: Sequence[RankedLists]) -> RankedLists:
    """The lists of several rankers, of equal depth, each different list once."""
    documents = np.concatenate([part.documents for part in parts])
    queries = np.concatenate([part.queries for part in parts])
    distinct, first = np.unique(documents, axis=0, return_index=True)
    return RankedLists(distinct, queries[first])
