"""The experiment as a whole: the same results from any number of processes, and its errors."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dualrank.clicks.position_based import EYE_TRACKING
from dualrank.errors import SettingsError
from dualrank.evaluation.metric import PAPER_METRICS
from dualrank.report.results import Results
from dualrank.reproduce.collection import Collection
from dualrank.reproduce.oracle_mode import Demo, OracleMode
from dualrank.reproduce.runner import run
from dualrank.reproduce.table_2_rows import METHODS, PRESETS


@pytest.fixture(scope="module")
def experiment():
    return OracleMode(preset="tiny", steps=80, C=5.0, seeds=2)


@pytest.fixture(scope="module")
def results(experiment):
    return run(experiment).results["results"]


def test_two_processes_give_the_results_of_one(experiment, results):
    heard, finished = [], []
    parallel = run(
        experiment,
        jobs=2,
        report=lambda *what: heard.append(what),
        finished=lambda: finished.append(1),
    ).results["results"]
    # Equal bits were asked for, and were not had in one full run that could not be repeated.
    for one, two in zip(results.runs, parallel.runs, strict=True):
        assert (one.method, one.seed) == (two.method, two.seed)
        assert two.metrics == pytest.approx(one.metrics, rel=1e-4)
        if one.propensity is not None:
            expected = pytest.approx(one.propensity.examination, rel=1e-4)
            assert two.propensity.examination == expected
    assert parallel.settings == results.settings
    assert parallel.significance.keys() == results.significance.keys()
    assert len(finished) == len(experiment.tasks()) == 14
    assert {index for index, _, _ in heard} <= set(range(14))
    assert all(done <= total for _, done, total in heard)


def test_there_is_one_run_per_method_and_seed_with_the_metrics_of_the_paper(results):
    assert [(run.method, run.seed) for run in results.runs] == [
        (method, seed) for seed in (0, 1) for method in METHODS
    ]
    for each in results.runs:
        assert list(each.metrics) == [str(metric) for metric in PAPER_METRICS]
        assert all(0 <= value <= 1 for value in each.metrics.values())
    assert results.methods == list(METHODS)
    assert [run.seed for run in results.of("dla")] == [0, 1]


def test_every_seed_has_data_of_its_own(results):
    first, second = results.of("initial")
    assert first.metrics != second.metrics


def test_results_survive_their_file(results, tmp_path):
    results.write(tmp_path / "results.json")
    assert Results.read(tmp_path / "results.json") == results


def test_settings_say_what_was_run(results):
    assert results.experiment == "oracle-mode"
    assert results.settings["data"] == "generated, preset tiny, world 0"
    assert results.settings["queries"] == {"train": 600, "valid": 150, "test": 300}
    assert results.settings["features"] == 32
    assert results.settings["seeds"] == [0, 1]
    assert results.settings["steps"] == 80
    np.testing.assert_allclose(
        results.settings["true_examination"], np.array(EYE_TRACKING) / EYE_TRACKING[0]
    )


def test_every_method_is_compared_with_dual_learning_on_every_metric(results):
    significance = results.significance
    others = set(METHODS) - {"dla"}
    assert significance["reference"] == "dla"
    assert significance["test"] == "fisher"
    assert significance["alpha"] == 0.05
    assert significance["queries"] == 600
    assert significance["p_values"].keys() == significance["difference"].keys() == others
    for method in others:
        assert list(significance["p_values"][method]) == [str(metric) for metric in PAPER_METRICS]
        assert all(0 < p <= 1 for p in significance["p_values"][method].values())
        for metric, difference in significance["difference"][method].items():
            ours = np.mean([run.metrics[metric] for run in results.of(method)])
            reference = np.mean([run.metrics[metric] for run in results.of("dla")])
            assert difference == pytest.approx(ours - reference, abs=1e-9)


def test_without_dual_learning_there_is_nothing_to_compare_with(experiment):
    alone = replace(experiment, methods=("initial",), seeds=1)
    assert run(alone).results["results"].significance == {}


def test_seeds_do_not_depend_on_their_company(experiment, results):
    alone = run(replace(experiment, methods=("naive",), seed=1, seeds=1)).results["results"]
    assert alone.runs[0].metrics == results.of("naive")[1].metrics


def test_a_tuned_experiment_leaves_its_trials(experiment):
    tuned = replace(experiment, methods=("svm-naive",), seeds=1, tune=True)
    found = run(tuned).results["results"].runs[0]
    assert [trial["C"] for trial in found.trials] == [20, 50, 100, 200]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"methods": ("dla", "em")}, "unknown method 'em'; known are dla, svm-naive"),
        ({"seeds": 0}, "at least one seed"),
        ({"preset": "huge"}, "unknown preset 'huge'; known are tiny, laptop, full"),
        ({"data": "mq2008"}, "data='NAME' and root='FOLDER' go together"),
        ({"data": "mq2007", "root": Path("x"), "fold": "x"}, "neither a number from 1 nor 'all'"),
        ({"data": "mq2007", "root": Path("x"), "fold": "all", "seeds": 6}, "there are 5 folds"),
        ({"learning_rate": -1.0}, "learning_rate must be a number above 0"),
        ({"eta": -1.0}, "eta"),
    ],
)
def test_what_cannot_be_run_is_refused(options, words):
    with pytest.raises(SettingsError, match=words):
        OracleMode(**options)


def test_every_preset_has_hyperparameters_and_data():
    for name in PRESETS:
        assert OracleMode(preset=name).collection == Collection(name)


def test_options_reach_the_training():
    given = OracleMode(hidden=(8, 4), elu_output=True, batch_size=16, position_model="network")
    assert given.hyperparameters.ranker.hidden == (8, 4)
    assert given.hyperparameters.ranker.elu_output
    assert given.hyperparameters.training.batch_size == 16
    assert given.hyperparameters.position_model == "network"
    assert given.hyperparameters.training.steps == PRESETS["laptop"].training.steps


def test_a_task_is_named_by_method_and_seed(experiment):
    assert str(experiment.tasks()[0]) == "dla, seed 0"


def test_the_directory_holds_all_that_people_and_programs_need(tmp_path):
    demo = Demo(preset="tiny", seeds=1, methods=("dla", "naive"))
    done = run(demo, tmp_path / "new", command="dualrank demo")
    assert [path.name for path in done.files] == [
        "results.json",
        "table.md",
        "figure-propensity.svg",
        "figure-propensity.png",
        "figure-methods.svg",
        "figure-learning-curve.svg",
        "report.html",
    ]
    assert sorted((tmp_path / "new").iterdir()) == sorted(done.files)
    found = Results.read(tmp_path / "new" / "results.json")
    assert found.experiment == "demo"
    assert found.settings["command"] == "dualrank demo"
    assert "users who behave exactly as the position-based model" in done.files[-1].read_text()
