"""The experiment as a whole: the same results from any number of processes, and its errors."""

from dataclasses import replace

import numpy as np
import pytest

from dualrank.clicks.position_based import EYE_TRACKING
from dualrank.errors import SettingsError
from dualrank.evaluation.metric import PAPER_METRICS
from dualrank.report.results import Results
from dualrank.reproduce.collection import Collection
from dualrank.reproduce.methods import METHODS
from dualrank.reproduce.oracle_mode import OracleMode, run_oracle_mode
from dualrank.reproduce.presets import RECIPES


@pytest.fixture(scope="module")
def experiment():
    tiny = OracleMode.preset("tiny")
    training = replace(tiny.recipe.training, steps=80, validate_every=40)
    recipe = replace(tiny.recipe, training=training, C=5.0, randomised_sessions=50_000)
    return replace(tiny, recipe=recipe, seeds=(0, 1))


@pytest.fixture(scope="module")
def results(experiment):
    return run_oracle_mode(experiment)


def without_seconds(results):
    return results.model_copy(
        update={"runs": [run.model_copy(update={"seconds": 0.0}) for run in results.runs]}
    )


def test_two_processes_give_the_results_of_one(experiment, results):
    told, finished = [], []
    parallel = run_oracle_mode(
        experiment,
        jobs=2,
        report=lambda *what: told.append(what),
        finished=lambda: finished.append(1),
    )
    assert without_seconds(parallel) == without_seconds(results)
    assert len(finished) == len(experiment.tasks) == 14
    assert {index for index, _, _ in told} <= set(range(14))
    assert all(done <= total for _, done, total in told)


def test_there_is_one_run_per_method_and_seed_with_the_metrics_of_the_paper(results):
    assert [(run.method, run.seed) for run in results.runs] == [
        (method, seed) for seed in (0, 1) for method in METHODS
    ]
    for run in results.runs:
        assert list(run.metrics) == [str(metric) for metric in PAPER_METRICS]
        assert all(0 <= value <= 1 for value in run.metrics.values())
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
    alone = replace(experiment, methods=("initial",), seeds=(0,))
    assert run_oracle_mode(alone).significance == {}


def test_seeds_do_not_depend_on_their_company(experiment, results):
    alone = run_oracle_mode(replace(experiment, methods=("naive",), seeds=(1,)))
    assert alone.runs[0].metrics == results.of("naive")[1].metrics


def test_a_tuned_experiment_leaves_its_trials(experiment):
    tuned = replace(experiment, methods=("svm-naive",), seeds=(0,), tuned=True)
    run = run_oracle_mode(tuned).runs[0]
    assert [trial["C"] for trial in run.trials] == [20, 50, 100, 200]


def test_what_cannot_be_run_is_refused(experiment):
    with pytest.raises(SettingsError, match="unknown method 'em'; known are dla, svm-naive"):
        replace(experiment, methods=("dla", "em"))
    with pytest.raises(SettingsError, match="at least one seed"):
        replace(experiment, seeds=())
    with pytest.raises(SettingsError, match="unknown preset 'huge'; known are tiny, laptop, full"):
        OracleMode.preset("huge")


def test_every_preset_has_a_recipe_and_data():
    for name in RECIPES:
        assert OracleMode.preset(name).collection == Collection(name)


def test_more_seeds_than_folds_are_refused(experiment, tmp_path):
    folds = Collection("mq2007", root=tmp_path, fold=None)
    with pytest.raises(SettingsError, match="there are 5 folds"):
        replace(experiment, collection=folds, seeds=tuple(range(6)))


def test_a_task_is_named_by_method_and_seed(experiment):
    assert str(experiment.tasks[0]) == "dla, seed 0"
