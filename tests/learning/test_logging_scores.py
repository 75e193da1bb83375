"""What the logging ranker must have thought: against draws of its model, and at its limits."""

import numpy as np
import pytest

from dualrank.data.dataset import Dataset
from dualrank.data.lists import PADDING, RankedLists
from dualrank.data.scaling import Scaler
from dualrank.learning.logging_scores import Ground, logging_scores, spread_of
from dualrank.learning.model import Model
from dualrank.rankers.network import Linear

Z = np.array([0.9, -0.4, 0.3, -1.2, 0.1])


def one_query(candidates):
    return Dataset.from_arrays(np.zeros((candidates, 1)), ["q"] * candidates)


def lists_of(*documents, queries=None):
    queries = [0] * len(documents) if queries is None else queries
    return RankedLists(np.array(documents, np.int32), np.array(queries, np.int32))


def plain(z, shown, candidates):
    """−log Σ_{i ≤ k} 1/D_i for one list, one rank after the other."""
    left, inverse, found = set(candidates), 0.0, []
    for document in shown:
        inverse += 1 / sum(np.exp(z[j]) for j in left)
        left.remove(document)
        found.append(-np.log(inverse))
    return found


@pytest.mark.parametrize("shown", [[0, 2, 1], [1, 4, 0], [2, 0, 4]])
def test_they_are_those_of_scores_drawn_until_they_give_the_order(shown):
    """Scores z + Gumbel noise, kept where they sort the documents as the list does.

    What is compared is the mean of e^{−s}, which the approximation is exact for.
    """
    rng = np.random.default_rng(1)
    drawn = Z + rng.gumbel(size=(400_000, len(Z)))
    order = np.argsort(-drawn, axis=1)[:, : len(shown)]
    kept = np.exp(-drawn[(order == shown).all(axis=1)][:, shown])
    assert len(kept) > 1_000
    found = np.exp(-logging_scores(Z, lists_of(shown), one_query(len(Z)))[0])
    error = kept.std(axis=0) / np.sqrt(len(kept))
    # Three normal errors: all are below 4 but once in 5,000 samples.
    assert (np.abs(found - kept.mean(axis=0)) / error).max() < 4
    assert (error / kept.mean(axis=0)).max() < 0.05


def test_they_are_those_of_a_plain_loop_with_padding_and_other_queries(make_dataset):
    data = make_dataset(queries=12, lengths=(2, 9))
    rng = np.random.default_rng(0)
    z = rng.normal(size=data.document_count)
    documents, queries = np.full((24, 5), PADDING, np.int32), np.repeat(np.arange(12), 2)
    for row, query in enumerate(queries):
        candidates = np.arange(data.offsets[query], data.offsets[query + 1])
        chosen = rng.permutation(candidates)[:5]
        documents[row, : len(chosen)] = chosen
    lists = RankedLists(documents, queries.astype(np.int32))
    found = logging_scores(z, lists, data)
    for row, query in enumerate(queries):
        shown = documents[row][documents[row] >= 0]
        candidates = range(data.offsets[query], data.offsets[query + 1])
        np.testing.assert_allclose(found[row, : len(shown)], plain(z, shown, candidates))
        assert not found[row, len(shown) :].any()
    assert not lists.mask.all()


def test_blocks_do_not_change_them(make_dataset, monkeypatch):
    data = make_dataset(queries=12, lengths=(2, 9))
    z = np.random.default_rng(0).normal(size=data.document_count)
    lists = lists_of(*[[first, first + 1] for first in data.offsets[:-1]], queries=range(12))
    whole = logging_scores(z, lists, data)
    monkeypatch.setattr("dualrank.learning.logging_scores.CELLS_PER_BLOCK", 20)
    assert np.array_equal(logging_scores(z, lists, data), whole)


def test_where_features_tell_all_they_are_what_features_tell():
    """Scores far apart, sorted by them: noise of size 1 changes nothing."""
    z = 200.0 * np.arange(6)[::-1]
    found = logging_scores(z, lists_of([0, 1, 2, 3]), one_query(6))
    np.testing.assert_allclose(found[0], z[:4], atol=1e-9)
    assert np.isfinite(logging_scores(z, lists_of([5, 4, 3, 2]), one_query(6))).all()


def test_where_features_tell_nothing_they_depend_on_rank_and_candidates_alone():
    """−log Σ_{i < k} 1/(n − i), whichever documents they are."""
    found = logging_scores(np.zeros(7), lists_of([0, 1, 2], [6, 3, 5]), one_query(7))
    expected = -np.log([1 / 7, 1 / 7 + 1 / 6, 1 / 7 + 1 / 6 + 1 / 5])
    np.testing.assert_allclose(found, [expected, expected])


def test_a_document_in_two_lists_is_thought_more_of_where_it_stood_higher():
    found = logging_scores(Z, lists_of([4, 0, 2], [0, 2, 4]), one_query(len(Z)))
    assert found[0, 0] > found[1, 2]
    assert (np.diff(found, axis=1) < 0).all()


def test_a_whole_query_displayed_leaves_nothing_over():
    found = logging_scores(Z, lists_of([0, 1, 2, 3, 4]), one_query(len(Z)))
    np.testing.assert_allclose(found[0], plain(Z, range(5), range(5)))


def test_a_ground_differs_by_one_within_lists_and_adds_order_to_features():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 2)).astype(np.float32)
    data = Dataset.from_arrays(X, np.repeat(np.arange(10), 6))
    ranker = Linear().build(2)
    ranker.weights[0][:] = 2.0
    model = Model(ranker, Scaler.fit(data.features, kind="none"), kind="linear")
    lists = RankedLists(
        np.arange(60, dtype=np.int32).reshape(10, 6)[:, :4], np.arange(10, dtype=np.int32)
    )
    ground = Ground.of(model, lists, data)
    under = ground.under(lists, data)
    assert spread_of(under, lists.mask) == pytest.approx(1, rel=1e-5)
    by_features = lists.gather(model.predict(data)) / ground.scale
    np.testing.assert_allclose(by_features + ground.by_order(lists, data), under, atol=1e-5)


def test_the_spread_is_within_lists_and_one_where_nothing_differs():
    mask = np.array([[True, True, True], [True, True, False]])
    values = np.array([[10.0, 12.0, 14.0], [-5.0, -7.0, 99.0]])
    within = [-2, 0, 2, 1, -1]
    assert spread_of(values, mask) == pytest.approx(np.std(within))
    assert spread_of(np.ones((2, 3)), mask) == 1
