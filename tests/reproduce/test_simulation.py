"""The simulation: scaled on training data, ranked by a weak ranker of a few graded queries."""

from dataclasses import replace

import numpy as np
import pytest

from dualrank.data.dataset import Dataset, Splits
from dualrank.data.generator import Preset, generate_splits
from dualrank.errors import DataError
from dualrank.evaluation.evaluator import evaluate
from dualrank.rankers.ranking_svm import RankingSVM
from dualrank.reproduce.simulation import rank_initially, simulate, train_initial_ranker


def test_features_are_scaled_by_training_data_alone(splits, simulation):
    np.testing.assert_allclose(simulation.train.features.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(simulation.train.features.std(0), 1, atol=1e-4)
    shifted = replace(splits.test, features=splits.test.features + 100)
    other = simulate(Splits(splits.train, splits.valid, shifted), seed=0)
    assert np.array_equal(other.train.features, simulation.train.features)
    assert other.test.features.min() > 100


def test_lists_are_the_top_ten_of_the_initial_ranker(simulation):
    scores = simulation.initial.score(simulation.train.features)
    assert simulation.lists.depth == 10
    assert len(simulation.lists) == len(simulation.train)
    for query in (0, 7, 100):
        start, end = simulation.train.offsets[query : query + 2]
        best = start + np.argsort(-scores[start:end], kind="stable")[:10]
        shown = simulation.lists.documents[query]
        assert shown[shown >= 0].tolist() == best.tolist()


def test_the_initial_ranker_is_better_than_nothing_and_weak(simulation):
    test = simulation.test
    initial = evaluate(simulation.initial.score(test.features), test, ["ndcg@10"])["ndcg@10"]
    rng = np.random.default_rng(0)
    chance = evaluate(rng.normal(size=test.document_count), test, ["ndcg@10"])["ndcg@10"]
    full = RankingSVM(C=10.0).fit_grades(simulation.train)
    best = evaluate(full.score(test.features), test, ["ndcg@10"])["ndcg@10"]
    assert chance < initial < best


def test_the_initial_ranker_sees_one_percent_of_the_queries_but_at_least_ten(monkeypatch):
    seen = []
    monkeypatch.setattr(RankingSVM, "fit_grades", lambda self, data: seen.append(len(data)))
    for queries in (5, 300, 2_050):
        data = generate_splits(Preset(4, queries, 1, 1)).train
        train_initial_ranker(data, seed=0)
    assert seen == [5, 10, 21]


def test_other_seeds_see_other_queries(simulation):
    first, again, other = (train_initial_ranker(simulation.train, s) for s in (0, 0, 1))
    assert np.array_equal(first.weights, again.weights)
    assert not np.array_equal(first.weights, other.weights)


def test_lists_for_a_log_are_those_of_the_simulation(splits, simulation):
    lists = rank_initially(splits.train, seed=0)
    assert np.array_equal(lists.documents, simulation.lists.documents)


def test_different_numbers_of_features_are_refused(splits):
    wider = generate_splits(Preset(13, 5, 5, 5)).test
    with pytest.raises(DataError) as caught:
        simulate(Splits(splits.train, splits.valid, wider), seed=0)
    assert str(caught.value) == (
        "training, validation and test data have different numbers of features: 12, 13"
    )


def test_queries_of_one_grade_each_teach_nothing(splits):
    flat = Dataset.from_arrays([[0.0], [1.0], [2.0]], [1, 1, 2], grades=[1, 1, 0])
    with pytest.raises(DataError, match="no training query has documents of different grades"):
        train_initial_ranker(flat, seed=0)


def test_training_data_need_grades(splits):
    blind = replace(splits.train, grades=None)
    with pytest.raises(DataError, match="no grades"):
        simulate(Splits(blind, splits.valid, splits.test), seed=0)
