"""The summit of the position-based model's likelihood, and resamples that are one step from it."""

import numpy as np
import pytest
from scipy.optimize import minimize

from dualrank.clicks.models.em import EM, Beta
from dualrank.clicks.models.pbm import position_counts
from dualrank.clicks.models.product_em import fit_product
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.click_log import ClickLog
from dualrank.errors import DataError
from dualrank.propensity.estimators import estimate
from dualrank.propensity.grouped_clicks import GroupedClicks
from dualrank.propensity.pbm_examination import position_based_model


def textbook_em(cells, rounds, depth=10):
    """Examination after so many rounds of the plain algorithm."""
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
def test_the_curve_is_where_the_textbooks_em_climbs_to(world, sessions):
    grouped = GroupedClicks.of(world(queries=40, seed=1).of_several_rankers(sessions))
    found = estimate(grouped, "pbm", resamples=0).examination
    np.testing.assert_allclose(found, textbook_em(grouped.cells.moved, 4_000), rtol=0.02)


def test_no_other_curve_and_relevance_make_the_log_likelier(world):
    grouped = GroupedClicks.of(world(queries=12, seed=2).of_several_rankers(6_000))
    cells = grouped.cells.moved
    _, document = np.unique(cells.document, return_inverse=True)
    skips = cells.impressions - cells.clicks

    def loss(parameters):
        log_p, log_gamma = np.append(0.0, parameters[:9]), parameters[9:]
        log_u = np.minimum(log_p[cells.position] + log_gamma[document], -1e-9)
        u = np.exp(log_u)
        residual = skips * u / (1 - u) - cells.clicks
        slopes = [np.bincount(cells.position, residual)[1:], np.bincount(document, residual)]
        return -(cells.clicks @ log_u + skips @ np.log1p(-u)), np.concatenate(slopes)

    start = np.full(9 + document.max() + 1, -1.0)
    # Documents without clicks leave towards −∞, so the search is bounded.
    best = minimize(loss, start, jac=True, bounds=[(-12, 0)] * len(start), options={"ftol": 1e-13})
    found = estimate(grouped, "pbm", resamples=0).examination
    np.testing.assert_allclose(found[1:], np.exp(best.x[:9]), rtol=5e-3)


def test_a_resample_is_one_step_from_the_summit_and_close_to_climbing_again(world):
    log = world(queries=40, seed=2).of_several_rankers(20_000)
    grouped = GroupedClicks.of(log)
    evidence = position_based_model(grouped)
    whole = estimate(grouped, "pbm")
    error = np.log(whole.high / whole.low)[1:] / 2 / 1.96
    rng = np.random.default_rng(0)
    for _ in range(3):
        times = rng.multinomial(40, np.full(40, 1 / 40))
        step = evidence.log_curve((times @ evidence.statistics.reshape(40, -1)).reshape(1, 11, 10))
        drawn = ClickLog(
            log.lists, log.list_of, log.clicks, log.counts * times[log.lists.queries[log.list_of]]
        )
        again = np.log(estimate(drawn, "pbm", resamples=0).examination)
        assert np.abs(again - np.log(whole.examination))[1:].max() > error.min()
        assert (np.abs(step[0] - again)[1:] < 0.3 * error).all()


def test_a_document_that_is_always_clicked_bounds_its_own_relevance(world):
    grouped = GroupedClicks.of(world(queries=40, seed=3).of_several_rankers(400))
    cells = grouped.cells.moved
    always = np.bincount(cells.document, cells.clicks) == np.bincount(
        cells.document, cells.impressions
    )
    assert always[cells.document].any()
    found = estimate(grouped, "pbm")
    assert np.isfinite(found.examination).all()
    assert (found.low <= found.examination).all()


def test_where_every_position_is_examined_the_curve_is_flat(world, errors):
    """Documents of the highest grade are then clicked in every session, wherever they stand."""
    here = world(seed=1)
    lists = here.of_several_rankers(10).lists
    log = sample_log(here.data, lists, PositionBasedUser(eta=0.0), 30_000, here.rng)
    found = estimate(log, "pbm")
    assert np.abs(errors(found, truth=np.ones(10))).max() < 4
    assert np.log(found.high / found.low)[1:].max() < 0.2


def test_where_everything_was_clicked_any_curve_fits(world):
    log = world(queries=40).of_several_rankers(2_000)
    eager = ClickLog(log.lists, log.list_of, log.lists.mask[log.list_of], log.counts)
    with pytest.raises(DataError, match="the clicks fit many curves equally well"):
        estimate(eager, "pbm")


def test_pairs_that_were_seen_at_one_position_say_nothing(world):
    """The click model's EM goes over all pairs, the estimator over those that moved."""
    log = world(queries=40, seed=5).of_several_rankers(30_000)
    free = Beta(0.0, 0.0, 0.5)
    counts = position_counts(log)
    fit = fit_product([counts], free, EM(20_000, tolerance=1e-6), examination_prior=free)
    found = estimate(log, "pbm", resamples=0).examination
    np.testing.assert_allclose(found, fit.examination, rtol=2e-3)
