"""Scenarios: the logs are what their titles say, and every method is trained on the same one."""

from itertools import pairwise

import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.users import CascadeUser
from dualrank.data.generator import Preset, generate_splits
from dualrank.errors import SettingsError
from dualrank.evaluation.evaluator import evaluate, evaluate_per_query
from dualrank.learning.fit import fit
from dualrank.reproduce.collection import Collection
from dualrank.reproduce.runner import run
from dualrank.reproduce.scenario_logs import scenario_data, shuffled_truth
from dualrank.reproduce.scenario_rankers import RANKER, logging_lists
from dualrank.reproduce.scenarios import Scenarios, scenario_rows
from dualrank.reproduce.simulation import simulate
from dualrank.settings import TrainingSettings

NAMES = ("hidden-features", "few-sessions")


@pytest.fixture(scope="module")
def simulation():
    return simulate(generate_splits(Preset(16, 300, 50, 50), seed=0), 0)


def quality(simulation, lists):
    """nDCG@10 of what is displayed, query by query."""
    scores = np.full(simulation.train.document_count, -99.0)
    np.maximum.at(scores, lists.documents[lists.mask], -np.nonzero(lists.mask)[1].astype(float))
    return evaluate_per_query(scores, simulation.train, ["ndcg@10"])["ndcg@10"]


def test_the_more_labels_a_logging_ranker_saw_the_better_its_lists(simulation):
    reached = [
        quality(simulation, logging_lists(kind, simulation, 0))
        for kind in ("random", "initial", "linear", "network")
    ]
    for less, more in pairwise(reached):
        # Three standard errors over queries, which two equal rankers pass once in 700 times.
        gain = more - less
        assert gain.mean() > 3 * gain.std(ddof=1) / np.sqrt(len(gain))


def test_three_rankers_show_documents_at_several_positions(simulation):
    lists = logging_lists("three networks", simulation, 0)
    assert len(lists) > len(simulation.train)
    assert len(logging_lists("network", simulation, 0)) == len(simulation.train)


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


@pytest.fixture(scope="module")
def results():
    return run(Scenarios(preset="tiny", only=NAMES, seeds=2, steps=60)).results["results"]


def test_every_method_runs_in_every_scenario_with_every_seed(results):
    for scenario in NAMES:
        runs = [run for run in results.runs if run.scenario == scenario]
        assert sorted((run.method, run.seed) for run in runs) == [
            (method, seed) for method in ("auto", "dla", "naive", "truth") for seed in (0, 1)
        ]


def test_the_table_has_a_row_per_scenario(results):
    rows = scenario_rows(results)
    assert [row.title for row in rows] == ["half of the features hidden", "1,000 sessions only"]
    dla, naive = (
        next(run for run in results.runs if (run.method, run.scenario) == (method, NAMES[1]))
        for method in ("dla", "naive")
    )
    assert rows[1].gains()[0] == dla.metrics["ndcg@10"] - naive.metrics["ndcg@10"]


@pytest.mark.parametrize(
    ("change", "words"),
    [({"only": ("weather",)}, "unknown scenario 'weather'; known are random-logger"),
     ({"only": ()}, "at least one scenario"),
     ({"seeds": 0}, "at least one seed")],
)  # fmt: skip
def test_what_cannot_be_run_is_refused(change, words):
    with pytest.raises(SettingsError, match=words):
        Scenarios(**change)


@pytest.mark.parametrize("name", NAMES)
def test_auto_is_what_fit_makes_of_the_log(results, name):
    """The scenarios train the candidates once for all rows; `fit` must come to the same."""
    data = scenario_data(name, Collection("tiny"), 1)
    settings = TrainingSettings(steps=60, seed=1)
    model = fit(
        data.log, data.train, method="auto", ranker=RANKER, validation=0.2, settings=settings
    )
    reached = evaluate(model.predict(data.test), data.test, ["ndcg@10"])["ndcg@10"]
    found = next(run for run in results.of("auto") if (run.seed, run.scenario) == (1, name))
    assert found.metrics["ndcg@10"] == reached
    assert found.chosen == model.training["auto"]["chosen"]
