"""Features that say nothing are called what they are, and nothing is confirmed by them."""

from dataclasses import replace

import numpy as np
import pytest

from dualrank.data.click_log import ClickLog
from dualrank.data.lists import RankedLists
from dualrank.diagnostics import trained_pair
from dualrank.diagnostics.agreement import curves
from dualrank.diagnostics.diagnosis import diagnose
from dualrank.diagnostics.facts import LogFacts
from dualrank.diagnostics.feature_worth import feature_worth
from dualrank.diagnostics.joint_learning import joint_learning
from dualrank.diagnostics.logging_ranker import logging_ranker
from dualrank.diagnostics.telling_features import differences, telling_features
from dualrank.propensity.propensity import Propensity


def facts_of(world, features_of, monkeypatch, *, seed=0, sessions=20_000, steps=20):
    monkeypatch.setattr(trained_pair, "STEPS", steps)
    here = world(queries=200, seed=seed)
    log = here.log(sessions, rankers=3)
    features = np.asarray(features_of(here.data), np.float32)
    return LogFacts(log, replace(here.data, features=features), seed)


def random_features(data):
    return np.random.default_rng(9).normal(size=(data.document_count, 5))


@pytest.mark.parametrize("seed", range(2))
def test_random_features_confirm_nothing(world, monkeypatch, seed):
    facts = facts_of(world, random_features, monkeypatch, seed=seed, sessions=30_000, steps=20)
    point = telling_features(facts)
    assert point.status in ("warning", "not measured")
    assert "given the position" in point.meaning
    assert joint_learning(facts).status == "warning"
    assert logging_ranker(facts).status == "not measured"
    assert curves(facts).status != "good"


def test_random_features_are_called_useless(world):
    here, said = world(queries=200), []
    log = here.log(30_000, rankers=3)
    for seed in range(40):
        noise = np.random.default_rng(seed).normal(size=(here.data.document_count, 5))
        worth = feature_worth(log, replace(here.data, features=noise.astype(np.float32)))
        assert worth.blind < 1.1
        said.append(worth.p_value)
    # Luck shows a p-value below 0.2 at most one time in five.
    assert np.mean(np.array(said) < 0.2) < 0.35
    assert min(said) > 0.005


def test_agreement_of_curves_that_features_have_no_part_in_confirms_nothing(world, monkeypatch):
    facts = facts_of(world, random_features, monkeypatch)
    values = np.array([1.0, 0.5])
    same = Propensity(values, "test", 1, 0.98 * values, 1.02 * values)
    facts.__dict__.update(raw=same, harvested=same, learned=same, features_tell=False)
    assert curves(facts).status == "not measured"
    assert "confirms nothing" in curves(facts).meaning
    facts.__dict__["features_tell"] = True
    assert "both can be believed" in curves(facts).meaning


@pytest.mark.parametrize("seed", range(2))
def test_features_of_relevance_are_believed(world, monkeypatch, seed):
    facts = facts_of(
        world, lambda data: data.features, monkeypatch, seed=seed, sessions=60_000, steps=100
    )
    assert telling_features(facts).status == "good"
    assert "tell which documents are clicked" in telling_features(facts).meaning


@pytest.mark.parametrize("seed", range(3))
def test_features_are_not_blamed_for_what_a_ranker_has_not_learned(world, monkeypatch, seed):
    facts = facts_of(
        world, lambda data: data.features, monkeypatch, seed=seed, sessions=2_000, steps=1
    )
    assert telling_features(facts).status == "good"


def test_a_tiny_log_does_not_blame_the_features(world, monkeypatch):
    facts = facts_of(world, random_features, monkeypatch, sessions=300, steps=1)
    point = telling_features(facts)
    assert point.status == "not measured"
    assert "cannot be told" in point.meaning


def test_what_is_spread_over_many_features_is_seen(world):
    here = world(queries=300)
    log = here.log(60_000, rankers=3)
    rng = np.random.default_rng(5)
    weak = 0.03 * here.data.grades[:, None] + rng.normal(size=(here.data.document_count, 40))
    worth = feature_worth(log, replace(here.data, features=weak.astype(np.float32)))
    assert worth.p_value < 0.005
    # A single one of forty would need 3.8.
    assert worth.in_errors < 3.8


def test_features_that_are_the_same_for_all_documents_are_named(world, monkeypatch):
    def some(data):
        query = np.repeat(np.arange(len(data)), data.lengths)
        return np.column_stack([data.features[:, 0], query, np.full(len(query), 0.3)])

    facts = facts_of(world, some, monkeypatch)
    named = replace(facts.dataset, feature_names=("match", "length of query", "version"))
    point = telling_features(LogFacts(facts.log, named))
    assert "2 of 3 are the same" in point.meaning
    assert point.meaning.endswith("length of query, version.")
    assert point.numbers["same_for_all_documents_of_a_list"] == ["length of query", "version"]


def test_features_that_are_all_constant_fail(world, monkeypatch):
    facts = facts_of(world, lambda data: np.ones((data.document_count, 4)), monkeypatch)
    point = telling_features(facts)
    assert point.status == "failed"
    assert "All 4 features are the same" in point.meaning


def test_documents_that_look_alike_are_counted(world, monkeypatch):
    def seldom(data):
        return (np.random.default_rng(0).random((data.document_count, 1)) < 0.05) * 1.0

    facts = facts_of(world, seldom, monkeypatch)
    point = telling_features(facts)
    assert point.status == "warning"
    assert point.numbers["share_of_documents_that_look_like_another"] > 0.9
    assert "do not tell documents apart" in point.meaning
    share, alike = differences(facts.dataset, facts.log.lists)
    assert 0.2 < share[0] < 0.6
    assert alike > 0.9


def test_without_features_nothing_is_asked_of_them(world):
    assert telling_features(world().facts(500)).status == "not measured"


def test_single_documents_are_no_fault_of_the_features(world):
    here = world(queries=20)
    log = here.log(2_000, rankers=2)
    seen = log.lists.documents.copy()
    keep = np.arange(len(seen)) % 3
    seen[np.arange(seen.shape[1]) != keep[:, None]] = -1
    lists = RankedLists(seen, log.lists.queries)
    clicks = log.clicks & (seen >= 0)[log.list_of]
    single = ClickLog.from_clicks(lists, log.list_of, clicks, log.counts)
    found = diagnose(single, here.data)
    assert found["features"].status == "not measured"
    assert "Every list shows one document" in found["features"].meaning
    assert "method stopping" in " ".join(found.reasons)
    assert "auto." not in found["sample"].advice
