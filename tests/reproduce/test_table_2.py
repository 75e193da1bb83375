"""The order of the paper's Table 2 comes out of learning, on data of a size that tests can bear."""

import numpy as np

from dualrank.data.generator import Preset, generate_splits
from dualrank.evaluation.evaluator import evaluate_per_query
from dualrank.evaluation.propensity_error import inverse_propensity_mse
from dualrank.rankers.network import DNN
from dualrank.reproduce.simulation import simulate
from dualrank.reproduce.table_2_rows import Hyperparameters, run_method
from dualrank.settings import TrainingSettings


def test_dual_learning_sees_through_the_bias_as_well_as_randomisation_does(users):
    simulation = simulate(generate_splits(Preset(32, 3_000, 300, 1_000), seed=0), 0)
    settings = TrainingSettings(steps=1_500)
    chosen = Hyperparameters(settings, DNN((64, 32)), randomised_sessions=500_000)
    outcomes = {
        name: run_method(name, simulation, users, chosen)
        for name in ("initial", "naive", "randlist", "dla")
    }
    ndcg = {
        name: evaluate_per_query(outcome.test_scores, simulation.test, ["ndcg@10"])["ndcg@10"]
        for name, outcome in outcomes.items()
    }

    def in_errors(better, worse):
        """A difference over test queries in its standard errors."""
        difference = ndcg[better] - ndcg[worse]
        return difference.mean() / (difference.std(ddof=1) / np.sqrt(len(difference)))

    # Four standard errors are passed by equal rankers once in 30,000 times.
    assert in_errors("naive", "initial") > 4
    assert in_errors("randlist", "naive") > 4
    assert in_errors("dla", "naive") > 4
    # Level: between the two lies less than a quarter of what either gains over naive training.
    gain = ndcg["randlist"].mean() - ndcg["naive"].mean()
    assert abs(ndcg["dla"].mean() - ndcg["randlist"].mean()) < gain / 4
    # The measured weights are wrong by their sampling error alone: twice the half-width of their
    # 95% interval is four standard errors. Without any correction all weights are 1.
    measured = outcomes["randlist"].propensity
    truth = users.training.examination(10) / users.training.examination(1)
    low, high = np.array(measured.low), np.array(measured.high)
    assert measured.mse < np.mean((1 / low - 1 / high) ** 2)
    uncorrected = inverse_propensity_mse(np.ones(10), truth)
    assert outcomes["dla"].propensity.mse < uncorrected / 50
