from __future__ import annotations

import pytest

from dualrank.report.results import Results
from dualrank.reproduce.findings import findings, ranges


def first(make, naive: float, **options) -> str:
    return findings(make(ndcg={"dla": 0.72, "naive": naive}, **options))[0]


def test_a_significant_gain_is_called_significant(make):
    assert first(make, 0.684) == (
        "DLA is 0.036 nDCG@10 above uncorrected clicks (0.720 against 0.684; "
        "significant, p < 0.001)."
    )


def test_a_significant_loss_is_called_harm(make):
    assert first(make, 0.745) == (
        "DLA is 0.025 nDCG@10 below uncorrected clicks (0.720 against 0.745; "
        "significant, p < 0.001): the correction did harm."
    )


@pytest.mark.parametrize(("naive", "side"), [(0.718, "above"), (0.722, "below")])
def test_an_insignificant_difference_is_called_so_and_nothing_follows(make, naive, side):
    assert first(make, naive) == (
        f"DLA is 0.002 nDCG@10 {side} uncorrected clicks (0.720 against {naive:.3f}; "
        "not significant, p = 0.310)."
    )


def test_equal_means_are_called_equal(make):
    assert first(make, 0.72) == (
        "DLA reaches the same nDCG@10 as uncorrected clicks (0.720 against 0.720)."
    )


def test_without_a_test_nothing_is_called_significant(results):
    results.significance = {}
    text = " ".join(findings(results))
    assert "not tested" in text
    assert "significant" not in text


def test_a_test_against_another_reference_is_not_used(results):
    results.significance["reference"] = "naive"
    assert "not tested" in findings(results)[0]


def test_the_other_comparisons_follow(results):
    text = " ".join(findings(results))
    assert "0.002 nDCG@10 below propensities measured by shuffling results, which" in text
    assert (
        "0.053 nDCG@10 above the ranker whose lists were clicked on (0.722 against 0.669;" in text
    )
    assert "(0.722 against 0.738; significant, p < 0.001): what is left to gain." in text
    assert "mean squared error of 0.41 against the true ones" in text
    assert text.endswith("All numbers are means over 5 seeds.")


def test_losing_to_everything_reads_right(make):
    means = {"dla": 0.6, "naive": 0.65, "randlist": 0.66, "initial": 0.63, "oracle": 0.59}
    text = " ".join(findings(make(ndcg=means)))
    assert "0.050 nDCG@10 below uncorrected clicks" in text
    assert "0.060 nDCG@10 below propensities" in text
    assert "(0.600 against 0.630; significant, p < 0.001): it is the better choice." in text
    assert "0.010 nDCG@10 above the same network trained on the judgements" in text
    assert "left to gain" not in text


def test_nothing_is_concluded_from_differences_that_are_not_significant(make):
    means = {"dla": 0.700, "naive": 0.701, "initial": 0.703, "oracle": 0.702}
    sentences = findings(make(ndcg=means, significant=False))[:3]
    assert all(sentence.endswith("; not significant, p = 0.310).") for sentence in sentences)


def test_one_seed_is_admitted(make):
    assert findings(make(seeds=1))[-1].startswith("This is one seed")


def test_methods_that_did_not_run_are_not_mentioned(make):
    text = " ".join(findings(make(ndcg={"dla": 0.72, "oracle": 0.73})))
    assert text.startswith("DLA is 0.010 nDCG@10 below the same network trained on the judgements")
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
