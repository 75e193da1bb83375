"""The rows of Table 2 are combinations of pieces, and none of them looks at test grades."""

from dataclasses import replace

import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.errors import SettingsError
from dualrank.reproduce.table_2_rows import METHODS, Users, run_method


@pytest.mark.parametrize("name", METHODS)
def test_every_row_scores_all_documents_and_is_repeatable(name, simulation, users, chosen):
    first, second = (run_method(name, simulation, users, chosen) for _ in range(2))
    assert first.test_scores.shape == (simulation.test.document_count,)
    assert first.valid_scores.shape == (simulation.valid.document_count,)
    assert np.isfinite(first.test_scores).all()
    assert np.array_equal(first.test_scores, second.test_scores)
    assert first.propensity == second.propensity


@pytest.mark.parametrize("name", METHODS)
def test_no_row_looks_at_the_grades_of_the_test_queries(name, simulation, users, chosen):
    poisoned = replace(simulation, test=replace(simulation.test, grades=None))
    honest = run_method(name, simulation, users, chosen)
    blind = run_method(name, poisoned, users, chosen)
    assert np.array_equal(honest.test_scores, blind.test_scores)


@pytest.mark.parametrize("name", METHODS)
def test_only_rows_that_believe_a_propensity_show_one(name, simulation, users, chosen):
    shown = run_method(name, simulation, users, chosen).propensity
    if METHODS[name].method == "naive":
        assert shown is None
    else:
        assert shown.examination[0] == 1
        assert len(shown.examination) == 10
        assert shown.mse >= 0


def test_randomisation_is_near_the_truth_and_shows_its_interval(simulation, users, chosen):
    shown = run_method("randlist", simulation, users, chosen).propensity
    truth = users.training.examination(10) / users.training.examination(1)
    low, high = np.array(shown.low[1:]), np.array(shown.high[1:])
    # Twice the stated interval: nearly four standard errors.
    wider = (high / low) ** 0.5
    assert (truth[1:] > low / wider).all()
    assert (truth[1:] < high * wider).all()


def test_users_who_changed_since_the_measurement_make_its_error_large(simulation, chosen):
    before, now = PositionBasedUser(eta=1.0), PositionBasedUser(eta=2.0)
    stale = run_method("randlist", simulation, Users(now, before), chosen).propensity
    fresh = run_method("randlist", simulation, Users(before, before), chosen).propensity
    assert stale.examination == fresh.examination
    assert stale.mse > 100 * fresh.mse


def test_networks_leave_their_validation_curve(simulation, users, chosen):
    curve = run_method("dla", simulation, users, chosen).extra["curve"]
    assert curve["steps"] == [20, 40, 60]
    assert len(curve["ndcg@10"]) == 3
    assert run_method("svm-naive", simulation, users, chosen).extra == {}


def test_an_unknown_row_is_refused(simulation, users, chosen):
    with pytest.raises(SettingsError, match="unknown method 'em'; known are dla, svm-naive"):
        run_method("em", simulation, users, chosen)


def test_hyperparameters_are_described_by_plain_values_without_their_seed(chosen):
    described = chosen.describe()
    assert "seed" not in described
    assert described["steps"] == 60
    assert described["hidden"] == [8]
    assert described["C"] == 10.0
    other = chosen.with_training(seed=5, steps=None)
    assert other.training.seed == 5
    assert other.describe() == described
