"""Relevance once examination is known: right where it can be checked, honest about the rest."""

import numpy as np
import pytest
from scipy import stats

from dualrank.clicks.sampling import sample_log
from dualrank.data.click_log import ClickLog, Column
from dualrank.data.interventions import shuffle_lists
from dualrank.data.lists import PADDING, RankedLists
from dualrank.propensity.corrected_click_through import corrected_click_through, fit_prior
from dualrank.propensity.estimators import estimate
from dualrank.propensity.pair_counts import PairCounts
from dualrank.propensity.propensity import Propensity


def counted(clicks, sessions, examination=1.0):
    """Pairs that were always shown where examination is the same."""
    clicks, sessions = np.asarray(clicks, float), np.asarray(sessions)
    skips = (sessions - clicks)[:, None]
    return PairCounts(clicks, skips, np.array([examination]), sessions, np.zeros(len(clicks)))


def alike(counts):
    """Relevance where all pairs belong to one query."""
    return corrected_click_through(counts, np.zeros(len(counts.clicks), int))


def log_of(documents, clicks, counts, **more):
    documents = np.array(documents, np.int32)
    lists = RankedLists(documents, np.zeros(len(documents), np.int32))
    shown = np.arange(len(documents), dtype=np.int32)
    return ClickLog(lists, shown, np.array(clicks, bool), np.array(counts), **more)


def test_at_the_first_position_it_is_the_beta_posterior():
    counts = counted([0, 1, 5, 40, 900, 2_000_000], [10, 10, 20, 50, 1_000, 10_000_000])
    found = alike(counts)
    prior = fit_prior(counts, np.full(6, 0.5))
    a, b = prior.strength * prior.mean[0], prior.strength * (1 - prior.mean[0])
    clicks, skips = counts.clicks, counts.skips[:, 0]
    assert found.values == pytest.approx((clicks + a) / (clicks + skips + a + b), rel=5e-3)
    low, high = (stats.beta.ppf(q, clicks + 0.5, skips + 0.5) for q in (0.025, 0.975))
    assert found.low[1:] == pytest.approx(low[1:], rel=0.02)
    assert found.low[0] == 0
    # Nothing but zeros and a prior far above: the interval holds the value.
    assert (found.high >= found.values).all()
    assert found.high[2:] == pytest.approx(high[2:], rel=0.02)


def test_the_prior_of_the_log_is_found():
    rng = np.random.default_rng(0)
    relevance = rng.beta(0.8, 4.0, 5_000)
    sessions = rng.integers(10, 60, 5_000)
    counts = counted(rng.binomial(sessions, 0.5 * relevance), sessions, 0.5)
    prior = fit_prior(counts, np.full(5_000, 0.3))
    # Some 5,000 pairs tell the mean to about 3% and the strength to about 10%.
    assert prior.mean == pytest.approx(np.full(5_000, 0.8 / 4.8), rel=0.06)
    assert prior.strength == pytest.approx(4.8, rel=0.25)


def test_a_document_is_drawn_to_what_is_usual_for_its_query():
    """Two hundred queries of ten documents, and of each an eleventh that nobody has examined."""
    rng = np.random.default_rng(2)
    usual = np.repeat(rng.beta(2, 8, 200), 10)
    relevance = rng.beta(20 * usual, 20 * (1 - usual))
    clicks = np.append(rng.binomial(500, relevance), np.zeros(200))
    queries = np.append(np.repeat(np.arange(200), 10), np.arange(200))
    found = corrected_click_through(counted(clicks, [500] * 2_000 + [0] * 200), queries)
    means = relevance.reshape(200, 10).mean(axis=1)
    assert np.corrcoef(found.values[2_000:], means)[0, 1] > 0.98
    assert found.low[2_000:].max() == 0
    assert found.high[2_000:].min() > 0.99


def test_few_sessions_are_drawn_to_what_is_usual():
    rng = np.random.default_rng(1)
    relevance = rng.beta(2, 18, 500)
    many = rng.binomial(1_000, relevance)
    found = alike(counted([*many, 5], [1_000] * 500 + [10]))
    assert found.values[:500] == pytest.approx(many / 1_000, abs=0.01)
    assert 0.1 < found.values[500] < 0.3
    assert found.low[500] < 0.3 < 0.5 < found.high[500]


def test_a_click_where_few_look_says_more_than_one_at_the_top():
    log = log_of([[0, 1]], [[1, 1]], [1])
    counts = PairCounts.of(log, Propensity.of([1.0, 0.1]))
    assert counts.sessions.tolist() == [1, 1]
    skipped = log_of([[0, 1]], [[0, 0]], [20])
    skips = PairCounts.of(skipped, Propensity.of([1.0, 0.1]))
    found = alike(skips)
    assert found.values[0] < found.values[1]
    assert found.high[0] < found.high[1]


def test_displays_below_the_end_of_the_curve_are_not_counted():
    log = log_of([[0, 1, 2], [1, 0, PADDING]], [[1, 0, 1], [0, 0, 0]], [3, 4])
    counts = PairCounts.of(log, Propensity.of([1.0, 0.5]))
    assert counts.sessions.tolist() == [7, 7, 0]
    assert counts.clicks.tolist() == [3, 0, 0]
    assert counts.skips.tolist() == [[0, 4], [4, 3], [0, 0]]


def test_every_context_has_its_own_curve():
    log = ClickLog(
        RankedLists(np.array([[0, 1]], np.int32), np.zeros(1, np.int32)),
        np.zeros(2, np.int32),
        np.array([[0, 1], [0, 0]], bool),
        np.array([2, 3]),
        columns={"device": Column(("desk", "phone"), np.array([0, 1], np.int32))},
    )
    curves = {"phone": {"examination": [1.0, 0.1]}, "desk": {"examination": [1.0, 0.5]}}
    given = Propensity(np.array([1.0, 0.2]), "x", details={"context": "device", "contexts": curves})
    counts = PairCounts.of(log, given)
    assert counts.examination.tolist() == [1.0, 0.5, 1.0, 0.1]
    assert counts.skips.tolist() == [[2, 0, 3, 0], [0, 0, 0, 3]]


def test_an_unsure_curve_widens_the_interval_of_what_stood_there():
    log = log_of([[0, 1]], [[1, 1]], [5_000])
    log = ClickLog(log.lists, np.zeros(2, np.int32), np.array([[1, 1], [0, 0]], bool),
                   np.array([5_000, 15_000]))  # fmt: skip
    sure = Propensity.of([1.0, 0.5])
    unsure = Propensity(sure.examination, "x", 1, np.array([1.0, 0.4]), np.array([1.0, 0.5 * 1.25]))
    plain, wide = (alike(PairCounts.of(log, p)) for p in (sure, unsure))
    assert (wide.low[0], wide.high[0]) == (plain.low[0], plain.high[0])
    assert wide.low[1] == pytest.approx(wide.values[1] / 1.25, rel=0.02)
    assert wide.high[1] == pytest.approx(wide.values[1] * 1.25, rel=0.02)


def test_intervals_cover_with_a_harvested_curve(dataset, lists, user):
    rng = np.random.default_rng(5)
    shown = shuffle_lists(lists, 3, rng)
    log = sample_log(dataset, shown, user, 20_000, rng)
    counts = PairCounts.of(log, estimate(log, "harvest-all-pairs"))
    kept = np.flatnonzero(counts.sessions >= 10)
    found = corrected_click_through(counts.take(kept), dataset.query_of_document[kept])
    truth = (user.perceived_relevance(dataset.grades, 4) * user.examination(1))[kept]
    assert 0.9 <= ((found.low <= truth) & (truth <= found.high)).mean() <= 0.99
    assert np.corrcoef(found.values, truth)[0, 1] > 0.9
