"""Drift: severity goes as it is told, and dual learning follows it where a measurement does not."""

from dataclasses import replace

import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.errors import SettingsError
from dualrank.reproduce.drift import MOMENTS, ChangingClicks, Drift, Severity, run_drift
from dualrank.reproduce.kept_runs import KeptRuns
from dualrank.reproduce.runner import stage_once


@pytest.fixture(scope="module")
def experiment():
    drift = Drift.preset("tiny")
    training = replace(drift.recipe.training, steps=400)
    recipe = replace(drift.recipe, training=training, randomised_sessions=200_000)
    return replace(drift, recipe=recipe, seeds=(0,))


@pytest.fixture(scope="module")
def results(experiment):
    return run_drift(experiment)


def test_the_severity_jumps_stays_and_goes_back():
    severity = Severity(0.5, 1.5, jump=0.4, ramp=(0.7, 0.9))
    moments = [0, 0.39, 0.4, 0.69, 0.75, 0.8, 0.9, 1]
    expected = [0.5, 0.5, 1.5, 1.5, 1.25, 1.0, 0.5, 0.5]
    assert [severity.at(moment) for moment in moments] == pytest.approx(expected)


@pytest.mark.parametrize("moment", [0.0, 0.5])
def test_clicks_are_those_of_the_users_of_the_moment(experiment, moment):
    simulation = stage_once(experiment.collection, 0)
    clicks = ChangingClicks(simulation, experiment.severity, sessions=50)
    clicks.moment = moment
    batch = clicks.draw(20_000, np.random.default_rng(0))
    user = PositionBasedUser(eta=0.5 if moment == 0 else 1.5)
    grades = simulation.lists.gather(simulation.train.grades)
    p = user.click_probabilities(grades, simulation.lists.mask, simulation.train.max_grade)
    found = batch.labels.sum(axis=0) / batch.drawn
    # Lists are drawn at random and looked at by 50 users each.
    variance = p.var(axis=0) + (p * (1 - p)).mean(axis=0) / 50
    # Ten normal errors: all are below 4.5 but once in 15,000 samples.
    assert (np.abs(found - p.mean(axis=0)) / np.sqrt(variance / 20_000)).max() < 4.5


def test_dual_learning_follows_and_the_old_measurement_does_not(results):
    """Logarithms of weights: far from the truth at first, close to it on the plateau."""
    record = {run.method: run.drift for run in results.runs}
    moments = record["dla"]["moment"]

    def off(method, moment):
        row = int(np.argmin(np.abs(np.array(moments) - moment)))
        user = PositionBasedUser(eta=record[method]["eta"][row])
        truth = user.examination(10) / user.examination(1)
        return np.abs(np.log(record[method]["examination"][row] / truth)).max()

    assert off("randlist", 0.4) < 0.1
    assert off("randlist", 0.7) > 2
    assert off("dla", 0.7) < 0.3
    assert off("dla", 0.425) > 2 * off("dla", 0.7)


def test_everything_is_recorded_all_along(results, experiment):
    assert [run.method for run in results.runs] == list(experiment.methods)
    for run in results.runs:
        assert {len(values) for values in run.drift.values()} == {MOMENTS}
        assert run.metrics["ndcg@10"] in run.drift["ndcg@10"]
    naive = results.of("naive")[0]
    assert naive.propensity is None
    assert set(naive.drift["examination"]) == {None}
    assert results.settings["sessions"] == 400 * 256 * experiment.recipe.sessions_per_list


def test_a_finished_task_is_not_done_again(experiment, results, tmp_path):
    quick = replace(experiment.recipe.training, steps=MOMENTS)
    short = replace(
        experiment, methods=("naive",), recipe=replace(experiment.recipe, training=quick)
    )
    kept = KeptRuns(tmp_path)
    first = run_drift(short, kept=kept)
    assert run_drift(short, kept=kept).runs[0].seconds == first.runs[0].seconds


def test_steps_that_cannot_be_recorded_evenly_are_refused(experiment):
    training = replace(experiment.recipe.training, steps=99)
    with pytest.raises(SettingsError, match="steps are a multiple of 40, not 99"):
        replace(experiment, recipe=replace(experiment.recipe, training=training))


def test_an_experiment_needs_a_seed(experiment):
    with pytest.raises(SettingsError, match="at least one seed"):
        replace(experiment, seeds=())
