"""Looks at an experiment day by day: how often they are wrong, and published boundaries."""

import numpy as np
import pytest

from dualrank.decisions.always_valid import always_valid_radius
from dualrank.decisions.planned_looks import boundaries, looks_taken, spent


@pytest.mark.parametrize(
    ("looks", "published"),
    # Two-sided 5%, O'Brien–Fleming-like spending, equally spaced looks (Lan–DeMets, ld98).
    [
        (2, [2.963, 1.969]),
        (3, [3.710, 2.511, 1.993]),
        (5, [4.877, 3.357, 2.680, 2.290, 2.031]),
    ],
)
def test_boundaries_are_the_published_ones(looks, published):
    found = boundaries(np.arange(1, looks + 1) / looks)
    assert found == pytest.approx(published, abs=2e-3)


def test_planned_looks_are_wrong_as_often_as_they_may_be():
    rng = np.random.default_rng(1)
    fractions = np.sort(rng.random(12))
    fractions[-1] = 1.0
    steps = rng.normal(size=(40_000, 12)) * np.sqrt(np.diff(fractions, prepend=0))
    crossed = (np.abs(np.cumsum(steps, axis=1)) >= boundaries(fractions) * np.sqrt(fractions)).any(
        1
    )
    assert crossed.mean() == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / 40_000))


def test_the_level_is_spent_by_the_end_and_hardly_before():
    assert spent(1.0) == pytest.approx(0.05)
    assert spent(0.1) < 1e-6
    assert np.all(np.diff(spent(np.linspace(0.01, 1, 50))) >= 0)


def test_a_single_look_at_the_end_is_a_usual_test():
    assert boundaries([1.0])[0] == pytest.approx(1.96, abs=1e-3)


def test_looks_in_quick_succession_are_not_taken():
    assert looks_taken([0.1, 0.102, 0.2, 0.999, 1.01, 1.5]).tolist() == [0, 2, 3, 4]


def test_the_always_valid_interval_is_seldom_wrong_at_any_time():
    rng = np.random.default_rng(2)
    values = rng.normal(size=(1_000, 5_000))
    n = np.arange(1, 5_001)
    means = np.cumsum(values, axis=1) / n
    outside = np.abs(means[:, 49:]) > always_valid_radius(n[49:], 1.0)
    assert outside.any(axis=1).mean() <= 0.05


def test_the_always_valid_interval_is_narrowest_where_it_is_meant_to_be():
    n = 10_000
    here = always_valid_radius(n, 1.0)
    others = [always_valid_radius(n, 1.0, tightest=t) for t in (100, 1_000, 100_000, 1_000_000)]
    assert all(here < other for other in others)
    assert 1.96 / np.sqrt(n) < here < 2 * 1.96 / np.sqrt(n)
