"""Drift: severity goes as it is told, and dual learning follows it where a measurement does not."""

from dataclasses import replace

import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.errors import SettingsError
from dualrank.reproduce.drift import METHODS, MOMENTS, ChangingClicks, Drift, Severity
from dualrank.reproduce.runner import run
from dualrank.reproduce.simulation import simulation_of


@pytest.fixture(scope="module")
def experiment():
    return Drift(preset="tiny", steps=400, seeds=1)


@pytest.fixture(scope="module")
def results(experiment):
    return run(experiment).results["results"]


def test_the_severity_jumps_stays_and_goes_back():
    severity = Severity(0.5, 1.5, jump=0.4, ramp=(0.7, 0.9))
    moments = [0, 0.39, 0.4, 0.69, 0.75, 0.8, 0.9, 1]
    expected = [0.5, 0.5, 1.5, 1.5, 1.25, 1.0, 0.5, 0.5]
    assert [severity.at(moment) for moment in moments] == pytest.approx(expected)


def test_clicks_are_those_of_the_users_of_the_moment(experiment):
    simulation = simulation_of(experiment.collection, 0)
    clicks = ChangingClicks(simulation, experiment.severity, steps=2, sessions=50)
    grades = simulation.lists.gather(simulation.train.grades)
    rng = np.random.default_rng(0)
    # The first of two batches comes before the jump, the second on the plateau.
    for eta in (0.5, 1.5):
        batch = clicks.draw(20_000, rng)
        user = PositionBasedUser(eta=eta)
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

    # The measurement is of η = 0.5; at 1.5 it is off by the logarithm of the curve itself,
    # log(ρ_1/ρ_10) = log(0.68/0.06) = 2.4, at the last position. Documents are clicked 0.22 times
    # when seen, so 100,000 shuffled sessions leave √0.06 · 22,000 = 5,400 clicks there: with those
    # of the first position a standard error of 0.015, of which 0.1 is more than six.
    assert off("randlist", 0.4) < 0.1
    assert off("randlist", 0.7) == pytest.approx(np.log(0.68 / 0.06), abs=0.1)
    # Dual learning starts the plateau with that same error, and ends it with an eighth of it.
    assert off("dla", 0.425) > np.log(0.68 / 0.06) / 4
    assert off("dla", 0.7) < np.log(0.68 / 0.06) / 8


def test_everything_is_recorded_all_along(results):
    assert [run.method for run in results.runs] == list(METHODS)
    for each in results.runs:
        assert {len(values) for values in each.drift.values()} == {MOMENTS}
        assert each.metrics["ndcg@10"] in each.drift["ndcg@10"]
    naive = results.of("naive")[0]
    assert naive.propensity is None
    assert set(naive.drift["examination"]) == {None}
    assert results.settings["sessions"] == 400 * 256 * 64


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steps": 99}, "steps are a multiple of 40, not 99"),
        ({"seeds": 0}, "at least one seed"),
    ],
)
def test_what_cannot_be_run_is_refused(experiment, changes, words):
    with pytest.raises(SettingsError, match=words):
        replace(experiment, **changes)
