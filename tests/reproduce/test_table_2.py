"""The order of the paper's Table 2 comes out of learning, on data of a size that tests can bear."""

import pytest

from dualrank.data.generator import Preset, generate_splits
from dualrank.evaluation.evaluator import evaluate
from dualrank.rankers.network import DNN
from dualrank.reproduce.methods import Recipe, run_method
from dualrank.reproduce.simulation import stage
from dualrank.settings import TrainingSettings


@pytest.mark.parametrize("seed", [0, 1])
def test_dual_learning_sees_through_the_bias_as_well_as_randomisation_does(seed, users):
    simulation = stage(generate_splits(Preset(32, 3_000, 300, 1_000), seed=seed), seed)
    settings = TrainingSettings(steps=1_500, seed=seed)
    recipe = Recipe(settings, DNN((64, 32)), randomised_sessions=500_000)
    outcomes = {
        name: run_method(name, simulation, users, recipe)
        for name in ("initial", "naive", "randlist", "dla")
    }
    ndcg = {
        name: evaluate(outcome.test_scores, simulation.test, ["ndcg@10"])["ndcg@10"]
        for name, outcome in outcomes.items()
    }
    assert ndcg["initial"] < ndcg["naive"] < ndcg["randlist"]
    assert ndcg["dla"] - ndcg["naive"] > 0.015
    assert abs(ndcg["dla"] - ndcg["randlist"]) < 0.01
    assert outcomes["dla"].propensity.mse < 0.25
    assert outcomes["randlist"].propensity.mse < 0.01
