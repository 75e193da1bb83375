import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.users import TrustingUser
from dualrank.diagnostics.trust import deal_out, trust
from dualrank.propensity.grouped_clicks import GroupedClicks


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("eta", [0.5, 1.0])
def test_examination_alone_is_not_taken_for_trust(world, seed, eta):
    point = trust(world(seed=seed).facts(user=PositionBasedUser(eta=eta)))
    assert point.status == "good"
    assert "no clear sign of trust" in point.meaning


def test_luck_is_not_taken_for_relevance(world):
    # With few sessions per pair, splitting by the compared clicks would find a large difference.
    rates = [
        np.log(trust(world(seed=seed).facts(sessions=8_000)).numbers["advantage"])
        for seed in range(8)
    ]
    assert abs(np.mean(rates)) < 3 * np.std(rates) / np.sqrt(8) + 0.02


@pytest.mark.parametrize("seed", range(3))
def test_trust_in_the_top_is_found(world, seed):
    point = trust(world(seed=seed).facts(user=TrustingUser()))
    assert point.status == "failed"
    assert point.numbers["advantage"] > 1.3
    assert 1 < point.numbers["low"] < point.numbers["advantage"] < point.numbers["high"]
    assert point.numbers["p_value"] > 0
    assert "because it stands there" in point.meaning
    assert "pbm-trust" in point.advice


def test_the_reverse_of_trust_is_found(world):
    # What is not relevant is overlooked at the top more than below.
    user = TrustingUser(irrelevant=tuple(0.02 * k for k in range(1, 11)), eta=0.3)
    point = trust(world().facts(user=user))
    assert point.status in ("warning", "failed")
    assert point.numbers["advantage"] < 1 / 1.1
    assert "examination depends on the document" in point.meaning


def test_few_queries_are_compared_over_sessions(world):
    facts = world(queries=8).facts(sessions=30_000)
    assert facts.grouped.over == "sessions"
    assert trust(facts).status == "good"
    trusting = world(queries=8).facts(sessions=60_000, user=TrustingUser())
    assert trust(trusting).status == "failed"


@pytest.mark.parametrize("sessions", [600, 2_500, 10_000, 40_000])
@pytest.mark.parametrize("seed", range(3))
def test_the_verdict_is_what_the_interval_excludes(world, sessions, seed):
    point = trust(world(seed=seed).facts(sessions=sessions, user=TrustingUser()))
    low, high = point.numbers["low"], point.numbers["high"]
    assert (point.status in ("warning", "failed")) == (not low <= 1 <= high)
    assert f"(99.5% interval {low:.2f}–{high:.2f})" in point.meaning
    # Where trust is missed, as much of it is not denied.
    assert point.status != "good" or max(point.numbers["would_have_been_seen"], high) <= 1.5


def test_a_small_log_does_not_deny_trust(world):
    point = trust(world().facts(sessions=1_200))
    assert point.status == "not measured"
    assert "could have been missed" in point.meaning
    assert "pbm-trust" in point.advice


def test_one_ranker_cannot_tell(world):
    point = trust(world().facts(rankers=1))
    assert point.status == "not measured"
    assert "cannot be told apart" in point.meaning


@pytest.mark.parametrize("seed", range(5))
def test_the_halves_make_the_whole(world, seed):
    cells = GroupedClicks.of(world(queries=40, seed=seed).log(500)).cells
    one, other = deal_out(cells, np.random.default_rng(seed))
    for name in ("impressions", "clicks", "shown", "clicked"):
        total = getattr(one, name) + getattr(other, name)
        np.testing.assert_array_equal(total, getattr(cells, name))
    for half in (one, other):
        assert (half.clicks <= half.impressions).all()
        assert (half.clicks >= 0).all()
