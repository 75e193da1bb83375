"""The logs of scenarios are what their titles say."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.users import CascadeUser
from dualrank.data.generator import Preset, generate_splits
from dualrank.data.lists import top_lists
from dualrank.evaluation.evaluator import evaluate_per_query
from dualrank.reproduce import scenario_logs, scenario_rankers
from dualrank.reproduce.collection import Collection
from dualrank.reproduce.scenario_logs import SCENARIOS, scenario_data, shuffled_truth
from dualrank.reproduce.scenario_rankers import logging_lists
from dualrank.reproduce.simulation import simulate

SESSIONS = 40_000


@pytest.fixture(scope="module")
def simulation():
    return simulate(generate_splits(Preset(16, 300, 50, 50), seed=0), 0)


@pytest.fixture
def data_of(simulation, monkeypatch):
    """The data of a scenario, on a small collection with few sessions."""
    monkeypatch.setattr(scenario_logs, "simulation_of", lambda collection, seed: simulation)

    def make(name):
        monkeypatch.setitem(SCENARIOS, name, replace(SCENARIOS[name], sessions=SESSIONS))
        return scenario_data(name, Collection("tiny"), 0)

    return make


def quality(simulation, lists):
    """nDCG@10 of what is displayed, query by query."""
    scores = np.full(simulation.train.document_count, -99.0)
    np.maximum.at(scores, lists.documents[lists.mask], -np.nonzero(lists.mask)[1].astype(float))
    return evaluate_per_query(scores, simulation.train, ["ndcg@10"])["ndcg@10"]


def test_the_more_labels_a_logging_ranker_saw_the_better_its_lists(simulation, monkeypatch):
    monkeypatch.setattr(scenario_rankers, "STEPS_OF_LOGGERS", 300)
    reached = [
        quality(simulation, logging_lists(kind, simulation, 0))
        for kind in ("random", "initial", "linear", "network")
    ]
    for less, more in pairwise(reached):
        # Three standard errors over queries, which two equal rankers pass once in 700 times.
        gain = more - less
        assert gain.mean() > 3 * gain.std(ddof=1) / np.sqrt(len(gain))


def test_several_rankers_show_documents_at_several_positions(simulation, data_of):
    log = data_of("devices-unlogged").log
    assert len(log.lists) > len(simulation.train)
    assert len(np.unique(log.lists.documents, axis=0)) == len(log.lists)


def test_shuffling_finds_the_examination_of_position_based_users(simulation):
    user, lists = PositionBasedUser(), simulation.lists
    found = shuffled_truth(simulation.train, lists, user, np.random.default_rng(0)).examination
    truth = user.examination(10) / user.examination(1)
    # Over shuffles, the mean relevance of a position varies by that within lists: the error of a
    # ratio of two positions is √2 times that of one. Nine ratios stay within 4.5 but once in
    # 15,000 times.
    full = lists.mask.all(axis=1)
    relevance = 0.1 + 0.9 * (2 ** lists.gather(simulation.train.grades)[full] - 1) / 15
    copies = 20 * full.sum()
    error = np.sqrt(2 * relevance.var(axis=1).mean() / copies) / relevance.mean()
    assert np.abs(found / truth - 1).max() < 4.5 * error


def test_the_curve_of_users_who_leave_falls(simulation):
    found = shuffled_truth(
        simulation.train, simulation.lists, CascadeUser(), np.random.default_rng(0)
    ).examination
    assert (np.diff(found) < 0).all()


def test_the_logging_ranker_has_an_opinion_on_test_documents_unless_it_is_luck(simulation, data_of):
    assert data_of("random-logger").logged is None
    expected = simulation.initial.score(simulation.test.features)
    assert np.array_equal(data_of("initial-ranker").logged, expected)
    assert data_of("devices").logged.shape == expected.shape


def test_private_features_are_all_that_the_logging_ranker_sees(simulation, data_of):
    data = data_of("private-features")
    columns = simulation.test.features.T
    seen = [any(np.array_equal(c, s) for s in data.test.features.T) for c in columns]
    assert sum(seen) == len(seen) / 2
    hidden = np.column_stack([np.ones(columns.shape[1]), *columns[~np.array(seen)]])
    weights = np.linalg.lstsq(hidden, data.logged, rcond=None)[0]
    assert np.allclose(hidden @ weights, data.logged, atol=1e-3)


def test_each_device_has_its_examination_and_its_ranker(simulation, data_of):
    data = data_of("devices")
    parts = data.log.split("device")
    assert {name: part.sessions for name, part in parts.items()} == {
        "desktop": SESSIONS // 2,
        "phone": SESSIONS // 2,
    }
    for part in parts.values():
        assert len(np.unique(part.lists.queries)) == len(part.lists)
    initial = {row.tobytes() for row in simulation.lists.documents}
    assert {row.tobytes() for row in parts["desktop"].lists.documents} <= initial
    assert not {row.tobytes() for row in parts["phone"].lists.documents} <= initial
    curves = data.truth.by_context
    # Examination ρ^0.5 and ρ^2: the logarithm of one is four times that of the other.
    logs = [np.log(curves[name].examination[1:]) for name in ("phone", "desktop")]
    assert np.allclose(logs[0] / logs[1], 4, rtol=0.1)


def test_a_device_that_is_not_logged_is_the_same_log_without_the_column(data_of):
    with_column, without = data_of("devices"), data_of("devices-unlogged")
    assert (with_column.context, without.context) == ("device", None)
    assert not without.log.columns
    assert np.array_equal(with_column.log.clicks_per_list, without.log.clicks_per_list)
    assert np.array_equal(with_column.truth.examination, without.truth.examination)


def test_with_one_ranker_devices_see_the_same_lists(simulation, data_of):
    parts = data_of("devices-one-ranker").log.split("device").values()
    shown = [{row.tobytes() for row in part.lists.documents} for part in parts]
    assert len(shown[0] & shown[1]) > 0.9 * len(simulation.train)


def test_zipf_queries_are_asked_in_proportion_to_their_rank(simulation, data_of):
    log = data_of("zipf-queries").log
    asked = np.sort(log.sessions_per_list)[::-1]
    total = (1 / np.arange(1, len(simulation.train) + 1)).sum()
    for rank in (1, 2, 5):
        expected = SESSIONS / rank / total
        # Binomial: five standard deviations, which chance passes once in two million times.
        assert abs(asked[rank - 1] - expected) < 5 * np.sqrt(expected)


def test_clickbait_says_nothing_of_grades_and_is_shown_and_clicked_more(simulation, data_of):
    train, data = simulation.train, data_of("clickbait")
    bait = scenario_logs._bait(simulation).train > 0
    grades = [train.grades[bait], train.grades[~bait]]
    error = np.sqrt(sum(part.var() / len(part) for part in grades))
    assert abs(grades[0].mean() - grades[1].mean()) < 4 * error
    on_top = np.mean(bait[data.log.lists.documents[:, 0]])
    assert on_top > 1.5 * bait.mean()
    rates = data.log.clicks_per_list[:, 0] / np.maximum(data.log.sessions_per_list, 1)
    top = data.log.lists.documents[:, 0]
    worst = train.grades[top] == 0
    assert rates[worst & bait[top]].mean() > 1.5 * rates[worst & ~bait[top]].mean()


@pytest.mark.parametrize(("name", "depth"), [("lists-of-5", 5), ("lists-of-20", 20)])
def test_lists_are_as_long_as_they_say(simulation, data_of, name, depth):
    data = data_of(name)
    assert data.log.lists.depth == data.truth.depth == depth
    scores = simulation.initial.score(simulation.train.features)
    expected = top_lists(simulation.train, scores, depth).documents
    assert np.array_equal(data.log.lists.documents, expected)


def test_a_mixture_is_of_equal_shares(data_of):
    data = data_of("mixed-users")
    assert data.log.sessions == SESSIONS
    assert (np.diff(data.truth.examination) < 0).all()


def test_a_public_collection_has_as_many_sessions_per_query(simulation, monkeypatch, tmp_path):
    monkeypatch.setattr(scenario_logs, "simulation_of", lambda collection, seed: simulation)
    log = scenario_data("100k-sessions", Collection("mq2007", tmp_path), 0).log
    assert log.sessions == 100_000 * len(simulation.train) / 8_000
