"""The shared EM of position-based and user browsing model: counts, starts, scale."""

import numpy as np
import pytest

from dualrank.clicks.models.em import EM, Beta
from dualrank.clicks.models.pbm import position_counts
from dualrank.clicks.models.product_em import ProductCounts, ProductFit, fit_product
from dualrank.clicks.models.ubm import browsing_counts

PRIOR = Beta(0.2, 0.8, 0.2)


@pytest.fixture(scope="module")
def log(known_model, rotated_lists):
    return known_model("pbm", 24).sample(rotated_lists(6), 20_000, 0)


def test_counts_are_those_of_the_log(log):
    counts = position_counts(log)
    assert counts.clicks.sum() == log.clicks_per_list.sum()
    assert counts.clicks.sum() + counts.skips.sum() == log.sessions * 4
    np.testing.assert_array_equal(counts.per_cell(counts.clicks), log.clicks_per_list.sum(axis=0))


def test_browsing_cells_add_up_to_positions(log):
    fine, coarse = browsing_counts(log), position_counts(log)
    by_rank = fine.per_cell(fine.skips).reshape(4, 5).sum(axis=1)
    np.testing.assert_array_equal(by_rank, coarse.per_cell(coarse.skips))
    # The first rank has no click above it.
    assert fine.per_cell(fine.skips + fine.clicks).reshape(4, 5)[0, 1:].sum() == 0


def test_a_warm_start_ends_in_the_same_place_sooner(log):
    counts = position_counts(log)
    cold = fit_product([counts], PRIOR, EM(tolerance=1e-8))
    warm = fit_product([counts], PRIOR, EM(tolerance=1e-8), start=cold)
    np.testing.assert_allclose(warm.examination, cold.examination, atol=1e-5)
    assert warm.climb.iterations < cold.climb.iterations


def test_the_anchor_is_one_and_only_fixes_the_scale(log):
    counts = position_counts(log)
    nothing = Beta(0.0, 0.0, 0.2)
    em = EM(max_iterations=50_000, tolerance=1e-7)
    anchored = fit_product([counts], nothing, em, examination_prior=nothing)
    free = fit_product([counts], nothing, em, examination_prior=nothing, anchor=None)
    assert anchored.examination[0] == 1
    ratio = free.examination / free.examination[0]
    np.testing.assert_allclose(ratio, anchored.examination, atol=2e-3)


def test_a_start_at_the_solution_stays_there():
    """One pair seen at two ranks, where the shares can be read off: θ_2 = (2/10)/(4/10)."""
    counts = ProductCounts.grouped(
        np.array([0, 0]), np.array([0, 1]), np.array([4, 2]), np.array([6, 8]), pairs=1, cells=2
    )
    nothing = Beta(0.0, 0.0, 0.5)
    start = ProductFit([np.array([0.4])], np.array([1.0, 0.5]), None)
    found = fit_product([counts], nothing, EM(), examination_prior=nothing, start=start)
    np.testing.assert_allclose(found.examination, [1.0, 0.5], atol=1e-12)
    np.testing.assert_allclose(found.attraction[0], [0.4], atol=1e-12)
