"""LETOR text for other learners: that they take it, and learn from it."""

import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.dataset import Dataset
from dualrank.data.interventions import shuffle_lists
from dualrank.data.lists import top_lists
from dualrank.engines.debiased_labels import to_letor
from dualrank.engines.target import Export
from dualrank.errors import SettingsError
from dualrank.propensity.propensity import Propensity

USER = PositionBasedUser(epsilon=0.05)


class Trained:
    """As much of a model as this target looks at."""

    propensity = Propensity.of(USER.examination(6))


@pytest.fixture(scope="module")
def graded():
    """Sixty queries whose grades a feature tells, and a log of them."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(60 * 8, 4)).astype(np.float32)
    grades = np.clip(np.round(features[:, 1] + 1.5), 0, 4)
    data = Dataset.from_arrays(features, np.repeat(np.arange(1, 61), 8), grades, max_grade=4)
    lists = shuffle_lists(top_lists(data, rng.normal(size=len(grades)), 6), 3, rng)
    return data, sample_log(data, lists, USER, 40_000, rng)


@pytest.fixture
def write(graded, tmp_path):
    """Write LETOR text and read it as scikit-learn does, with the weights beside it."""
    load = pytest.importorskip("sklearn.datasets").load_svmlight_file

    def run(**options):
        data, log = graded
        out = tmp_path / "labels.txt"
        to_letor(Export(Trained(), out, documents=data, log=log, **options))
        x, y, qid = load(str(out), query_id=True)
        return x.toarray(), y, qid, np.loadtxt(tmp_path / "labels.txt.weights")

    return run


def correlation(scores, x):
    return np.corrcoef(scores, x[:, 1])[0, 1]


def test_the_default_file_is_taken_by_lambdarank_with_a_weight_per_row(write):
    lightgbm = pytest.importorskip("lightgbm")
    x, y, qid, weights = write()
    assert set(y) == {0, 1, 2, 3, 4}
    assert len(weights) == len(y)
    sizes = np.unique(qid, return_counts=True)[1]
    train = lightgbm.Dataset(x, y, weight=weights, group=sizes)
    settings = {"objective": "lambdarank", "num_threads": 1, "verbose": -1, "min_data_in_leaf": 5}
    booster = lightgbm.train(settings, train, 20)
    assert correlation(booster.predict(x), x) > 0.8


def test_the_default_file_is_taken_by_rank_ndcg_with_a_weight_per_query(write):
    xgboost = pytest.importorskip("xgboost")
    x, y, qid, weights = write()
    per_query = np.bincount(qid, weights)[1:]
    train = xgboost.DMatrix(x, y, qid=qid, weight=per_query)
    settings = {"objective": "rank:ndcg", "nthread": 1, "max_depth": 3}
    booster = xgboost.train(settings, train, 20)
    assert correlation(booster.predict(train), x) > 0.8


def test_fractions_are_taken_where_the_docs_say_so(write):
    xgboost = pytest.importorskip("xgboost")
    lightgbm = pytest.importorskip("lightgbm")
    x, y, qid, _ = write(grades=0)
    assert len(np.unique(y)) > 50
    train = xgboost.DMatrix(x, y, qid=qid)
    for settings in ({"objective": "rank:pairwise"},
                     {"objective": "rank:ndcg", "ndcg_exp_gain": False}):  # fmt: skip
        booster = xgboost.train({**settings, "nthread": 1, "max_depth": 3}, train, 20)
        assert correlation(booster.predict(train), x) > 0.7
    with pytest.raises(xgboost.core.XGBoostError, match="integer"):
        xgboost.train({"objective": "rank:ndcg", "nthread": 1}, train, 1)
    sizes = np.unique(qid, return_counts=True)[1]
    with pytest.raises(lightgbm.basic.LightGBMError, match="int type"):
        lightgbm.train(
            {"objective": "lambdarank", "verbose": -1}, lightgbm.Dataset(x, y, group=sizes), 1
        )


def test_one_grade_is_refused(graded, tmp_path):
    data, log = graded
    with pytest.raises(SettingsError, match="grades is a number from 2 to 31, not 1"):
        to_letor(Export(Trained(), tmp_path / "y.txt", documents=data, log=log, grades=1))
