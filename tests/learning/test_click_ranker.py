"""The scikit-learn style estimator: arrays in any order in, scores out."""

import numpy as np
import pytest
from sklearn.base import clone

import dualrank
from dualrank.errors import DataError, SettingsError, StoppedError
from dualrank.learning import click_ranker
from dualrank.learning.click_ranker import ClickRanker
from dualrank.learning.plan import Plan

SMALL_TREES = dualrank.Trees(leaves=3, least_evidence=0.1, shrinkage=1.0)
QUICK = {"hidden": (6,), "steps": 60, "batch_size": 32}


@pytest.fixture(scope="module")
def rows():
    """Lists of two to six documents; what is clicked depends on the first feature and position."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(2, 7, 80)
    qid = np.repeat(np.arange(80), lengths)
    position = np.concatenate([np.arange(1, n + 1) for n in lengths])
    X = rng.normal(size=(len(qid), 4))
    clicks = rng.random(len(qid)) < 1 / (1 + np.exp(-2 * X[:, 0])) / position**0.5
    return {"X": X, "clicks": clicks.astype(int), "qid": qid, "position": position}


def shuffled(rows, seed=1):
    order = np.random.default_rng(seed).permutation(len(rows["qid"]))
    return {name: values[order] for name, values in rows.items()}


def test_the_public_name_is_this_class():
    assert dualrank.ClickRanker is ClickRanker


def test_fit_learns_what_is_clicked(rows):
    ranker = ClickRanker(**{**QUICK, "steps": 400}).fit(**rows)
    scores = ranker.predict(rows["X"])
    assert scores.shape == (len(rows["X"]),)
    assert np.corrcoef(scores, rows["X"][:, 0])[0, 1] > 0.8
    assert ranker.n_features_in_ == 4
    assert ranker.examination_.shape == (6,)
    assert ranker.examination_[0] == 1


def test_fit_returns_the_estimator(rows):
    ranker = ClickRanker(**QUICK)
    assert ranker.fit(**rows) is ranker


@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_rows_does_not_matter(rows, seed):
    ordered = ClickRanker(**QUICK).fit(**rows)
    mixed = ClickRanker(**QUICK).fit(**shuffled(rows, seed))
    assert np.array_equal(ordered.predict(rows["X"]), mixed.predict(rows["X"]))


def test_lists_and_booleans_are_taken_too(rows):
    as_lists = {name: values.tolist() for name, values in rows.items()}
    as_lists["clicks"] = [bool(click) for click in as_lists["clicks"]]
    expected = ClickRanker(**QUICK).fit(**rows).predict(rows["X"])
    found = ClickRanker(**QUICK).fit(**as_lists).predict(as_lists["X"])
    assert np.array_equal(found, expected)


def test_query_ids_may_be_text(rows):
    named = {**rows, "qid": np.array([f"query {q:03d}" for q in rows["qid"]])}
    expected = ClickRanker(**QUICK).fit(**rows).predict(rows["X"])
    assert np.array_equal(ClickRanker(**QUICK).fit(**named).predict(rows["X"]), expected)


def test_clone_gives_an_unfitted_estimator_of_the_same_parameters(rows):
    ranker = ClickRanker(method="ipw", examination=[1.0] * 6, **QUICK).fit(**rows)
    copy = clone(ranker)
    assert not hasattr(copy, "model_")
    assert copy.get_params() == ranker.get_params()
    assert np.array_equal(copy.fit(**rows).predict(rows["X"]), ranker.predict(rows["X"]))


def test_parameters_can_be_set_and_are_checked_in_fit(rows):
    ranker = ClickRanker(**QUICK).set_params(method="em", seed=3)
    assert ranker.get_params()["seed"] == 3
    with pytest.raises(SettingsError, match="unknown method 'em'"):
        ranker.fit(**rows)
    with pytest.raises(SettingsError, match="steps must be at least 1"):
        ClickRanker(steps=0).fit(**rows)


def test_fitting_changes_no_parameter(rows):
    ranker = ClickRanker(**QUICK)
    before = ranker.get_params()
    ranker.fit(**rows)
    assert ranker.get_params() == before


@pytest.mark.parametrize("method", ["dla", "naive", "ipw"])
def test_every_method_works_and_shows_the_examination_it_has(rows, method):
    given = [1.0, 0.7, 0.6, 0.5, 0.4, 0.3] if method == "ipw" else None
    ranker = ClickRanker(method, examination=given, **QUICK).fit(**rows)
    assert np.isfinite(ranker.predict(rows["X"])).all()
    if method == "naive":
        assert ranker.examination_ is None
    if method == "ipw":
        assert ranker.examination_.tolist() == given


def test_trees_learn_from_rows_some_of_whose_features_are_missing(rows):
    X = rows["X"].copy()
    X[::7, 1] = np.nan
    ranker = ClickRanker(ranker=SMALL_TREES, steps=10, learning_rate=0.3).fit(**{**rows, "X": X})
    assert ranker.model_.kind == "trees"
    scores = ranker.predict(X)
    assert np.corrcoef(scores, X[:, 0])[0, 1] > 0.5


def test_clone_keeps_the_ranker(rows):
    ranker = ClickRanker("naive", ranker=dualrank.Trees(leaves=7))
    copy = clone(ranker)
    assert copy.get_params() == ranker.get_params()
    assert copy.ranker == dualrank.Trees(leaves=7)
    assert copy.set_params(ranker=SMALL_TREES, steps=2).ranker is SMALL_TREES
    assert ranker.ranker.leaves == 7
    assert copy.fit(**rows).model_.training["ranker_settings"]["leaves"] == 3


@pytest.mark.parametrize(
    ("given", "steps", "rate"),
    [
        ({}, 3_000, 0.2),
        ({"method": "likelihood"}, 3_000, 0.6),
        ({"ranker": SMALL_TREES}, 300, 0.05),
        ({"ranker": SMALL_TREES, "steps": 7, "learning_rate": 0.1}, 7, 0.1),
    ],
)
def test_what_is_not_given_is_what_suits_ranker_and_method(rows, monkeypatch, given, steps, rate):
    asked = {}

    def stop(log, dataset, **options):
        asked.update(options)
        raise StoppedError("that is all")

    monkeypatch.setattr(click_ranker, "fit", stop)
    with pytest.raises(StoppedError):
        ClickRanker(**given).fit(**rows)
    suited = Plan().with_options(**asked).suited
    assert (suited.steps, suited.learning_rate) == (steps, rate)


def test_the_seed_decides(rows):
    def scores(seed):
        return ClickRanker(seed=seed, **QUICK).fit(**rows).predict(rows["X"])

    assert np.array_equal(scores(0), scores(0))
    assert not np.array_equal(scores(0), scores(1))


def test_predict_before_fit_is_refused(rows):
    with pytest.raises(DataError, match="not fitted yet; call fit first"):
        ClickRanker().predict(rows["X"])


def test_predict_with_another_number_of_features_is_refused(rows):
    ranker = ClickRanker(**QUICK).fit(**rows)
    with pytest.raises(DataError, match="X has 3 features, but ClickRanker is expecting 4"):
        ranker.predict(rows["X"][:, :3])


@pytest.mark.parametrize("name", ["clicks", "qid", "position"])
def test_an_array_of_another_length_is_named(rows, name):
    count = len(rows["X"])
    with pytest.raises(DataError) as caught:
        ClickRanker(**QUICK).fit(**{**rows, name: rows[name][:-1]})
    assert str(caught.value) == f"{name} has shape ({count - 1},), but X has {count} rows"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"position": [1.0, 2.5]}, "position holds numbers that are not whole"),
        ({"clicks": [0, 2]}, "clicks holds values other than 0 and 1"),
        ({"clicks": [0, np.nan]}, "clicks holds values other than 0 and 1"),
        ({"position": [1, 3]}, "row 1: query 'a' has position 3 where 2 was expected"),
        ({"position": [0, 1]}, "row 0: query 'a' has position 0 where 1 was expected"),
        ({"position": [1, 1]}, "row 1: query 'a' has position 1 where 2 was expected"),
        ({"X": [1.0, 2.0]}, "features must be a matrix"),
        (
            {"X": [[1.0], [np.nan]]},
            "feature 1 is missing in 1 of 2 documents; a ranker of kind dnn",
        ),
        ({"X": [[1.0], [-np.inf]]}, "row 1 of features holds an infinity"),
    ],
)
def test_wrong_rows_are_refused_with_a_sentence(change, sentence):
    given = {"X": [[1.0], [2.0]], "clicks": [1, 0], "qid": ["a", "a"], "position": [1, 2]}
    with pytest.raises(DataError) as caught:
        ClickRanker(**QUICK).fit(**{**given, **change})
    assert sentence in str(caught.value)
    assert "np.str_" not in str(caught.value)


def test_a_bad_feature_is_named_by_the_row_that_was_given(rows):
    """Rows are sorted inside; the person who gave them knows only their own order."""
    given = shuffled(rows)
    given["X"][17, 2] = np.inf
    with pytest.raises(DataError, match="row 17 of features holds an infinity"):
        ClickRanker(**QUICK).fit(**given)


def test_no_rows_at_all_are_refused():
    with pytest.raises(DataError, match="no documents"):
        ClickRanker(**QUICK).fit(
            np.empty((0, 3)), clicks=[], qid=[], position=np.empty(0, dtype=int)
        )
