"""Whole-number grades: cut where the least order is lost."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualrank.engines import grades as module
from dualrank.engines.grades import cut_into_grades
from dualrank.errors import SettingsError


def lost(labels, queries, weights, graded):
    """The loss as it is defined, pair by pair."""
    total = 0.0
    for query in set(queries.tolist()):
        here = np.flatnonzero(queries == query)
        for i, j in combinations(here, 2):
            if graded[i] == graded[j]:
                total += weights[i] * weights[j] * abs(labels[i] - labels[j]) / weights[here].sum()
    return total


def least_lost(labels, queries, weights, count):
    """Every way to cut the different labels."""
    values = np.unique(labels)
    return min(
        lost(labels, queries, weights, np.searchsorted(values[list(cuts)], labels, side="right"))
        for cuts in combinations(range(1, len(values)), min(count, len(values)) - 1)
    )


@given(st.integers(0, 10_000), st.integers(2, 4))
def test_no_other_cuts_lose_less(seed, count):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 10))
    labels = rng.choice([0.0, 0.1, 0.25, 0.3, 0.5, 0.8, 0.9], size)
    queries, weights = rng.integers(2, size=size), rng.integers(1, 50, size).astype(float)
    found = cut_into_grades(labels, queries, count, weights=weights)
    assert lost(labels, queries, weights, found) == pytest.approx(
        least_lost(labels, queries, weights, count), abs=1e-9
    )
    assert (np.diff(found[np.argsort(labels)]) >= 0).all()
    assert found.max() == min(count, len(np.unique(labels))) - 1


def test_a_label_without_evidence_moves_no_cut():
    labels = np.array([0.1, 0.2, 0.5, 0.6, 9.0])
    queries = np.zeros(5, int)
    trusted = cut_into_grades(labels, queries, 2)
    assert trusted.tolist() == [0, 0, 0, 0, 1]
    weights = np.array([9.0, 9.0, 9.0, 9.0, 1e-3])
    assert cut_into_grades(labels, queries, 2, weights=weights).tolist() == [0, 0, 1, 1, 1]


def test_many_labels_are_cut_nearly_as_well_by_quantiles(monkeypatch):
    rng = np.random.default_rng(0)
    labels, queries = rng.beta(0.5, 3, 400), rng.integers(40, size=400)
    exact = lost(labels, queries, np.ones(400), cut_into_grades(labels, queries, 5))
    monkeypatch.setattr(module, "MOST_VALUES", 100)
    near = lost(labels, queries, np.ones(400), cut_into_grades(labels, queries, 5))
    assert exact <= near < 1.1 * exact


def test_equal_labels_and_no_labels_have_their_grades():
    assert cut_into_grades(np.full(3, 0.2), np.arange(3)).tolist() == [0, 0, 0]
    assert cut_into_grades(np.zeros(0), np.zeros(0, int)).tolist() == []


@pytest.mark.parametrize("count", [1, -1, 32])
def test_numbers_of_grades_that_nobody_takes_are_refused(count):
    with pytest.raises(SettingsError, match="from 2 to 31"):
        cut_into_grades(np.ones(2), np.zeros(2, int), count)
