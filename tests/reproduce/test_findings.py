from __future__ import annotations

import pytest

from dualrank.report.results import Results
from dualrank.reproduce.findings import findings, ranges


def first(make, naive: float, **options) -> str:
    return findings(make(ndcg={"dla": 0.72, "naive": naive}, **options))[0]


def test_a_significant_gain_is_called_a_gain(make):
    assert first(make, 0.684) == (
        "DLA gains 0.036 nDCG@10 over uncorrected clicks (0.720 against 0.684), "
        "significantly (p < 0.001)."
    )


def test_a_significant_loss_is_called_a_loss(make):
    assert first(make, 0.745) == (
        "DLA loses 0.025 nDCG@10 against uncorrected clicks (0.720 against 0.745), "
        "significantly (p < 0.001): here the correction did harm."
    )


@pytest.mark.parametrize(("naive", "side"), [(0.718, "above"), (0.722, "below")])
def test_an_insignificant_difference_is_not_called_a_gain(make, naive, side):
    assert first(make, naive) == (
        f"DLA is 0.002 nDCG@10 {side} uncorrected clicks (0.720 against {naive:.3f}), "
        "but not significantly (p = 0.310): no gain is shown."
    )


def test_equal_means_are_called_equal(make):
    assert first(make, 0.72) == (
        "DLA and uncorrected clicks reach the same nDCG@10 (0.720 against 0.720)."
    )


def test_without_a_test_nothing_is_called_significant(results):
    results.significance = {}
    text = " ".join(findings(results))
    assert "this was not tested" in text
    assert "significant" not in text


def test_a_test_against_another_reference_is_not_used(results):
    results.significance["reference"] = "naive"
    assert "this was not tested" in findings(results)[0]


def test_the_other_comparisons_follow(results):
    text = " ".join(findings(results))
    assert "It is 0.002 below propensities measured by shuffling results (not significant" in text
    assert "is at 0.669, so learning from its clicks added 0.053 (p < 0.001)." in text
    assert "reaches 0.738, 0.016 above DLA (p < 0.001): what is left to gain." in text
    assert "mean squared error of 0.41 against the true ones" in text
    assert text.endswith("All numbers are means over 5 seeds.")


def test_losing_to_everything_reads_right(make):
    means = {"dla": 0.6, "naive": 0.65, "randlist": 0.66, "initial": 0.63, "oracle": 0.59}
    text = " ".join(findings(make(ndcg=means)))
    assert "loses 0.050" in text
    assert "0.060 below propensities" in text
    assert "lost 0.030 (p < 0.001): the old ranker is the better choice" in text
    assert "reaches 0.590, 0.010 below DLA" in text
    assert "DLA gains" not in text
    assert "left to gain" not in text


def test_nothing_is_concluded_from_differences_that_are_not_significant(make):
    means = {"dla": 0.700, "naive": 0.701, "initial": 0.703, "oracle": 0.702}
    text = " ".join(findings(make(ndcg=means, significant=False)))
    assert "lost 0.003 (not significant, p = 0.310)." in text
    assert "0.002 above DLA (not significant, p = 0.310)." in text


def test_one_seed_is_admitted(make):
    assert findings(make(seeds=1))[-1].startswith("This is one seed")


def test_methods_that_did_not_run_are_not_mentioned(make):
    text = " ".join(findings(make(ndcg={"dla": 0.72, "oracle": 0.73})))
    assert text.startswith("DLA reaches 0.720 nDCG@10. Trained on the judgements")
    assert "uncorrected" not in text
    assert "shuffling" not in text


def test_without_dla_the_best_is_named(make):
    found = findings(make(ndcg={"naive": 0.68, "oracle": 0.73}))
    assert found[0] == (
        "Oracle DNN has the highest nDCG@10, 0.730, before DNN, NoCorrect with 0.680."
    )


def test_a_sweep_is_told_by_its_ranges(sweep):
    assert ranges(sweep, "eta")[0].startswith("DNN with DLA: nDCG@10 from 0.7")


def test_nothing_to_say_about_nothing():
    assert findings(Results(experiment="demo", settings={}, runs=[])) == []
