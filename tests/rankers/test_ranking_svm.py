"""The Ranking SVM reaches the optimum that it states, and learns what it should from clicks."""

import logging

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists, top_lists
from dualrank.errors import DataError, SettingsError
from dualrank.rankers.pairs import (
    Pairs,
    preference_pairs_from_clicks,
    preference_pairs_from_grades,
)
from dualrank.rankers.ranking_svm import RankingSVM, SVMSolution

RHO = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])


def fit_ranking_svm(X, pairs, C=100.0, *, progress=None, **settings):
    return RankingSVM(C, **settings).solve(X, pairs, progress=progress)


def random_problem(seed, queries=12, features=6):
    """A noisy problem that no w solves without loss, with random weights."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 9, queries)
    X = rng.random((lengths.sum(), features), dtype=np.float32)
    utility = X @ rng.normal(size=features) + rng.normal(size=len(X))
    grades = np.digitize(utility, np.quantile(utility, [0.4, 0.7, 0.9]))
    data = Dataset.from_arrays(X, np.repeat(np.arange(queries), lengths), grades)
    pairs = preference_pairs_from_grades(data)
    return X, reweighted(pairs, rng.gamma(1.0, 2.0, len(pairs)))


def reweighted(pairs, weight):
    return Pairs(pairs.better, pairs.worse, weight, pairs.offsets, pairs.normaliser)


def differences(X, pairs):
    return X[pairs.better].astype(np.float64) - X[pairs.worse].astype(np.float64)


def objective(X, pairs, C, w):
    hinge = np.maximum(0, 1 - differences(X, pairs) @ w)
    return 0.5 * w @ w + C / pairs.normaliser * (pairs.weight @ hinge)


def angle(w, truth):
    return np.arccos(w @ truth / np.linalg.norm(w) / np.linalg.norm(truth))


@pytest.mark.parametrize("C", [1.0, 30.0, 300.0])
@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_liblinear(seed, C):
    X, pairs = random_problem(seed)
    ours = fit_ranking_svm(X, pairs, C, tolerance=1e-8, max_epochs=100_000)
    side = np.where(np.arange(len(pairs)) % 2, 1, -1)
    peer = LinearSVC(
        loss="hinge", dual=True, fit_intercept=False, C=1.0, tol=1e-10, max_iter=10**7
    ).fit(
        side[:, None] * differences(X, pairs),
        side,
        sample_weight=C / pairs.normaliser * pairs.weight,
    )
    best = objective(X, pairs, C, peer.coef_[0])
    assert ours.converged
    assert ours.objective == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(ours.weights, peer.coef_[0], atol=1e-3)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-5, 1e-8])
@pytest.mark.parametrize("seed", range(3))
def test_reported_gap_is_a_true_certificate(seed, tolerance):
    X, pairs = random_problem(seed, queries=20)
    C = 50.0
    found = fit_ranking_svm(X, pairs, C, tolerance=tolerance, max_epochs=100_000)
    alpha, bound = found.duals, C / pairs.normaliser * pairs.weight
    assert ((alpha >= 0) & (alpha <= bound)).all()
    w = alpha @ differences(X, pairs)
    np.testing.assert_allclose(found.weights, w, rtol=1e-10, atol=1e-12)
    primal, dual = objective(X, pairs, C, w), alpha.sum() - 0.5 * w @ w
    assert found.objective == pytest.approx(primal, rel=1e-10)
    assert found.duality_gap == pytest.approx((primal - dual) / primal, abs=1e-12)
    assert found.duality_gap <= tolerance


def test_optimality_conditions_hold():
    """At the optimum α_p is 0 beyond the margin, at its bound inside, and between only on it."""
    X, pairs = random_problem(5)
    C = 20.0
    found = fit_ranking_svm(X, pairs, C, tolerance=1e-12, max_epochs=100_000)
    bound = C / pairs.normaliser * pairs.weight
    margin = differences(X, pairs) @ found.weights
    assert (margin[found.duals < bound * (1 - 1e-6)] > 1 - 1e-4).all()
    assert (margin[found.duals > bound * 1e-6] < 1 + 1e-4).all()
    inside = (found.duals > bound * 1e-6) & (found.duals < bound * (1 - 1e-6))
    assert inside.any()


def test_doubled_weights_equal_a_doubled_c():
    X, pairs = random_problem(1)
    once = fit_ranking_svm(X, pairs, 40.0)
    twice = fit_ranking_svm(X, reweighted(pairs, 2 * pairs.weight), 20.0)
    np.testing.assert_array_equal(once.weights, twice.weights)


def test_order_of_queries_does_not_matter():
    X, pairs = random_problem(2)
    order = np.random.default_rng(0).permutation(len(pairs.offsets) - 1)
    chosen = np.concatenate([np.arange(*pairs.offsets[q : q + 2]) for q in order])
    permuted = Pairs(
        pairs.better[chosen],
        pairs.worse[chosen],
        pairs.weight[chosen],
        np.append(0, np.cumsum(np.diff(pairs.offsets)[order])),
        pairs.normaliser,
    )
    one = fit_ranking_svm(X, pairs, 30.0, tolerance=1e-9, max_epochs=100_000)
    other = fit_ranking_svm(X, permuted, 30.0, tolerance=1e-9, max_epochs=100_000)
    np.testing.assert_allclose(one.weights, other.weights, atol=1e-3)


def test_the_seed_alone_decides_the_result():
    X, pairs = random_problem(3)
    first, second = (fit_ranking_svm(X, pairs, 100.0, seed=7) for _ in range(2))
    np.testing.assert_array_equal(first.weights, second.weights)


def test_pairs_without_weight_are_ignored():
    X, pairs = random_problem(4)
    kept = np.random.default_rng(0).random(len(pairs)) < 0.5
    zeroed = reweighted(pairs, np.where(kept, pairs.weight, 0.0))
    block = np.repeat(np.arange(len(pairs.offsets) - 1), np.diff(pairs.offsets))[kept]
    removed = Pairs(
        pairs.better[kept],
        pairs.worse[kept],
        pairs.weight[kept],
        np.r_[0, np.flatnonzero(np.diff(block)) + 1, kept.sum()],
        pairs.normaliser,
    )
    with_zeros = fit_ranking_svm(X, zeroed, 30.0, tolerance=1e-9, max_epochs=100_000)
    without = fit_ranking_svm(X, removed, 30.0, tolerance=1e-9, max_epochs=100_000)
    assert (with_zeros.duals[~kept] == 0).all()
    np.testing.assert_allclose(with_zeros.weights, without.weights, atol=1e-3)


def test_indistinguishable_documents_cost_their_loss_and_nothing_else():
    X = np.array([[0.3, 0.3], [0.3, 0.3], [0.9, 0.1]], dtype=np.float32)
    data = Dataset.from_arrays(X, qid=[1, 1, 1], grades=[1, 0, 2])
    found = RankingSVM(C=30.0, tolerance=1e-9).fit_grades(data)
    assert found.converged
    assert np.isfinite(found.weights).all()
    assert found.objective == pytest.approx(
        objective(X, preference_pairs_from_grades(data), 30.0, found.weights)
    )


def test_grades_give_every_pair_of_different_grades_once():
    data = Dataset.from_arrays(np.zeros((6, 1)), qid=[1, 1, 1, 2, 3, 3], grades=[2, 0, 1, 4, 3, 3])
    pairs = preference_pairs_from_grades(data)
    assert list(zip(pairs.better, pairs.worse, strict=True)) == [(0, 1), (0, 2), (2, 1)]
    assert pairs.offsets.tolist() == [0, 3]
    assert pairs.normaliser == 3


def test_clicks_give_pairs_in_both_directions_with_their_weights():
    lists = RankedLists(np.array([[2, 0, 1], [5, 4, -1]], np.int32), np.array([0, 1], np.int32))
    clicks = np.array([[4, 0, 1], [0, 3, 0]])
    pairs = preference_pairs_from_clicks(lists, clicks, clicks / [1.0, 0.5, 0.25])
    weights = dict(zip(zip(pairs.better, pairs.worse, strict=True), pairs.weight, strict=True))
    assert weights == {(2, 0): 4, (2, 1): 4, (1, 2): 4, (1, 0): 4, (4, 5): 6}
    assert pairs.offsets.tolist() == [0, 4, 5]
    assert pairs.normaliser == 8


def test_without_weights_clicks_count_as_they_are():
    lists = RankedLists(np.array([[2, 0, 1]], np.int32), np.array([0], np.int32))
    pairs = preference_pairs_from_clicks(lists, [[0, 0, 5]])
    assert pairs.weight.tolist() == [5, 5]


def test_equal_pairs_of_several_lists_are_merged():
    shown = np.array([[3, 1, 2], [1, 3, 2], [7, 8, -1]], np.int32)
    lists = RankedLists(shown, np.array([0, 0, 1], np.int32))
    clicks = np.array([[1, 0, 0], [0, 2, 0], [1, 0, 0]])
    pairs = preference_pairs_from_clicks(lists, clicks, clicks / [1.0, 0.5, 0.25])
    weights = dict(zip(zip(pairs.better, pairs.worse, strict=True), pairs.weight, strict=True))
    assert weights == {(3, 1): 5, (3, 2): 5, (7, 8): 1}
    assert pairs.offsets.tolist() == [0, 2, 3]


def test_padding_is_never_in_a_pair():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 15, 200)
    data = Dataset.from_arrays(
        rng.random((lengths.sum(), 3)), qid=np.repeat(np.arange(200), lengths)
    )
    lists = top_lists(data, rng.random(len(data.features)))
    clicks = rng.poisson(0.5, lists.documents.shape) * lists.mask
    pairs = preference_pairs_from_clicks(lists, clicks, clicks / RHO)
    assert min(pairs.better.min(), pairs.worse.min()) >= 0
    query = data.query_of_document
    assert (query[pairs.better] == query[pairs.worse]).all()
    assert (pairs.better != pairs.worse).all()
    shown = lists.mask.sum(axis=1, keepdims=True)
    assert len(pairs) == ((clicks > 0) * (shown - 1)).sum()
    assert len(pairs.offsets) == 1 + len(np.unique(query[pairs.better]))


def test_recovers_a_linear_direction():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=8)
    X = rng.random((6000, 8), dtype=np.float32)
    utility = X @ truth + 0.1 * rng.normal(size=6000)
    grades = np.digitize(utility, np.quantile(utility, [0.3, 0.6, 0.85, 0.95]))
    data = Dataset.from_arrays(X, qid=np.repeat(np.arange(600), 10), grades=grades)
    found = RankingSVM(C=100.0).fit_grades(data)
    assert angle(found.weights, truth) < 0.05
    np.testing.assert_allclose(found.score(X), X @ found.weights, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_true_propensities_bring_the_ranker_nearer_to_the_truth(seed):
    rng = np.random.default_rng(seed)
    truth, first = rng.normal(size=(2, 8))
    X = rng.random((10_000, 8), dtype=np.float32)
    data = Dataset.from_arrays(X, qid=np.repeat(np.arange(1000), 10))
    utility = X @ truth
    relevance = 0.1 + 0.9 * (utility > np.quantile(utility, 0.7))
    lists = top_lists(data, X @ (first + 0.5 * truth))
    clicks = rng.binomial(50, RHO * lists.gather(relevance))
    svm = RankingSVM(C=100.0)
    naive = svm.fit_clicks(X, lists, clicks)
    corrected = svm.fit_clicks(X, lists, clicks, clicks / RHO)
    assert naive.converged
    assert corrected.converged
    assert angle(corrected.weights, truth) < 0.5 * angle(naive.weights, truth)


def test_says_when_it_did_not_converge(caplog):
    X, pairs = random_problem(0)
    with caplog.at_level(logging.WARNING):
        found = fit_ranking_svm(X, pairs, 1e5, max_epochs=3)
    assert isinstance(found, SVMSolution)
    assert not found.converged
    assert found.epochs == 3
    assert "stopped after 3 epochs" in caplog.text


def test_progress_reports_the_closing_gap():
    X, pairs = random_problem(0)
    seen = []
    found = fit_ranking_svm(X, pairs, 100.0, progress=lambda epoch, gap: seen.append((epoch, gap)))
    assert seen[-1] == (found.epochs, found.duality_gap)


def test_memory_mapped_features_are_accepted(tmp_path):
    X, pairs = random_problem(0)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    np.testing.assert_array_equal(
        fit_ranking_svm(mapped, pairs).weights, fit_ranking_svm(X, pairs).weights
    )


LISTS = RankedLists(np.array([[0, 1], [2, -1]], np.int32), np.array([0, 1], np.int32))


@pytest.mark.parametrize(
    ("clicks", "weighted", "sentence"),
    [
        ([[0, 0], [0, 0]], None, "nothing to learn from: no list has a click"),
        ([[0, 0], [9, 0]], None, "nothing to learn from: no list has a click"),
        ([[1, 0, 0]], None, r"clicks has shape \(1, 3\), but the lists have shape \(2, 2\)"),
        ([[0, -1], [0, 0]], None, "list 0 has -1 clicks at position 2; counts are 0 or more"),
        ([[0, np.nan], [0, 0]], None, "list 0 has nan clicks at position 2"),
        ([[1, 0], [0, 1]], None, "list 1 has a click at position 2, where no document"),
        ([[1, 0], [0, 0]], [1.0], r"clicks has shape \(1,\), but the lists have shape \(2, 2\)"),
        ([[0, 1], [0, 0]], [[0, np.inf], [0, 0]], "list 0 has inf clicks at position 2"),
    ],
)
def test_bad_clicks_are_named(clicks, weighted, sentence):
    with pytest.raises(DataError, match=sentence):
        preference_pairs_from_clicks(LISTS, clicks, weighted)


def test_equal_grades_are_nothing_to_learn_from():
    data = Dataset.from_arrays(np.zeros((4, 1)), qid=[1, 1, 2, 2], grades=[1, 1, 0, 0])
    with pytest.raises(DataError, match="nothing to learn from: no query has two documents"):
        RankingSVM().fit_grades(data)


def test_only_weightless_pairs_are_nothing_to_learn_from():
    X, pairs = random_problem(0)
    with pytest.raises(DataError, match="nothing to learn from"):
        fit_ranking_svm(X, reweighted(pairs, np.zeros(len(pairs))))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"C": 0.0}, "C of the ranking SVM is 0"),
        ({"C": float("inf")}, "C of the ranking SVM is inf"),
        ({"tolerance": 0.0}, "tolerance of the ranking SVM is 0"),
        ({"max_epochs": 0}, "max_epochs of the ranking SVM is 0"),
    ],
)
def test_bad_settings_are_named(settings, sentence):
    X, pairs = random_problem(0)
    with pytest.raises(SettingsError, match=sentence):
        fit_ranking_svm(X, pairs, **settings)
