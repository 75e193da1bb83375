from dataclasses import replace

import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.data.click_log import PERIOD
from dualrank.diagnostics.facts import LogFacts
from dualrank.diagnostics.stability import compare, drift, errors_needed


def periods(world, joined, etas, *, seed=0, queries=300, sessions=60_000, name=PERIOD):
    here = world(queries=queries, seed=seed)
    lists = here.lists(2)
    names = [f"{number + 1}" for number in range(len(etas))]
    logs = [here.log(sessions, lists=lists, user=PositionBasedUser(eta=eta)) for eta in etas]
    return LogFacts(joined(name, dict(zip(names, logs, strict=True))))


@pytest.mark.parametrize("seed", range(5))
def test_a_curve_that_stays_is_left_alone(world, joined, seed):
    point = drift(periods(world, joined, [1.0, 1.0], seed=seed))
    assert point.status == "good"
    assert "No change of the curve was found" in point.meaning


@pytest.mark.parametrize("queries", [300, 8])
def test_a_curve_that_changes_is_found_and_measured(world, joined, queries):
    facts = periods(world, joined, [0.5, 1.0, 1.5], queries=queries)
    assert facts.grouped.over == ("queries" if queries == 300 else "sessions")
    point = drift(facts)
    assert point.status == "failed"
    assert point.numbers["comparisons"][0]["part"] == "3"
    assert point.numbers["comparisons"][0]["against"] == "1"
    assert "period 3 looks" in point.meaning
    assert "times less at position" in point.meaning
    curves = [PositionBasedUser(eta=eta).examination(10) for eta in (1.5, 0.5)]
    truth = (curves[0] / curves[1]) / (curves[0][0] / curves[1][0])
    comparison = point.numbers["comparisons"][0]
    z = np.log(comparison["factor"] / truth)[1:] / (
        np.log(comparison["high"] / comparison["low"])[1:] / (2 * errors_needed(9, facts))
    )
    assert np.abs(z).max() < 4


def test_a_small_change_is_a_warning(world, joined):
    point = drift(periods(world, joined, [1.0, 1.12], sessions=200_000))
    assert point.status == "warning"


def test_more_clicks_throughout_are_no_drift_of_the_curve(world, joined):
    here = world()
    lists = here.lists(2)
    logs = {"1": here.log(60_000, lists=lists), "2": here.log(60_000, lists=lists)}
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(len(logs["2"].counts)), logs["2"].counts)
    clicks = logs["2"].clicks[rows] & (rng.random((len(rows), 10)) < 0.6)
    logs["2"] = type(logs["2"]).from_clicks(lists, logs["2"].list_of[rows], clicks)
    assert drift(LogFacts(joined(PERIOD, logs))).status == "good"


def test_documents_of_other_relevance_are_no_drift_of_the_curve(world, joined):
    # The second part shows other lists for half of the queries: only what both show is compared.
    here = world()
    lists = here.lists(6)
    half = np.arange(len(lists)) % 2 == 0
    logs = {}
    for name, chosen in (("1", half), ("2", ~half | (np.arange(len(lists)) % 3 == 0))):
        log = here.log(80_000, lists=lists)
        logs[name] = log.take_rows(np.flatnonzero(chosen[log.list_of]))
    assert drift(LogFacts(joined(PERIOD, logs))).status == "good"


def test_contexts_are_compared_with_the_most_frequent(world, joined):
    here = world()
    lists = here.lists(2)
    logs = {
        "desk": here.log(80_000, lists=lists),
        "phone": here.log(40_000, lists=lists, user=PositionBasedUser(eta=1.8)),
        "tablet": here.log(40_000, lists=lists),
        "watch": here.log(200, lists=lists),
    }
    point = drift(LogFacts(joined("device", logs)))
    compared = [(each["part"], each["against"]) for each in point.numbers["comparisons"]]
    assert compared == [("phone", "desk"), ("tablet", "desk")]
    assert point.status == "failed"
    assert "device phone looks" in point.meaning
    assert "a curve per context" in point.advice


def test_a_log_without_time_or_context_says_nothing(world):
    point = drift(world().facts(1_000))
    assert point.status == "not measured"
    assert "neither timestamps nor contexts" in point.meaning


def test_parts_that_share_no_clicked_document_say_nothing(world, joined):
    here = world()
    lists = here.lists(1)
    log = here.log(2_000, lists=lists)
    first = lists.queries[log.list_of] < 150
    parts = {"1": log.take_rows(np.flatnonzero(first)), "2": log.take_rows(np.flatnonzero(~first))}
    facts = LogFacts(joined(PERIOD, parts))
    assert compare(facts, PERIOD, "2", "1") is None
    assert drift(facts).status == "not measured"


def test_false_alarms_are_rare(world, joined):
    alarms = 0
    for seed in range(12):
        facts = periods(world, joined, [1.0, 1.0], seed=seed, sessions=10_000, queries=100)
        change = compare(facts, PERIOD, "2", "1")
        alarms += change.is_clear(errors_needed(9, facts)).any()
    assert alarms <= 1


@pytest.mark.parametrize("etas", [[1.0, 1.0], [1.0, 1.12], [0.5, 1.5]])
def test_a_change_is_what_its_interval_excludes(world, joined, etas):
    facts = periods(world, joined, etas, sessions=100_000)
    point = drift(facts)
    (found,) = point.numbers["comparisons"]
    size = np.maximum(found["factor"], 1 / found["factor"])
    excluded = (found["low"] > 1) | (found["high"] < 1)
    assert (excluded & (size > 1.1)).any() == (point.status in ("warning", "failed"))
    assert found["p_values"].min() > 0
    if point.status != "good":
        assert "99.5% interval" in point.meaning


def test_that_nothing_was_found_says_little_where_little_would_have_been(world, joined):
    point = drift(periods(world, joined, [1.0, 1.0], sessions=400, queries=100))
    assert point.status == "not measured"


def test_a_single_period_is_nothing_to_compare(world, joined):
    log = joined(PERIOD, {"1": world().log(1_000)})
    assert drift(LogFacts(replace(log))).status == "not measured"
