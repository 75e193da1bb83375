import pytest

from dualrank.errors import SettingsError
from dualrank.evaluation.metric import PAPER_METRICS, Metric, parse_metrics

KNOWN = (
    "known are map, ndcg, err, dcg, mrr and precision, with a cutoff k of 1 or more as in 'ndcg@10'"
)


@pytest.mark.parametrize(
    ("key", "metric"),
    [
        ("map", Metric("map")),
        ("map@5", Metric("map", 5)),
        ("ndcg@10", Metric("ndcg", 10)),
        ("err@1", Metric("err", 1)),
        ("dcg", Metric("dcg")),
        ("mrr@100", Metric("mrr", 100)),
        ("precision@3", Metric("precision", 3)),
    ],
)
def test_a_metric_is_parsed_from_its_key_and_prints_as_it(key, metric):
    assert Metric.parse(key) == metric
    assert str(metric) == key
    assert len({metric, Metric.parse(key)}) == 1


@pytest.mark.parametrize(
    "text", ["", "nDCG@10", "recall@10", "ndcg@", "ndcg@-1", "ndcg@1.5", "ndcg@05", "ndcg 10", "@3"]
)
def test_an_unknown_metric_is_answered_with_the_known_ones(text):
    with pytest.raises(SettingsError) as error:
        Metric.parse(text)
    assert str(error.value) == f"unknown metric {text!r}; {KNOWN}"


@pytest.mark.parametrize("cutoff", [0, 1_000_001])
def test_a_cutoff_out_of_range_is_named(cutoff):
    with pytest.raises(SettingsError) as error:
        Metric.parse(f"ndcg@{cutoff}")
    assert str(error.value) == (
        f"metric 'ndcg@{cutoff}' has cutoff {cutoff}; cutoffs are whole numbers from 1 to 1000000"
    )


def test_precision_needs_a_cutoff():
    with pytest.raises(SettingsError) as error:
        Metric.parse("precision")
    assert str(error.value) == "precision needs a cutoff, as in 'precision@10'"


def test_metrics_come_as_keys_or_values_one_or_several():
    assert parse_metrics("map") == parse_metrics(Metric("map")) == (Metric("map"),)
    assert parse_metrics(["map", Metric("err", 5), "map"]) == (Metric("map"), Metric("err", 5))


def test_no_metric_at_all_is_an_error():
    with pytest.raises(SettingsError) as error:
        parse_metrics([])
    assert str(error.value) == f"no metric is named; {KNOWN}"


def test_the_papers_metrics_are_the_columns_of_its_table():
    assert " ".join(map(str, PAPER_METRICS)) == (
        "map ndcg@1 err@1 ndcg@3 err@3 ndcg@5 err@5 ndcg@10 err@10"
    )
