"""Every public function takes tables of pandas, polars and Arrow, with the results of files."""

import logging

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dualrank as dr
from dualrank.data.click_log import ClickLog
from dualrank.errors import DataError, SettingsError

KINDS = {
    "pandas": lambda columns: pd.DataFrame(columns),
    "polars": lambda columns: pl.DataFrame(columns),
    "arrow": lambda columns: pa.table(columns),
    "pandas with gaps in its index": lambda columns: pd.DataFrame(columns).set_axis(
        [7 * n for n in range(len(next(iter(columns.values()))))]
    ),
    "pandas keyed by its index": lambda columns: _keyed(pd.DataFrame(columns)),
}
QUICK = {"ranker": dr.DNN((8,)), "steps": 30, "batch_size": 32}
QUERIES, SHOWN = 40, 4


def _keyed(frame):
    keys = [key for key in ("query_id", "doc_id") if key in frame.columns]
    return frame.set_index(keys) if keys else frame


@pytest.fixture(params=KINDS)
def make(request):
    return KINDS[request.param]


@pytest.fixture(scope="module")
def features():
    """The rows of a query do not stand together."""
    rng = np.random.default_rng(0)
    rows = QUERIES * SHOWN
    return {
        "query_id": [f"q{row % QUERIES}" for row in range(rows)],
        "doc_id": [f"d{row // QUERIES}" for row in range(rows)],
        "bm25": rng.normal(size=rows),
        "price": rng.integers(0, 9, rows),
        "grade": rng.integers(0, 3, rows),
    }


@pytest.fixture(scope="module")
def log(features):
    rng = np.random.default_rng(1)
    rows = {name: [] for name in ("session_id", "query_id", "doc_id", "position", "clicked")}
    for session in range(600):
        for place, document in enumerate(rng.permutation(SHOWN)):
            row = document * QUERIES + session % QUERIES
            liked = 1 / (1 + np.exp(-2 * features["bm25"][row]))
            rows["session_id"].append(session)
            rows["query_id"].append(features["query_id"][row])
            rows["doc_id"].append(features["doc_id"][row])
            rows["position"].append(place + 1)
            rows["clicked"].append(int(rng.random() < liked / (1 + place)))
    return rows


@pytest.fixture(scope="module")
def dataset(features):
    return dr.read_features(pa.table(features))


@pytest.fixture(scope="module")
def click_log(log, dataset):
    return dr.read_log(pa.table(log), dataset)


@pytest.fixture(scope="module")
def model(click_log, dataset):
    return dr.fit(click_log, dataset, method="naive", **QUICK)


def test_features_are_those_of_the_file(make, features, tmp_path, caplog):
    pq.write_table(pa.table(features), tmp_path / "features.parquet")
    with caplog.at_level(logging.WARNING):
        found = dr.read_features(make(features))
    expected = dr.read_features(tmp_path / "features.parquet")
    assert not caplog.records
    assert found.pairs() == expected.pairs()
    assert found.feature_names == ("bm25", "price")
    assert np.array_equal(found.features, expected.features)
    assert np.array_equal(found.require_grades(), expected.require_grades())


def test_logs_are_read_and_point_to_features_in_a_table(make, log, features, click_log):
    found = dr.read_log(make(log), make(features))
    assert np.array_equal(found.lists.documents, click_log.lists.documents)
    assert np.array_equal(found.counts, click_log.counts)
    assert dr.ClickLog.from_frame(make(log)).sessions == 600


def test_a_model_is_fitted_and_scores_every_row_in_its_place(make, log, features, model, dataset):
    found = dr.fit(make(log), make(features), method="naive", **QUICK)
    rows = found.predict(make(features))
    scores = dict(zip(dataset.pairs(), model.predict(dataset).tolist(), strict=True))
    pairs = zip(features["query_id"], features["doc_id"], strict=True)
    np.testing.assert_allclose(rows, [scores[pair] for pair in pairs], rtol=1e-4, atol=1e-5)


def test_features_are_found_by_name_in_a_table_of_another_order(make, features, model):
    more = {**dict(reversed(features.items())), "title": ["a"] * len(features["grade"])}
    expected = model.predict(pa.table(features))
    assert np.array_equal(model.predict(make(more)), expected)
    only = {name: features[name] for name in ("price", "bm25")}
    assert np.array_equal(model.predict(make(only)), expected)
    with pytest.raises(DataError, match="feature 'bm25' is missing"):
        model.predict(make({"price": features["price"]}))


def test_a_data_set_with_features_in_another_order_is_understood(features, model, dataset):
    turned = dr.read_features(pa.table(dict(reversed(features.items()))))
    assert turned.feature_names == ("price", "bm25")
    assert np.array_equal(model.predict(turned), model.predict(dataset))


def test_judged_queries_with_features_in_another_order_keep_the_same_ranker(
    click_log, dataset, features
):
    turned = dr.read_features(pa.table(dict(reversed(features.items()))))
    asked = {"method": "naive", **QUICK, "validate_every": 10}
    one, other, frame = (
        dr.fit(click_log, dataset, validation=judged, **asked)
        for judged in (dataset, turned, pd.DataFrame(features)[list(reversed(features))])
    )
    assert one.training["history"] == other.training["history"] == frame.training["history"]


def test_scores_and_judgments_are_evaluated(make, features, model, dataset):
    expected = dr.evaluate(model.predict(dataset), dataset, ["ndcg@10", "map"])
    judged = {name: features[name] for name in ("query_id", "doc_id", "grade")}
    scores = model.predict(pa.table(features))
    assert dr.evaluate(scores, make(features), ["ndcg@10", "map"]) == expected
    assert dr.evaluate(scores, make(judged), ["ndcg@10", "map"]) == expected
    mixed = np.random.default_rng(0).permutation(len(scores))
    run = {name: np.asarray(features[name])[mixed] for name in ("query_id", "doc_id")}
    run["score"] = scores[mixed]
    assert dr.evaluate(make(run), dataset, ["ndcg@10", "map"]) == expected
    assert dr.evaluate(make(run), make(judged), ["ndcg@10", "map"]) == expected
    per_query = dr.evaluate_per_query(make({"score": scores}), make(judged), "map")
    assert per_query["map"].mean() == pytest.approx(expected["map"])
    with pytest.raises(DataError, match="the judgments: column 'grade' is missing"):
        dr.evaluate(scores, make({"query_id": features["query_id"]}))


def test_propensities_judgements_and_click_models_come_from_tables(make, log, click_log):
    found = dr.estimate_propensities(make(log), methods=["harvest-all-pairs"], resamples=20)
    expected = dr.estimate_propensities(click_log, methods=["harvest-all-pairs"], resamples=20)
    for method, curve in expected.found.items():
        np.testing.assert_allclose(found.found[method].examination, curve.examination)
    assert len(dr.judge(make(log))) == len(dr.judge(click_log))
    ubm = dr.click_model("ubm").fit(make(log))
    assert ubm.log_likelihood(make(log)) == pytest.approx(ubm.log_likelihood(click_log))


def test_estimates_by_training_take_settings_directly(log, features):
    given = {"methods": ["dla"], "refits": 0, "ranker": dr.DNN((4,))}
    found = dr.estimate_propensities(pa.table(log), pa.table(features), steps=5, **given)
    assert list(found.found) == ["dla"]
    with pytest.raises(SettingsError, match=r"no setting 'step' \(did you mean steps\?\)"):
        dr.estimate_propensities(pa.table(log), pa.table(features), step=5, **given)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_a_log_is_diagnosed_and_trained_on(kind, log, features, tmp_path):
    make = KINDS[kind]
    assert dr.diagnose(make(log))["leakage"].status == "not measured"
    training = dr.train(
        make(log),
        make(features),
        tmp_path / "model",
        method="naive",
        validation=make(features),
        compare=False,
        diagnosis=False,
        **QUICK,
    )
    assert training.model.feature_names == ("bm25", "price")
    labels = tmp_path / "labels.txt"
    given = {"documents": make(features), "log": make(log)}
    dr.export(dr.fit(make(log), make(features), **QUICK), "letor", labels, **given)
    assert labels.stat().st_size > 0


def test_training_names_a_feature_that_numbers_the_rows(log, features, tmp_path, caplog):
    shown = {**features, "nr": np.arange(len(features["grade"]))}
    asked = {"method": "naive", "compare": False, "diagnosis": False, **QUICK}
    with caplog.at_level(logging.WARNING):
        dr.train(pa.table(log), pa.table(features), tmp_path / "a", **asked)
        assert not caplog.records
        dr.train(pa.table(log), pa.table(shown), tmp_path / "b", **asked)
    assert "the features: feature 'nr' numbers the rows" in caplog.text


def test_arrays_of_a_data_set_may_be_columns(make, features, dataset):
    order = np.argsort(features["query_id"], kind="stable")
    ordered = {name: np.asarray(values)[order] for name, values in features.items()}
    of_features = make({name: ordered[name] for name in ("bm25", "price")})
    found = dr.Dataset.from_arrays(of_features, ordered["query_id"], ordered["grade"])
    assert found.feature_names == ("bm25", "price")
    assert found.features.sum() == pytest.approx(dataset.features.sum(), rel=1e-5)


def test_a_log_that_was_read_by_itself_is_pointed_to_the_features(log, features, dataset, model):
    """Its own catalogue numbers the documents in another order than the features do."""
    alone = ClickLog.from_frame(pa.table(log))
    assert alone.catalogue.pairs() != dataset.pairs()
    for given in (dataset, pd.DataFrame(features)):
        found = dr.fit(alone, given, method="naive", **QUICK)
        assert found.training["data"] == model.training["data"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (lambda: pl.LazyFrame({"a": [1]}), "a LazyFrame that is not collected yet is no table"),
        (lambda: 3, "the features: a int is no table; expected a file or a data frame"),
        (lambda: [[1.0]], "the features: a list is no table"),
        (lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]), "Duplicate column names"),
        (lambda: pd.DataFrame({"a": [1, "b"]}), "no data frame that Arrow can read"),
        (
            lambda: pa.table([[1], [2], ["q"], ["d"]], names=["a", "a", "query_id", "doc_id"]),
            "the features: 2 columns are called 'a'; expected one of each name",
        ),
    ],
)
def test_what_is_no_table_is_refused_with_a_sentence(given, sentence):
    with pytest.raises(DataError) as caught:
        dr.read_features(given())
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_scored_is_refused_with_a_sentence(model):
    for given in ("features.parquet", [["a"]], object()):
        with pytest.raises(DataError, match="features are a Dataset, a data frame or a matrix"):
            model.predict(given)


def test_a_pair_has_one_score_and_one_judgment(features, dataset):
    keys = {name: features[name] for name in ("query_id", "doc_id")}
    run = pd.DataFrame({**keys, "score": np.arange(len(features["query_id"]), dtype=float)})
    twice = pd.concat([run, run.assign(score=-run["score"])])
    with pytest.raises(DataError, match=r"the scores, row .* stands there before"):
        dr.evaluate(twice, dataset)
    judged = pd.DataFrame({**keys, "grade": features["grade"]})
    with pytest.raises(DataError, match=r"the judgments: .* stands there twice"):
        dr.evaluate(run, pd.concat([judged, judged]))
