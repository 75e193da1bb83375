"""ClickRanker among scikit-learn's own tools: names of features, searches, pipelines, checks."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

import dualrank
from dualrank.errors import DataError

QUICK = {"hidden": (6,), "steps": 120, "batch_size": 32, "seed": 0}
NAMES = ["bm25", "age", "price", "length"]
KINDS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
}


@pytest.fixture(scope="module")
def rows():
    """What is clicked depends on the first feature and on position."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(2, 7, 120)
    qid = np.repeat(np.arange(120), lengths)
    position = np.concatenate([np.arange(1, n + 1) for n in lengths])
    X = rng.normal(size=(len(qid), 4)).astype(np.float32)
    clicks = rng.random(len(qid)) < 1 / (1 + np.exp(-2 * X[:, 0])) / position**0.5
    return {"X": X, "clicks": clicks.astype(int), "qid": qid, "position": position}


def columns(rows):
    return {name: rows["X"][:, number] for number, name in enumerate(NAMES)}


@pytest.fixture(scope="module")
def fitted(rows):
    return dualrank.ClickRanker(**QUICK).fit(**{**rows, "X": pd.DataFrame(columns(rows))})


@pytest.mark.parametrize("kind", KINDS)
def test_frames_of_every_kind_are_fitted_predicted_and_scored(rows, kind):
    make = KINDS[kind]
    frame = make(columns(rows))
    series = make({name: rows[name] for name in ("clicks", "qid", "position")})
    given = {name: series[name] for name in ("clicks", "qid", "position")}
    ranker = dualrank.ClickRanker(**QUICK).fit(frame, **given)
    plain = dualrank.ClickRanker(**QUICK).fit(**rows)
    assert ranker.feature_names_in_.tolist() == NAMES
    assert ranker.model_.feature_names == tuple(NAMES)
    assert np.array_equal(ranker.predict(frame), plain.predict(rows["X"]))
    assert ranker.score(frame, **given) == plain.score(**rows)
    assert not hasattr(plain, "feature_names_in_")
    with pytest.raises(DataError, match="in another order; expected bm25, age, price, length"):
        ranker.predict(make(dict(reversed(columns(rows).items()))))


def test_other_features_than_those_learned_from_are_refused(rows, fitted):
    frame = pd.DataFrame(columns(rows))
    with pytest.raises(ValueError, match="The feature names should match") as caught:
        fitted.predict(frame.rename(columns={"age": "years"}))
    assert "unseen at fit time: years; seen at fit time, yet now missing: age" in str(caught.value)
    assert isinstance(caught.value, DataError)
    with pytest.raises(DataError, match="yet now missing: length"):
        fitted.score(frame[NAMES[:3]], rows["clicks"], qid=rows["qid"], position=rows["position"])


def test_names_on_one_side_only_are_a_warning(rows, fitted):
    with pytest.warns(UserWarning, match="does not have valid feature names, but ClickRanker was"):
        fitted.predict(rows["X"])
    plain = dualrank.ClickRanker(**QUICK).fit(**rows)
    with pytest.warns(UserWarning, match="but ClickRanker was fitted without feature names"):
        plain.predict(pd.DataFrame(columns(rows)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain.predict(rows["X"])
        fitted.predict(pd.DataFrame(columns(rows)))


def test_an_index_of_pandas_is_no_feature(rows, fitted):
    frame = pd.DataFrame(columns(rows))
    for other in (frame[::-1], frame.set_index(pd.Index(rows["qid"], name="query"))):
        assert len(fitted.predict(other)) == len(frame)
    np.testing.assert_allclose(fitted.predict(frame[::-1])[::-1], fitted.predict(frame), rtol=1e-3)


def test_fitting_again_without_names_forgets_them(rows):
    ranker = dualrank.ClickRanker(**QUICK).fit(**{**rows, "X": pd.DataFrame(columns(rows))})
    ranker.fit(**rows)
    assert not hasattr(ranker, "feature_names_in_")


def test_unfitted_is_scikit_learns_own_error(rows):
    for ask in (
        lambda ranker: ranker.predict(rows["X"]),
        lambda ranker: ranker.score(rows["X"], rows["clicks"]),
    ):
        with pytest.raises(NotFittedError, match="not fitted yet; call fit first"):
            ask(dualrank.ClickRanker())


def test_the_score_tells_what_was_learned_from_what_was_not(rows, fitted):
    plain = dualrank.ClickRanker(**QUICK).fit(**rows)
    noise = np.random.default_rng(1).normal(size=rows["X"].shape)
    nothing = plain.score(noise, rows["clicks"], qid=rows["qid"], position=rows["position"])
    assert plain.score(**rows) > 0.1
    assert abs(nothing) < 0.05


def test_a_score_needs_to_know_the_lists(rows):
    plain = dualrank.ClickRanker(**QUICK).fit(**rows)
    with pytest.raises(DataError, match=r"score needs qid and position.*enable_metadata_routing"):
        plain.score(rows["X"], rows["clicks"])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_a_search_over_folds_of_queries_by_columns(rows, make):
    frame = make({**columns(rows), "qid": rows["qid"], "place": rows["position"]})
    search = GridSearchCV(
        dualrank.ClickRanker(**QUICK),
        {"learning_rate": [1e-6, 0.2]},
        cv=GroupKFold(2),
        error_score="raise",
    )
    search.fit(frame, rows["clicks"], groups=rows["qid"], qid="qid", position="place")
    assert search.best_params_ == {"learning_rate": 0.2}
    assert search.best_estimator_.feature_names_in_.tolist() == NAMES
    assert search.score(frame, rows["clicks"]) > 0.1
    without = make(columns(rows))
    assert np.array_equal(search.predict(frame), search.predict(without))


def test_a_search_over_folds_of_queries_by_routing(rows):
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            dualrank.ClickRanker(**QUICK),
            {"learning_rate": [1e-6, 0.2]},
            cv=GroupKFold(2),
            error_score="raise",
        )
        known = {"qid": rows["qid"], "position": rows["position"]}
        search.fit(rows["X"], rows["clicks"], groups=rows["qid"], **known)
        assert search.best_params_ == {"learning_rate": 0.2}


def test_a_pipeline(rows):
    line = make_pipeline(StandardScaler(), dualrank.ClickRanker(scaling="none", **QUICK))
    known = {f"clickranker__{name}": rows[name] for name in ("qid", "position")}
    line.fit(rows["X"], rows["clicks"], **known)
    assert np.corrcoef(line.predict(rows["X"]), rows["X"][:, 0])[0, 1] > 0.5
    assert clone(line).get_params()["clickranker__steps"] == QUICK["steps"]


def test_a_column_that_is_not_there_is_named(rows):
    with pytest.raises(DataError, match="qid is 'query', which is no column of X"):
        dualrank.ClickRanker().fit(
            pd.DataFrame(columns(rows)), rows["clicks"], qid="query", position=rows["position"]
        )


class OneList(dualrank.ClickRanker):
    """As scikit-learn's checks call it: with rows and targets alone."""

    def fit(self, X, y):
        size = len(y)
        given = {"qid": np.arange(size) // 4, "position": np.arange(size) % 4 + 1}
        return super().fit(X, (np.asarray(y) > np.mean(y)).astype(int), **given)

    def partial_fit(self, X, y):
        size = len(y)
        given = {"qid": np.arange(size) // 4, "position": np.arange(size) % 4 + 1}
        return super().partial_fit(X, (np.asarray(y) > np.mean(y)).astype(int), **given)

    def score(self, X, y):
        size = len(y)
        given = {"qid": np.arange(size) // 4, "position": np.arange(size) % 4 + 1}
        return super().score(X, (np.asarray(y) > np.mean(y)).astype(int), **given)


@pytest.mark.parametrize(
    "check",
    [
        "check_estimator_cloneable",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_get_params_invariance",
        "check_set_params",
        "check_estimator_repr",
        "check_dict_unchanged",
        "check_estimators_overwrite_params",
        "check_n_features_in",
        "check_fit_idempotent",
        "check_estimators_unfitted",
        "check_n_features_in_after_fitting",
        "check_fit2d_predict1d",
        "check_estimators_pickle",
    ],
)
def test_scikit_learns_own_checks(check):
    estimator = OneList(hidden=(3,), steps=3, batch_size=4)
    assert isinstance(estimator, BaseEstimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(estimator_checks, check)("ClickRanker", estimator)
