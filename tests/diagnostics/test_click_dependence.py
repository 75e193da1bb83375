import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualrank.clicks.dependence import Dependence, co_clicks, read_down
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.users import (
    BrowsingUser,
    CascadeUser,
    ClickChainUser,
    DynamicBayesianUser,
    TrustingUser,
    make_user,
)
from dualrank.data.click_log import ClickLog
from dualrank.data.lists import RankedLists
from dualrank.diagnostics.click_dependence import click_dependence
from dualrank.diagnostics.facts import LogFacts


def log_of(list_of, clicks):
    depth = clicks.shape[1]
    count = int(np.max(list_of)) + 1
    documents = np.arange(count * depth, dtype=np.int32).reshape(count, depth)
    lists = RankedLists(documents, np.arange(count, dtype=np.int32))
    return ClickLog.from_clicks(lists, np.asarray(list_of), clicks)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_sums_are_those_of_a_loop_over_lists_and_pairs(seed):
    rng = np.random.default_rng(seed)
    shown = rng.integers(0, 4, 30)
    clicks = rng.random((30, 3)) < 0.5
    observed, expected, variance = np.zeros((3, 3, 3))
    for each in np.unique(shown):
        here = clicks[shown == each]
        n = len(here)
        for i in range(3):
            for k in range(i + 1, 3):
                if n > 1:
                    a, m = here[:, i].sum(), here[:, k].sum()
                    observed[i, k] += (here[:, i] & here[:, k]).sum()
                    expected[i, k] += a * m / n
                    variance[i, k] += a * m * (n - a) * (n - m) / (n**2 * (n - 1))
    found = co_clicks(log_of(shown, clicks))
    for ours, theirs in zip(found, (observed, expected, variance), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_the_standard_error_is_that_of_independent_clicks(world):
    # In standard errors, ratios over many worlds have a variance of one.
    z = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        shown = rng.integers(0, 50, 2_000)
        clicks = rng.random((2_000, 4)) < rng.random((50, 4))[shown]
        o, e, v = (each.sum() for each in co_clicks(log_of(shown, clicks)))
        z.append((o - e) / np.sqrt(v))
    assert abs(np.mean(z)) < 3 / np.sqrt(60)
    assert 0.75 < np.std(z) < 1.25


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("user", [PositionBasedUser(), TrustingUser()])
def test_independent_clicks_are_left_alone(world, user, seed):
    point = click_dependence(world(seed=seed).facts(user=user, rankers=1))
    assert point.status == "good"
    assert "no sign against the position-based model" in point.meaning


@pytest.mark.parametrize("seed", range(2))
def test_users_who_leave_after_a_click_fail(world, seed):
    point = click_dependence(world(seed=seed).facts(user=CascadeUser(), rankers=1))
    assert point.status == "failed"
    assert point.numbers["after_the_first"]["ratio"] == 0
    assert "users stop after a click, as in the cascade model" in point.meaning


@pytest.mark.parametrize("user", [DynamicBayesianUser(), ClickChainUser()])
def test_users_who_may_leave_after_a_click_are_told(world, user):
    point = click_dependence(world().facts(user=user, rankers=1))
    assert point.status in ("warning", "failed")
    assert point.numbers["after_the_first"]["ratio"] < 0.9
    assert point.numbers["further_down"]["ratio"] > 1.1
    assert "users stop after a click" in point.meaning
    assert "has read more of the list" in point.meaning


def test_users_who_look_near_their_last_click_are_told(world):
    point = click_dependence(world().facts(user=BrowsingUser(), rankers=1))
    assert point.status == "warning"
    assert "has read more of the list" in point.meaning


def test_users_of_different_habits_are_told_unless_a_column_tells_them_apart(world, joined):
    here = world()
    lists = here.lists()
    parts = {
        name: here.log(40_000, lists=lists, user=PositionBasedUser(eta=eta))
        for name, eta in (("phone", 0.0), ("desk", 3.0))
    }
    mixed = click_dependence(LogFacts(joined(None, parts)))
    assert mixed.status != "good"
    assert mixed.numbers["further_down"]["ratio"] > 1.1
    assert click_dependence(LogFacts(joined("device", parts))).status == "good"


def test_some_users_who_click_everything_are_told():
    rng = np.random.default_rng(0)
    shown = rng.integers(0, 20, 5_000)
    eager = rng.random((5_000, 1)) < 0.3
    clicks = rng.random((5_000, 2)) < np.where(eager, 0.8, 0.3)
    point = click_dependence(LogFacts(log_of(shown, clicks)))
    assert point.status == "warning"
    assert "some users click much and others little" in point.meaning


def test_lists_that_were_shown_once_say_nothing():
    rng = np.random.default_rng(0)
    point = click_dependence(LogFacts(log_of(np.arange(200), rng.random((200, 5)) < 0.5)))
    assert point.status == "not measured"
    assert "too few to compare" in point.meaning


@pytest.mark.parametrize("user", [CascadeUser(), DynamicBayesianUser(), ClickChainUser()])
def test_users_who_go_down_the_list_and_leave_are_known_for_readers(world, user):
    here = world()
    assert Dependence.of(here.log(40_000, lists=here.lists(), user=user)).reads_from_the_top


@pytest.mark.parametrize(
    "user", [PositionBasedUser(), PositionBasedUser(eta=2.0), TrustingUser(), make_user("ubm")]
)
def test_users_who_look_where_they_like_are_not_taken_for_readers(world, user):
    here = world()
    assert not Dependence.of(here.log(40_000, lists=here.lists(), user=user)).reads_from_the_top


def test_some_who_click_everything_are_not_taken_for_readers():
    rng = np.random.default_rng(0)
    shown = rng.integers(0, 20, 20_000)
    eager = rng.random((20_000, 1)) < 0.3
    clicks = rng.random((20_000, 5)) < np.where(eager, 0.8, 0.3)
    assert not Dependence.of(log_of(shown, clicks)).reads_from_the_top


def test_a_few_sessions_say_nothing_of_how_users_read():
    rng = np.random.default_rng(0)
    few = log_of(rng.integers(0, 20, 30), rng.random((30, 5)) < 0.05)
    assert not Dependence.of(few).reads_from_the_top


def test_who_clicks_has_read_all_above_and_who_does_not_all_there_is():
    clicks = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 1]], bool)
    log = log_of(np.arange(4), clicks)
    expected = [[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1]]
    assert read_down(log).astype(int).tolist() == expected
