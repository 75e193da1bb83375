"""Scenarios: the logs are what their titles say, and every method is trained on the same one."""

import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.users import CascadeUser
from dualrank.data.generator import Preset, generate_splits
from dualrank.errors import SettingsError
from dualrank.evaluation.evaluator import evaluate
from dualrank.learning.fit import fit
from dualrank.report.scenarios import scenario_rows, scenario_table
from dualrank.reproduce.collection import Collection
from dualrank.reproduce.scenarios import (
    Scenarios,
    logging_lists,
    run_scenarios,
    set_up,
    shuffled_truth,
)
from dualrank.reproduce.simulation import stage
from dualrank.settings import TrainingSettings


@pytest.fixture(scope="module")
def simulation():
    return stage(generate_splits(Preset(16, 300, 50, 50), seed=0), 0)


def quality(simulation, lists):
    """nDCG@10 of what is displayed."""
    scores = np.full(simulation.train.document_count, -99.0)
    np.maximum.at(scores, lists.documents[lists.mask], -np.nonzero(lists.mask)[1].astype(float))
    return evaluate(scores, simulation.train, ["ndcg@10"])["ndcg@10"]


def test_the_more_labels_a_logging_ranker_saw_the_better_its_lists(simulation):
    reached = [
        quality(simulation, logging_lists(kind, simulation, 0))
        for kind in ("random", "initial", "linear", "network")
    ]
    assert reached == sorted(reached)


def test_three_rankers_show_documents_at_several_positions(simulation):
    lists = logging_lists("three networks", simulation, 0)
    assert len(lists) > len(simulation.train)
    assert len(logging_lists("network", simulation, 0)) == len(simulation.train)


def test_shuffling_finds_the_examination_of_position_based_users(simulation):
    rng = np.random.default_rng(0)
    user = PositionBasedUser()
    found = shuffled_truth(simulation.train, simulation.lists, user, rng).examination
    truth = user.examination(10)
    np.testing.assert_allclose(found, truth / truth[0], rtol=0.05)


def test_the_curve_of_users_who_leave_falls(simulation):
    found = shuffled_truth(
        simulation.train, simulation.lists, CascadeUser(), np.random.default_rng(0)
    ).examination
    assert (np.diff(found) < 0).all()


@pytest.fixture(scope="module")
def results():
    experiment = Scenarios(
        Collection("tiny"),
        names=("hidden-features", "few-sessions"),
        seeds=(0, 1),
        settings=TrainingSettings(steps=60),
    )
    return run_scenarios(experiment)


def test_every_method_runs_in_every_scenario_with_every_seed(results):
    for scenario in ("hidden-features", "few-sessions"):
        runs = [run for run in results.runs if run.scenario == scenario]
        assert sorted((run.method, run.seed) for run in runs) == [
            (method, seed) for method in ("auto", "dla", "naive", "truth") for seed in (0, 1)
        ]


def test_auto_is_one_of_the_others_and_says_which(results):
    for auto in results.of("auto"):
        twin = next(
            run
            for run in results.of(auto.chosen)
            if (run.scenario, run.seed) == (auto.scenario, auto.seed)
        )
        assert auto.metrics == twin.metrics
        assert auto.verdict in (
            "fit for joint learning",
            "use harvested propensities",
            "collect some swaps first",
        )


def test_the_table_has_a_row_per_scenario(results):
    rows = scenario_rows(results)
    assert [row.title for row in rows] == ["half of the features hidden", "1,000 sessions only"]
    assert rows[1].gains() == [
        dla.metrics["ndcg@10"] - naive.metrics["ndcg@10"]
        for dla, naive in zip(results.of("dla"), results.of("naive"), strict=True)
        if dla.scenario == "few-sessions"
    ]
    text = scenario_table(results).markdown()
    assert text.count("\n| ") == 2
    assert "over 2 seeds" in text


@pytest.mark.parametrize(
    ("change", "words"),
    [({"names": ("weather",)}, "unknown scenario 'weather'; known are random-logger"),
     ({"names": ()}, "at least one seed and one scenario"),
     ({"seeds": ()}, "at least one seed and one scenario")],
)  # fmt: skip
def test_what_cannot_be_played_is_refused(change, words):
    with pytest.raises(SettingsError, match=words):
        Scenarios(**change)


@pytest.mark.parametrize("name", ["hidden-features", "few-sessions"])
def test_auto_is_what_fit_makes_of_the_log(results, name):
    """The scenarios train the candidates once for all rows; `fit` must come to the same."""
    scene = set_up(name, Collection("tiny"), 1)
    settings = TrainingSettings(steps=60, seed=1)
    ranker = Scenarios().ranker
    model = fit(
        scene.log, scene.train, method="auto", ranker=ranker, validation=0.2, settings=settings
    )
    reached = evaluate(model.predict(scene.test), scene.test, ["ndcg@10"])["ndcg@10"]
    run = next(
        run for run in results.of("auto") if run.seed == 1 and run.model_extra["scenario"] == name
    )
    assert run.metrics["ndcg@10"] == reached
    assert run.model_extra["chosen"] == model.training["auto"]["chosen"]
