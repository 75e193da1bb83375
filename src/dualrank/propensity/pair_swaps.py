"""Examination measured by swapping two results: the RandPair intervention.

Joachims, Swaminathan and Schnabel, "Unbiased Learning-to-Rank with Biased Feedback" (WSDM 2017,
section 5.3): the first result is exchanged with the one at rank k in some sessions and everything
else stays. A document that was seen at 1 and at k in lists that are the same otherwise is as
relevant in both, and so is its surrounding:

    P(o_k)/P(o_1) = click-through of the swapped documents at k / their click-through at 1

This needs no list to be known as swapped: two lists of a query that differ by one exchange of the
first result are found in the log. Clicks are weighted as in `harvesting`, per swap and document.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualrank.data.lists import PADDING, RankedLists
from dualrank.propensity.bootstrap import Evidence, log_ratio
from dualrank.propensity.grouped_clicks import GroupedClicks, Sums
from dualrank.propensity.grouped_parts import Grouped


def pair_swaps(grouped: Grouped) -> Evidence:
    """Clicks of swapped documents at 1 and at k, per group."""
    statistics, support = grouped.total(_swaps)
    # The first position is what all others are relative to.
    statistics[:, :, 0] = 1.0
    support[0] = support[1:].max(initial=0)
    clicks = statistics.sum(axis=0)

    def missing(k: int) -> str:
        if support[k] == 0:
            return f"no two lists differ by a swap of positions 1 and {k + 1}"
        quiet = k if clicks[0, k] == 0 else 0
        return f"documents swapped between 1 and {k + 1} were never clicked at {quiet + 1}"

    return Evidence("pair-swaps", statistics, log_ratio, support, missing)


def _swaps(part: GroupedClicks) -> Sums:
    """Clicks per group, side and position, and the sessions behind them."""
    depth = part.depth
    sessions = np.bincount(part.list_of, part.sessions, len(part.lists))
    statistics = np.zeros((part.group_count, 2, depth))
    support = np.zeros(depth, dtype=np.int64)
    for k in range(1, depth):
        one, other = swapped_lists(part.lists, k)
        shown = (sessions[one] > 0) & (sessions[other] > 0)
        one, other = one[shown], other[shown]
        n, m = sessions[one], sessions[other]
        # Of both swapped documents one stands first in the list where the other stands at k: a
        # list's clicks at 1 and at k get the share of the other list, on either side.
        share = np.bincount(one, m / (n + m), len(sessions))
        share += np.bincount(other, n / (n + m), len(sessions))
        weight = share[part.list_of]
        for side, position in ((0, k), (1, 0)):
            statistics[:, side, k] = np.bincount(
                part.group, weight * part.clicks[:, position], part.group_count
            )
        support[k] = sessions[np.union1d(one, other)].sum()
    return statistics, support


def swapped_lists(lists: RankedLists, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of lists that are the same but for an exchange of positions 1 and k + 1."""
    documents = lists.documents
    long = np.flatnonzero(documents[:, k] != PADDING)
    if len(long) == 0:
        return long, long
    order = np.arange(documents.shape[1])
    order[[0, k]] = k, 0
    keys, exchanged = _digests(documents[long]), _digests(documents[long][:, order])
    unique, first = np.unique(keys, return_index=True)
    place = np.minimum(np.searchsorted(unique, exchanged), len(unique) - 1)
    one, other = long, long[first[place]]
    found = (unique[place] == exchanged) & (one < other)
    one, other = one[found], other[found]
    # Different lists may share a digest, if hardly ever.
    same = (documents[one][:, order] == documents[other]).all(axis=1)
    return one[same], other[same]


def _digests(documents: NDArray[np.int32]) -> NDArray[np.uint64]:
    """A number for each list, which takes less time to compare than the list itself."""
    rng = np.random.default_rng(0)
    multipliers = rng.integers(2**63, size=documents.shape[1], dtype=np.uint64) * np.uint64(2)
    return documents.astype(np.uint64) @ (multipliers + np.uint64(1))
