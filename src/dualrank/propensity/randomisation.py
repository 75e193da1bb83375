"""Examination measured by shuffling results: the RandList baseline.

When the results of a list are shuffled before they are shown, every position has the same
expected relevance, so by section 3.2 of the paper

    E[c_k] = P(o_k = 1) · E[y] ∝ P(o_k = 1)

and the click-through rate of each position, relative to the first, is its relative examination.
In a mixture of list lengths the lower positions are seen on other queries than the upper ones, so
that k and 1 are compared on the lists that reach down to k.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dualrank.certainty import NORMAL_95
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists
from dualrank.errors import DataError
from dualrank.propensity.bootstrap import Evidence, log_ratio
from dualrank.propensity.grouped_clicks import GroupedClicks, Sums
from dualrank.propensity.grouped_parts import Grouped
from dualrank.propensity.propensity import Propensity

SESSIONS_PER_BLOCK = 50_000


def collect_shuffled_clicks(
    dataset: Dataset,
    lists: RankedLists,
    user: PositionBasedUser,
    sessions: int,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Show shuffled lists to simulated users: clicks and impressions per position.

    Only full lists take part. In a mixture of lengths the lower positions would be seen only on
    queries with many results, whose relevance differs, and the estimate would be confounded.
    """
    full = np.flatnonzero(lists.mask.all(axis=1))
    if len(full) == 0:
        raise DataError(
            f"no list shows {lists.depth} documents, so shuffling cannot compare the positions"
        )
    relevance = user.perceived_relevance(
        lists.gather(dataset.require_grades())[full], dataset.max_grade
    ).astype(np.float32)
    examination = user.examination(lists.depth).astype(np.float32)
    clicks = np.zeros(lists.depth, dtype=np.int64)
    for start in range(0, sessions, SESSIONS_PER_BLOCK):
        count = min(SESSIONS_PER_BLOCK, sessions - start)
        shown = rng.permuted(relevance[rng.integers(len(full), size=count)], axis=1)
        clicks += (rng.random(shown.shape, dtype=np.float32) < shown * examination).sum(axis=0)
        if progress:
            progress(start + count, sessions)
    return clicks, np.full(lists.depth, sessions)


def from_shuffled_clicks(clicks: NDArray[np.int64], impressions: NDArray[np.int64]) -> Propensity:
    """Relative click-through per position, with 95% intervals of the ratio to the first.

    The interval is that of a log ratio of two proportions (delta method):
    Var[log ĉ_k/ĉ_1] ≈ (1 − ĉ_k)/(n ĉ_k) + (1 − ĉ_1)/(n ĉ_1).
    Clicks of one session are weakly dependent, which this leaves out.
    """
    if (clicks == 0).any():
        position = int(np.flatnonzero(clicks == 0)[0]) + 1
        raise DataError(
            f"position {position} was never clicked in {impressions[position - 1]} shuffled "
            "sessions; collect more of them"
        )
    rate = clicks / impressions
    examination = rate / rate[0]
    variance = (1 - rate) / clicks
    spread = NORMAL_95 * np.sqrt(variance + variance[0])
    spread[0] = 0.0
    return Propensity(
        examination,
        method="randomisation",
        sessions=int(impressions.max()),
        low=examination * np.exp(-spread),
        high=examination * np.exp(spread),
    )


def shuffled(grouped: Grouped) -> Evidence:
    """Clicks at k and at 1 on the lists that show both, of a log whose lists were shuffled.

    That they were must be known or tested (`position_memory`): the clicks do not tell.
    """
    statistics, both = grouped.total(_beside_the_first)
    clicks = statistics.sum(axis=0)

    def missing(k: int) -> str:
        quiet = k if clicks[0, k] == 0 else 0
        return (
            f"position {quiet + 1} was never clicked in the {both[k]} sessions that show positions "
            f"1 and {k + 1}"
        )

    return Evidence("randomisation", statistics, log_ratio, both, missing)


def _beside_the_first(part: GroupedClicks) -> Sums:
    """Clicks at k and at 1 per group, and sessions, on the lists that show both."""
    at_first = part.mask * part.clicks[:, :1]
    beside_first = part.mask[:, :1] * part.clicks
    statistics = np.stack([part.sum_by_group(c) for c in (beside_first, at_first)], axis=1)
    return statistics, part.sessions @ (part.mask & part.mask[:, :1])


def position_memory(grouped: Grouped) -> float:
    """How much of a document's position its name tells: 0 in shuffled lists, 1 in fixed ones.

    The intraclass correlation of positions, taken from the middle of each list, within
    query–document pairs: Σ_d (S_d² − Q_d) / Σ_d (n_d − 1) Q_d, where S and Q sum the n_d
    deviations and their squares. nan where no pair was shown twice.
    """
    (sums,) = grouped.total(lambda part: (_memory(part),))
    return float(sums[0] / sums[1]) if sums[1] > 0 else float("nan")


def _memory(part: GroupedClicks) -> NDArray[np.float64]:
    """Both sums of `position_memory`."""
    row, position = np.nonzero(part.mask)
    middle = np.bincount(row, position) / np.bincount(row)
    deviation = position - middle[row]
    document = part.lists.documents[part.list_of[row], position]
    n = part.sessions[row]
    times = np.bincount(document, n)
    total = np.bincount(document, n * deviation)
    squares = np.bincount(document, n * deviation**2)
    most = (np.maximum(times - 1, 0) * squares).sum()
    return np.array([(total**2 - squares)[times > 1].sum(), most])
