"""Dual learning as an estimator, and all estimators of a log at once."""

import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.dataset import Dataset
from dualrank.data.lists import top_lists
from dualrank.errors import SettingsError
from dualrank.learning.dual_estimate import _resampled, estimate_by_dual_learning
from dualrank.learning.estimates import METHODS, estimate_propensities
from dualrank.rankers.network import Linear
from dualrank.settings import TrainingSettings

USER = PositionBasedUser(epsilon=0)
TRUTH = USER.examination(10) / USER.examination(1)


@pytest.fixture(scope="module")
def problem():
    """A random logger, and relevance that grows exponentially with a line in the features."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(200 * 12, 4)).astype(np.float32)
    relevance = np.minimum(1, np.exp(features @ [0.5, -0.3, 0.2, 0.1] - 1.5))
    data = Dataset.from_arrays(
        features, np.repeat(np.arange(200), 12), np.log2(1 + 15 * relevance), max_grade=4
    )
    lists = top_lists(data, rng.normal(size=data.document_count), 10)
    return sample_log(data, lists, USER, 100_000, rng), data


def test_the_curve_is_found_with_an_interval_from_refits(problem):
    log, data = problem
    heard = []
    found = estimate_by_dual_learning(
        log, data, ranker=Linear(), settings=TrainingSettings(steps=500), refits=4,
        progress=lambda done, total: heard.append((done, total)),
    )  # fmt: skip
    np.testing.assert_allclose(found.examination, TRUTH, rtol=0.2)
    assert (found.low <= TRUTH).mean() >= 0.7
    assert (found.high >= TRUTH).mean() >= 0.7
    assert (found.method, found.sessions) == ("dla", 100_000)
    assert found.support.tolist() == [100_000] * 10
    assert found.details["refits"] == 4
    assert heard[-1] == (2_500, 2_500)
    assert heard == sorted(heard)


def test_without_refits_there_is_no_interval(problem):
    log, data = problem
    settings = TrainingSettings(steps=20)
    found = estimate_by_dual_learning(log, data, ranker=Linear(), settings=settings)
    assert found.low is None
    assert found.high is None
    with pytest.raises(SettingsError, match="one refit shows no spread"):
        estimate_by_dual_learning(log, data, settings=settings, refits=1)


def test_queries_are_resampled_whole(problem):
    log, _ = problem
    again = _resampled(log, np.random.default_rng(1))
    asked = [
        np.bincount(part.lists.queries[part.list_of], part.counts, 200) for part in (log, again)
    ]
    times = asked[1] / asked[0]
    assert np.array_equal(times, times.round())
    assert times.sum() == 200
    assert (times == 0).sum() > 50


def test_all_estimates_of_a_log_or_why_not(problem):
    log, data = problem
    bare = estimate_propensities(log)
    assert set(bare.found) == {"click-through"}
    assert set(bare.found) | set(bare.refused) == set(METHODS)
    assert bare.refused["dla"] == "it needs the features of the documents"
    full = estimate_propensities(log, data, ranker=Linear(), settings=TrainingSettings(steps=20))
    trained = {"regression-em", "dla", "likelihood", "grounded"}
    assert set(full.found) == {"click-through", *trained}
    only = estimate_propensities(log, methods=["randomisation"])
    assert set(only.found) == {"randomisation"}
    assert only.refused == {}
    with pytest.raises(SettingsError, match="there is no estimator 'magic'"):
        estimate_propensities(log, methods=["magic"])
