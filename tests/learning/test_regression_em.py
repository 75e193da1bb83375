"""Relevance by regression: examination without a document seen twice."""

import numpy as np
import pytest
from scipy.special import expit

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.dataset import Dataset
from dualrank.data.lists import top_lists
from dualrank.errors import DataError
from dualrank.learning.regression_em import _climb, _numbered, _Point, estimate_by_regression_em
from dualrank.propensity.estimators import estimate
from dualrank.propensity.grouped_clicks import GroupedClicks
from dualrank.rankers.network import DNN, Linear

USER = PositionBasedUser(epsilon=0)
TRUTH = USER.examination(10) / USER.examination(1)


def errors(propensity, truth):
    """Errors of a curve against the truth, in standard errors as its interval states them."""
    spread = np.log(propensity.high / propensity.low)[1:] / 2 / 1.96
    return np.log(propensity.examination / truth)[1:] / spread


def problem(seed, *, sessions=30_000, queries=200, logger=0.0, bent=False, hidden=0):
    """Clicks of probability ρ_k σ(f(x)), on lists of a logger that knows f to some degree."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(queries * 12, 6)).astype(np.float32)
    utility = features @ np.array([0.9, -0.6, 0.4, 0.3, 0.2, 0.8]) - 1
    if bent:
        utility = np.abs(features[:, 0]) * 1.5 - features[:, 1] - 1.5
    gains = np.log2(1 + 15 * expit(utility))
    data = Dataset.from_arrays(features, np.repeat(np.arange(queries), 12), gains, max_grade=4)
    lists = top_lists(data, logger * utility + rng.normal(size=len(utility)), 10)
    log = sample_log(data, lists, USER, sessions, rng)
    shown = Dataset.from_arrays(features[:, : 6 - hidden], np.repeat(np.arange(queries), 12))
    return log, shown


@pytest.mark.parametrize("logger", [0.0, 3.0])
def test_the_truth_is_recovered_where_features_tell_relevance(logger):
    log, data = problem(1, sessions=100_000, logger=logger)
    found = estimate_by_regression_em(log, data)
    assert np.abs(errors(found, TRUTH)).max() < 4
    assert np.log(found.high / found.low)[1:].max() < 0.3
    assert found.support.tolist() == [100_000] * 10


def test_intervals_cover_the_truth_as_often_as_they_say():
    """Twelve logs and nine positions; see test_estimators for the bound."""
    covered = []
    for seed in range(12):
        found = estimate_by_regression_em(*problem(seed), resamples=200)
        covered.append((found.low <= TRUTH)[1:] & (found.high >= TRUTH)[1:])
    assert np.mean(covered) >= 0.85


def test_a_network_follows_what_a_line_cannot():
    """Relevance grows with the distance of a feature from 0, and the logger knows it."""
    log, data = problem(2, sessions=60_000, logger=1.0, bent=True)
    off = {
        type(ranker).__name__: np.abs(
            np.log(estimate_by_regression_em(log, data, ranker=ranker).examination / TRUTH)
        ).max()
        for ranker in (Linear(), DNN((16,)))
    }
    assert off["DNN"] < 0.2 < off["Linear"]


def test_what_features_miss_and_the_logger_knows_is_taken_for_examination():
    log, data = problem(3, logger=3.0, hidden=1, sessions=60_000)
    assert (errors(estimate_by_regression_em(log, data), TRUTH) < -3).all()


def test_features_that_tell_nothing_leave_the_click_through():
    log, data = problem(6)
    noise = np.random.default_rng(1_006).normal(size=data.features.shape)
    blind = Dataset.from_arrays(noise, data.query_of_document)
    found = estimate_by_regression_em(log, blind)
    raw = estimate(log, "click-through")
    np.testing.assert_allclose(found.examination, raw.examination, rtol=0.05)
    assert (found.high < np.inf).all()
    constant = Dataset.from_arrays(np.ones_like(data.features), data.query_of_document)
    with pytest.raises(DataError, match="each of the 6 features is constant"):
        estimate_by_regression_em(log, constant)


def test_slope_is_the_derivative_of_the_objective_and_flat_at_the_summit():
    log, data = problem(4, sessions=5_000)
    grouped = GroupedClicks.of(log)
    cells = _numbered(grouped.cells)
    features = data.features[np.unique(grouped.cells.document)]
    point = _Point.start(cells, features).moved(np.linspace(-0.1, 0.05, 17))
    slope = point.scores(grouped.group_count).sum(axis=0)
    for i in range(len(slope)):
        # Long enough a step for weights in single precision.
        ends = [point.moved(sign * 1e-2 * (np.arange(17) == i)).objective() for sign in (1, -1)]
        assert slope[i] == pytest.approx((ends[0] - ends[1]) / 2e-2, rel=1e-2, abs=1.0)
    summit = _climb(point)
    assert np.abs(summit.scores(grouped.group_count).sum(axis=0)).max() < 1.0
    assert summit.objective() > point.objective()


def test_positions_without_clicks_and_foreign_features_are_refused():
    log, data = problem(5, sessions=30)
    with pytest.raises(DataError, match=r"position \d+ was never clicked in 30 sessions"):
        estimate_by_regression_em(log, data)
    log, data = problem(5, sessions=3_000)
    with pytest.raises(DataError, match="features of 12; give the data set with which"):
        estimate_by_regression_em(log, data.take([0]))
