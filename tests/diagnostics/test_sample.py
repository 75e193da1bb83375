import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualrank.data.click_log import ClickLog
from dualrank.diagnostics.facts import LogFacts
from dualrank.diagnostics.sample import sample, weight_of_heaviest


def test_a_large_log_is_good(world):
    point = sample(world().facts(sessions=120_000))
    assert point.status == "good"
    assert point.numbers["sessions"] == 120_000
    assert point.numbers["weights_by"] == "harvest-all-pairs"


@pytest.mark.parametrize(("sessions", "status"), [(40_000, "warning"), (2_000, "failed")])
def test_few_sessions_are_told(world, sessions, status):
    point = sample(world().facts(sessions=sessions))
    assert point.status == status
    assert "below about 100,000 sessions corrections overfit" in point.meaning
    assert point.advice.startswith("Log longer")


def test_numbers_are_those_of_the_clicks_one_by_one(world):
    facts = world().facts(sessions=30_000)
    numbers = sample(facts).numbers
    weights = np.repeat(facts.harvested.weights, facts.log.clicks_per_list.sum(axis=0))
    assert numbers["clicks"] == len(weights)
    assert numbers["effective_clicks"] == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert numbers["largest_weight"] == weights.max()
    quiet = facts.log.counts[facts.log.clicks.sum(axis=1) == 0].sum() / 30_000
    assert numbers["share_of_sessions_without_clicks"] == pytest.approx(quiet)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), st.floats(1, 100)), min_size=1, max_size=8))
def test_the_heaviest_clicks_are_found(pairs):
    clicks = 100 * np.array([count + 1 for count, _ in pairs], dtype=np.float64)
    weights = np.array([weight for _, weight in pairs])
    one_by_one = np.sort(np.repeat(weights, clicks.astype(int)))[::-1]
    top = one_by_one[: len(one_by_one) // 100].sum() / one_by_one.sum()
    assert weight_of_heaviest(clicks, weights) == pytest.approx(top)


def test_heavy_tails_are_told(world):
    facts = world().facts(sessions=120_000)
    curve = facts.harvested
    steep = np.append(curve.examination[:-1], 1e-3)
    facts.__dict__["harvested"] = type(curve)(steep, curve.method)
    point = sample(facts)
    assert point.status == "warning"
    assert "the heaviest 1% carry" in point.meaning
    assert "max_weight" in point.advice


def test_a_log_without_clicks_fails(world):
    log = world().log(sessions=1_000)
    point = sample(LogFacts(ClickLog(log.lists, log.list_of, log.clicks & False, log.counts)))
    assert point.status == "failed"
    assert "None of the 1,000 sessions has a click" in point.meaning


def test_without_a_curve_that_reaches_the_end_nothing_is_weighted(world):
    log = world().log(sessions=20_000, rankers=1)
    quiet = ClickLog(log.lists, log.list_of, log.clicks & (np.arange(10) < 9), log.counts)
    assert "effective_clicks" not in sample(LogFacts(quiet)).numbers
