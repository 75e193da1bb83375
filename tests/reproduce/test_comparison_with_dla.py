"""Methods are compared on the queries, and with the seeds, that both were run on."""

import numpy as np
import pytest

from dualrank.reproduce.comparison_with_dla import compare_with, compare_with_dla
from dualrank.reproduce.experiment import Trained

RNG = np.random.default_rng(0)
VALUES = {
    (method, seed): RNG.random(30) + (0.3 if method == "better" else 0.0)
    for method in ("dla", "naive", "better")
    for seed in (0, 1, 2)
}


def trained(*left_out):
    return [
        Trained.of(method, seed, {"ndcg@10": values}, seconds=0)
        for (method, seed), values in VALUES.items()
        if (method, seed) not in left_out
    ]


def mean_difference(method, reference, seeds):
    return np.mean([VALUES[method, seed] - VALUES[reference, seed] for seed in seeds])


@pytest.mark.parametrize(("pool", "queries"), [(True, 90), (False, 30)])
def test_seeds_are_pooled_or_averaged(pool, queries):
    test = compare_with("naive", trained(), pool=pool, permutations=1_000)
    assert (test["reference"], test["queries"]) == ("naive", queries)
    assert set(test["p_values"]) == {"dla", "better"}
    expected = mean_difference("better", "naive", (0, 1, 2))
    assert test["difference"]["better"]["ndcg@10"] == pytest.approx(expected)
    assert test["p_values"]["better"]["ndcg@10"] < 0.01


def test_a_seed_that_one_of_two_lacks_takes_no_part():
    test = compare_with_dla(trained(("better", 1)), pool=True)
    expected = mean_difference("better", "dla", (0, 2))
    assert test["difference"]["better"]["ndcg@10"] == pytest.approx(expected)
    whole = mean_difference("naive", "dla", (0, 1, 2))
    assert test["difference"]["naive"]["ndcg@10"] == pytest.approx(whole)


def test_nothing_is_compared_with_what_did_not_run():
    assert compare_with("oracle", trained(), pool=True) == {}
