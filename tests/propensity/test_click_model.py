"""The summit of the position-based model's likelihood, which EM climbs more slowly."""

import numpy as np
import pytest

from dualrank.clicks.models.em import EM, Beta
from dualrank.clicks.models.pbm import position_counts
from dualrank.clicks.models.product_em import fit_product
from dualrank.propensity.estimators import estimate
from dualrank.propensity.grouped_clicks import GroupedClicks
from dualrank.propensity.pbm_examination import _informative, _Profile, position_based_model


def em(cells, rounds, depth=10):
    """The textbook's algorithm; examination and the log-likelihood after so many rounds."""
    d, k, n, c = cells.document, cells.position, cells.impressions, cells.clicks
    shown, at = np.maximum(np.bincount(d, n), 1), np.bincount(k, n)
    p, gamma = np.full(depth, 0.5), np.full(len(shown), 0.5)
    for _ in range(rounds):
        a, b = p[k], gamma[d]
        neither = 1 - a * b
        p = np.bincount(k, c + (n - c) * a * (1 - b) / neither) / at
        gamma = np.bincount(d, c + (n - c) * b * (1 - a) / neither) / shown
    return p / p[0]


@pytest.mark.parametrize("sessions", [3_000, 30_000])
def test_newton_reaches_the_summit_that_em_climbs_towards(world, sessions):
    grouped = GroupedClicks.of(world(queries=40, seed=1).of_several_rankers(sessions))
    found = estimate(grouped, "pbm", resamples=0).examination
    cells = _informative(grouped.cells.moved, np.ones(10, dtype=bool))
    reached = {
        rounds: _Profile.at(cells, np.log(em(cells, rounds))).likelihood for rounds in (300, 4_000)
    }
    summit = _Profile.at(cells, np.log(found)).likelihood
    assert summit >= reached[4_000] - 1e-6 > reached[300]
    assert summit - reached[4_000] < 0.02
    np.testing.assert_allclose(found, em(cells, 4_000), rtol=0.02)


def test_the_slope_at_the_summit_is_flat_and_curvature_is_its_derivative(world):
    grouped = GroupedClicks.of(world(queries=40, seed=2).of_several_rankers(5_000))
    evidence = position_based_model(grouped)
    log_p = evidence.log_curve(evidence.statistics.sum(axis=0)[None])[0]
    assert np.abs(evidence.statistics[:, 0].sum(axis=0)[1:]).max() < 1e-2
    cells = _informative(grouped.cells.moved, np.ones(10, dtype=bool))
    here = _Profile.at(cells, log_p + 0.1 * np.cos(np.arange(10)))
    slope, curvature = here.scores(grouped.group_count).sum(axis=0), here.curvature()
    by_group = here.curvature_by_group(grouped.group_count)
    np.testing.assert_allclose(by_group.sum(axis=0), curvature, atol=1e-6)
    np.testing.assert_allclose(here.slope(), slope, atol=1e-6)
    for k in range(10):
        ahead, behind = (
            _Profile.at(cells, here.log_p + sign * 1e-4 * (np.arange(10) == k)) for sign in (1, -1)
        )
        by_hand = (ahead.likelihood - behind.likelihood) / 2e-4
        assert slope[k] == pytest.approx(by_hand, rel=1e-3, abs=1e-2)
        slopes = [side.scores(1 + cells.group.max()).sum(axis=0) for side in (behind, ahead)]
        np.testing.assert_allclose(
            curvature[k], (slopes[0] - slopes[1]) / 2e-4, rtol=2e-2, atol=0.05
        )


def test_a_document_that_is_always_clicked_bounds_its_own_relevance(world):
    """Its γ is 1/p at the position of greatest p, and the likelihood stays finite."""
    grouped = GroupedClicks.of(world(queries=40, seed=3).of_several_rankers(400))
    cells = grouped.cells.moved
    always = np.bincount(cells.document, cells.clicks) == np.bincount(
        cells.document, cells.impressions
    )
    assert always[cells.document].any()
    found = estimate(grouped, "pbm")
    assert np.isfinite(found.examination).all()
    assert (found.low <= found.examination).all()


def test_the_click_models_em_without_priors_ends_at_the_same_curve(world):
    log = world(queries=40, seed=5).of_several_rankers(30_000)
    free = Beta(0.0, 0.0, 0.5)
    counts = position_counts(log)
    fit = fit_product(counts, free, EM(20_000, tolerance=1e-6), examination_prior=free)
    found = estimate(log, "pbm", resamples=0).examination
    np.testing.assert_allclose(found, fit.examination, rtol=2e-3)
