"""Fractional labels as whole-number grades, cut where the least order is lost.

Most learners and evaluation tools know grades 0 to 4 and no fractions. Documents that share a grade
are no longer told apart, which costs only where they belong to one query, and the more the further
their labels lie apart. So the cuts c_1 < … < c_(K−1) are those with the least

    Σ_q 1/W_q  Σ_{i<j in q, same grade}  w_i w_j |y_i − y_j|        W_q = Σ_{i in q} w_i

over labels y and weights w (the evidence behind a label: one that few sessions stand behind should
move no cut). All queries are cut alike, so that a grade means the same everywhere. Because a grade
is an interval of labels, the best cuts are found exactly, by dynamic programming over the sorted
labels; where there are more than `MOST_VALUES` different ones, over as many quantiles of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dualrank.errors import SettingsError

GRADES = 5
MOST_GRADES = 31
"""LightGBM and XGBoost have gains 2^y − 1 for grades up to 30."""
MOST_VALUES = 1_000

Floats = NDArray[np.float64]


def check_grades(grades: int) -> None:
    """Refuse numbers of grades that say nothing, or that learners do not take."""
    if not 2 <= grades <= MOST_GRADES:
        raise SettingsError(f"grades is a number from 2 to {MOST_GRADES}, not {grades}")


def cut_into_grades(
    labels: NDArray[np.floating],
    queries: NDArray[np.integer],
    grades: int = GRADES,
    *,
    weights: NDArray[np.floating] | None = None,
) -> NDArray[np.int64]:
    """The grade of every label, 0 to `grades` − 1; `queries` says which labels belong together.

    Fewer different labels than grades keep the order that they have, from grade 0.

    >>> cut_into_grades(np.array([0.1, 0.12, 0.5, 0.55, 0.9]), np.zeros(5, int), 3)
    array([0, 0, 1, 1, 2])
    """
    check_grades(grades)
    if len(labels) == 0:
        return np.zeros(0, dtype=np.int64)
    given: Floats = np.ones(len(labels)) if weights is None else weights.astype(np.float64)
    values, place = _places(np.asarray(labels, dtype=np.float64))
    firsts = _best_cuts(_lost_between(values, place, queries, given), min(grades, len(values)))
    return np.searchsorted(firsts, place, side="right").astype(np.int64)


def _places(labels: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """The different labels in order, or the means of quantiles of them, and each one's place."""
    values, place = np.unique(labels, return_inverse=True)
    if len(values) > MOST_VALUES:
        edges = np.unique(np.quantile(labels, np.linspace(0, 1, MOST_VALUES + 1)[1:-1]))
        _, place = np.unique(np.searchsorted(edges, labels), return_inverse=True)
        values = np.bincount(place, labels) / np.bincount(place)
    return values, place.astype(np.int64)


def _lost_between(
    values: Floats, place: NDArray[np.int64], queries: NDArray[np.integer], weights: Floats
) -> Floats:
    """What one grade for two places would lose, over the queries that have labels at both."""
    _, query = np.unique(queries, return_inverse=True)
    whole = np.bincount(query, weights)
    share = weights / np.sqrt(np.maximum(whole[query], np.finfo(float).tiny))
    shape = (int(query.max()) + 1, len(values))
    held = csr_array((share, (query, place)), shape=shape)
    lost: Floats = (held.T @ held).toarray() * np.abs(values[:, None] - values)
    return lost


def _best_cuts(lost: Floats, grades: int) -> NDArray[np.int64]:
    """The first place of every grade above the lowest, such that the least is lost.

    With L(a, b) the loss of one grade for the places a to b − 1, the best b places with k grades
    have B_k(b) = min_a B_(k−1)(a) + L(a, b).
    """
    count = len(lost)
    sums = np.zeros((count + 1, count + 1))
    sums[1:, 1:] = lost.cumsum(axis=0).cumsum(axis=1)
    whole = np.diagonal(sums)
    # Each pair stands twice in the square, which moves no minimum.
    of_grade = whole[:, None] + whole - 2 * sums
    of_grade[np.tril_indices(count + 1)] = np.inf
    best = of_grade[0].copy()
    starts = []
    for _ in range(grades - 1):
        total = best[:, None] + of_grade
        starts.append(total.argmin(axis=0))
        best = total.min(axis=0)
    cuts, end = [], count
    for start in reversed(starts):
        end = int(start[end])
        cuts.append(end)
    return np.array(cuts[::-1], dtype=np.int64)
