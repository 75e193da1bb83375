"""Preferences: recovered where there is one, not invented where there is none."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

from dualrank.decisions.interleaving_lists import build_lists
from dualrank.decisions.interleaving_log import InterleavedLog, read_interleaved
from dualrank.decisions.preference import (
    LEAST,
    compare,
    looks_by_day,
    per_query,
    sessions_missing,
    sign_test,
    with_intervals,
)
from dualrank.decisions.preference_words import verdict
from dualrank.errors import SettingsError


def made(values, queries=None, days=None, arms=("A", "B")):
    """A log of sessions with these values for the first of two arms."""
    values = np.asarray(values, dtype=float)
    return InterleavedLog(
        arms,
        np.array([f"q{q}" for q in range(1 + (0 if queries is None else max(queries)))], object),
        np.zeros(len(values), np.int64) if queries is None else np.asarray(queries),
        np.full(len(values), -1) if days is None else np.asarray(days),
        np.stack([np.maximum(values, 0), np.maximum(-values, 0)], axis=1),
        np.ones(len(values), np.int64),
    )


def random_values(count, shift=0.0, seed=0):
    rng = np.random.default_rng(seed)
    return rng.choice([-1, 0, 1], count, p=[0.25 - shift / 2, 0.5, 0.25 + shift / 2])


@pytest.mark.parametrize("way", ["team-draft", "optimised"])
def test_a_known_preference_is_found(runs, sessions, way):
    log = sessions(build_lists(runs, way=way, depth=6, per_query=8), 1_200, seed=1)
    found = compare(read_interleaved(log, arms=["old", "new"]))
    (pair,) = found.pairs
    assert pair.better == "new"
    assert pair.beyond_queries
    assert pair.mean < 0
    assert pair.high < 0
    assert pair.permutation_p < 0.01
    assert (pair.by_session is None) == (way == "optimised")
    assert (pair.by_query.p_value is None) == (way == "optimised")
    assert verdict(found)[0].startswith("new is better than old: +0.")


def test_users_who_like_everything_prefer_nobody(lists, sessions):
    log = sessions(lists, 1_200, seed=2, likes=lambda document: True)
    (pair,) = compare(read_interleaved(log)).pairs
    assert pair.better is None
    assert pair.low < 0 < pair.high


def test_exchanging_the_arms_turns_the_preference_around(log):
    one = compare(read_interleaved(log, arms=["old", "new"])).pairs[0]
    other = compare(read_interleaved(log, arms=["new", "old"])).pairs[0]
    assert one.mean == pytest.approx(-other.mean)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))
    assert one.better == other.better == "new"
    assert (one.by_query.first, one.by_query.second) == (
        other.by_query.second,
        other.by_query.first,
    )


def test_equal_sessions_may_be_counted_together():
    values = random_values(600, 0.2)
    log = made(values, queries=np.arange(600) % 30)
    rows = np.unique(np.stack([log.query_of, values], axis=1), axis=0, return_counts=True)
    short = made(rows[0][:, 1], queries=rows[0][:, 0].astype(int))
    short = replace(short, counts=rows[1].astype(np.int64))
    assert compare(log).pairs == compare(short).pairs


def test_the_sign_test_is_near_the_exact_one():
    wins = sign_test(np.array([1.0] * 60 + [-1.0] * 40 + [0.0] * 9))
    assert (wins.first, wins.second, wins.ties) == (60, 40, 9)
    exact = binomtest(60, 100).pvalue
    assert exact > wins.p_value > exact - 0.03
    assert sign_test(np.zeros(3)).p_value == 1
    assert sign_test(np.array([1.0, -1.0])).p_value == 1


@pytest.mark.parametrize("until", [None, 2_000])
def test_daily_looks_are_wrong_no_more_often_than_they_may_be(until):
    wrong = 0
    for seed in range(300):
        values = random_values(2_000, seed=seed).astype(float)
        days = looks_by_day(
            values, np.ones(2_000, np.int64), np.arange(2_000) // 143, np.arange(2_000)
        )
        wrong += any(look.ahead for look in with_intervals(days, 0.05, until))
    assert wrong / 300 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


def test_tests_at_the_end_are_wrong_at_their_level():
    rates = np.zeros(2)
    for seed in range(300):
        values = random_values(1_000, seed=10_000 + seed)
        pair = compare(made(values, queries=np.arange(1_000) % 200), permutations=400).pairs[0]
        rates += [pair.by_session.p_value <= 0.05, pair.permutation_p <= 0.05]
    assert np.all(np.abs(rates / 300 - 0.05) <= 3 * np.sqrt(0.05 * 0.95 / 300))


def test_a_planned_end_is_narrower_at_the_end():
    values = random_values(4_000, 0.05, seed=3)
    log = made(values, days=np.arange(4_000) // 400)
    always, planned = (compare(log, until=until).pairs[0] for until in (None, 4_000))
    assert planned.high - planned.low < always.high - always.low
    assert len(planned.looks) == 10
    assert planned.looks[0].day == "1970-01-01"


def test_after_the_planned_end_nothing_is_decided_any_more():
    rng = np.random.default_rng(8)
    nothing = rng.choice([-1.0, 1.0], 1_000)
    much = np.ones(1_000)
    log = made(np.concatenate([nothing, much]), days=np.arange(2_000) // 100)
    assert compare(log, until=1_000).pairs[0].better is None
    assert compare(log).pairs[0].better == "A"


def test_a_decision_stands_on_the_day_when_it_fell():
    values = np.concatenate([np.ones(300), random_values(3_000, seed=5)])
    pair = compare(made(values, days=np.arange(len(values)) // 300)).pairs[0]
    assert pair.better == "A"
    assert pair.decided_on == "1970-01-01"
    assert pair.more_sessions == 0


def test_more_sessions_are_about_as_many_as_it_takes():
    values = random_values(1_000, 0.03, seed=12)
    pair = compare(made(values)).pairs[0]
    assert pair.better is None
    more = sessions_missing(0.03, pair.deviation, 1_000, 0.05)
    decided = 0
    for seed in range(200):
        total = random_values(1_000 + more, 0.03, seed=seed)
        decided += bool(compare(made(total), permutations=1).pairs[0].better)
    assert 0.7 < decided / 200 < 0.97
    assert sessions_missing(1e-6, 1.0, 100, 0.05) is None
    assert sessions_missing(0.0, 1.0, 100, 0.05) is None


def test_few_sessions_have_no_interval():
    found = compare(made(random_values(60)))
    assert found.pairs[0].low is None
    assert f"fewer than {LEAST} sessions prefer either" in verdict(found)[0]


def test_a_decision_by_one_query_alone_is_said_to_be_about_it():
    values = np.concatenate([random_values(2_000, 0.3, seed=1), random_values(400, -0.1, seed=2)])
    queries = np.concatenate([np.zeros(2_000, int), 1 + np.arange(400) % 20])
    found = compare(made(values, queries=queries))
    assert found.pairs[0].better == "A"
    assert not found.pairs[0].beyond_queries
    first, second = verdict(found)
    assert first.startswith("A is better than B on these queries: +")
    assert "Whether it would be on other queries is open: so few queries" in second
    assert "of 21 queries prefer it" in second


def test_queries_that_differ_do_not_speak_for_others_until_there_are_many():
    """Of forty queries each prefers somebody, and by chance the sum is not zero."""
    rng = np.random.default_rng(3)
    queries = rng.integers(40, size=20_000)
    likes = np.where(rng.random(40) < 0.65, 0.4, -0.4)
    values = np.where(rng.random(20_000) < 0.5 + likes[queries] / 2, 1.0, -1.0)
    found = compare(made(values, queries=queries))
    (pair,) = found.pairs
    assert pair.better is not None
    assert not pair.beyond_queries
    assert pair.low_over_queries < min(pair.low, 0)
    assert "it is -" in verdict(found)[1]


def test_queries_that_agree_speak_for_others():
    values = random_values(4_000, 0.2, seed=6)
    (pair,) = compare(made(values, queries=np.arange(4_000) % 100)).pairs
    assert pair.beyond_queries
    assert pair.low_over_queries <= pair.low
    assert pair.low_over_queries == pytest.approx(pair.low, abs=0.02)


def test_several_arms_share_the_level(runs, sessions):
    third = {q: ranking[::-1] for q, ranking in runs["new"].items()}
    lists = build_lists({**runs, "worst": third}, depth=6, per_query=9)
    found = compare(read_interleaved(sessions(lists, 3_000, seed=4), arms=["new", "old", "worst"]))
    assert [(p.first, p.second) for p in found.pairs] == [
        ("new", "old"),
        ("new", "worst"),
        ("old", "worst"),
    ]
    assert {p.level for p in found.pairs} == {0.05 / 3}
    assert found.pairs[1].better == "new"
    said = verdict(found)
    assert said[0] in (
        "new is better than every other arm.",
        "No arm is better than all others, as far as can be told.",
    )
    assert "98.3% interval" in " ".join(said)


def test_seeds_and_json():
    log = made(random_values(500), queries=np.arange(500) % 50)
    one, same, other = (compare(log, permutations=99, seed=s) for s in (1, 1, 2))
    assert one == same
    assert one.pairs[0].permutation_p != other.pairs[0].permutation_p
    of_a_hundred = one.pairs[0].permutation_p * 100
    assert of_a_hundred == pytest.approx(round(of_a_hundred))
    assert json.loads(json.dumps(one.to_dict()))["pairs"][0]["first"] == "A"


def test_preferences_by_query(log):
    found = read_interleaved(log)
    table = per_query(found).to_pydict()
    assert len(table["query_id"]) == 80
    assert sum(table["credit"]) == pytest.approx((found.credits * found.counts[:, None]).sum())


def test_settings_out_of_range():
    log = made(random_values(100))
    with pytest.raises(SettingsError, match="until is a number of sessions, 50 or more, not 3"):
        compare(log, until=3)
    with pytest.raises(SettingsError, match="permutations is 1 or more, not 0"):
        compare(log, permutations=0)
