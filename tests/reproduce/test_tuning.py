"""The search keeps what is best on validation data and never sees test grades."""

from dataclasses import replace

import numpy as np
import pytest

from dualrank.errors import SettingsError
from dualrank.reproduce import tuning
from dualrank.reproduce.tuning import C_VALUES, candidates, tune


@pytest.fixture(autouse=True)
def few_candidates(monkeypatch):
    monkeypatch.setattr(tuning, "HIDDEN", ((4,), (8,)))
    monkeypatch.setattr(tuning, "LEARNING_RATES", (0.001,))


@pytest.mark.parametrize("method", ["dla", "svm-naive", "oracle"])
def test_the_best_on_validation_is_kept(method, simulation, users, chosen):
    found = tune(method, simulation, users, chosen)
    values = [trial["ndcg@10"] for trial in found.trials]
    best = found.trials[values.index(max(values))]
    assert len(set(values)) > 1
    if method == "svm-naive":
        assert len(found.trials) == len(C_VALUES)
        assert best["C"] == found.chosen.C
    else:
        assert len(found.trials) == 4
        assert list(found.chosen.ranker.hidden) == best["hidden"]
        assert found.chosen.training.rate == best["learning_rate"]


@pytest.mark.parametrize("method", ["dla", "svm-randlist"])
def test_grades_of_the_test_queries_do_not_matter(method, simulation, users, chosen):
    honest = tune(method, simulation, users, chosen)
    for poison in (None, simulation.test.grades[::-1].copy()):
        blind = replace(simulation, test=replace(simulation.test, grades=poison))
        found = tune(method, blind, users, chosen)
        assert (found.chosen, found.trials) == (honest.chosen, honest.trials)
        assert np.array_equal(found.outcome.test_scores, honest.outcome.test_scores)


def test_grades_of_the_validation_queries_do_matter(simulation, users, chosen):
    upside_down = replace(simulation.valid, grades=4 - simulation.valid.grades)
    other = replace(simulation, valid=upside_down)
    honest, misled = (tune("oracle", s, users, chosen) for s in (simulation, other))
    assert [t["ndcg@10"] for t in honest.trials] != [t["ndcg@10"] for t in misled.trials]


def test_the_initial_ranker_has_nothing_to_tune(simulation, users, chosen):
    found = tune("initial", simulation, users, chosen)
    assert found.chosen == chosen
    assert len(found.trials) == 1


def test_the_propensity_rate_keeps_its_ratio_to_the_rate_of_the_ranker(chosen):
    for _, candidate in candidates("dla", chosen):
        training = candidate.training
        assert training.propensity_rate / training.rate == pytest.approx(5.0)


def test_progress_runs_through_all_candidates(simulation, users, chosen):
    heard = []
    tune("naive", simulation, users, chosen, lambda done, total: heard.append((done, total)))
    done = [d for d, _ in heard]
    assert done == sorted(done)
    assert {total for _, total in heard} == {4 * chosen.training.steps}
    assert done[-1] == 4 * chosen.training.steps


def test_an_unknown_method_is_refused(simulation, users, chosen):
    with pytest.raises(SettingsError, match="unknown method 'magic'"):
        tune("magic", simulation, users, chosen)
