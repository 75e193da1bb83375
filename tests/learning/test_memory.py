"""Lists that are remembered: what fades, what is one list, and what is kept of many."""

import numpy as np
import pytest

import dualrank as dr
from dualrank.learning.memory import Memory, chances


def memory_of(lists, sessions, clicks=None, depth=2):
    """Lists of documents that are told apart by one feature."""
    lists = np.asarray(lists, np.int32)
    features = np.arange(lists.max() + 1, dtype=np.float32)[:, None]
    clicks = np.full(lists.shape, 0.5) if clicks is None else np.asarray(clicks)
    nan = np.full(lists.shape, np.nan, np.float32)
    return Memory(features, lists, clicks.astype(np.float32), np.asarray(sessions, float), nan)


def test_a_log_is_remembered_with_all_of_its_clicks(log, dataset):
    memory = Memory.of(log, dataset)
    assert memory.total == log.sessions
    sums = (memory.clicks * memory.sessions[:, None]).sum(axis=0)
    np.testing.assert_allclose(sums, log.clicks_per_list.sum(axis=0), rtol=1e-5)
    shown = log.lists.documents[log.sessions_per_list > 0]
    mask = shown >= 0
    np.testing.assert_array_equal(
        memory.features[memory.documents[mask]], dataset.features[shown[mask]]
    )


def test_the_same_lists_become_one():
    one, two = memory_of([[0, 1], [1, 2]], [2, 4]), memory_of([[2, 1], [0, 1]], [3, 6])
    two.clicks[1] = 0.0
    both = one.joined(two)
    assert len(both) == 3
    np.testing.assert_array_equal(both.sessions, [8, 4, 3])
    np.testing.assert_allclose(both.clicks[0], [1 / 8, 1 / 8])
    assert len(both.features) == 3


def test_lists_that_are_settled_stay_apart():
    one = memory_of([[0, 1]], [2])
    old = one.settle(dr.Propensity.of([1, 0.5]))
    both = one.joined(old)
    assert both.are_settled.tolist() == [False, True]
    again = both.settle(dr.Propensity.of([1, 0.25]))
    np.testing.assert_allclose(again.settled[:, 1], np.log([0.25, 0.5]), rtol=1e-6)


def test_sessions_fade_by_half_lives():
    memory = memory_of([[0, 1], [1, 2]], [8, 1e-6])
    np.testing.assert_allclose(memory.faded(300, 100).sessions, [1])
    assert memory.faded(300, None) is memory
    twice = memory.faded(100, 100).faded(200, 100)
    np.testing.assert_allclose(twice.sessions, memory.faded(300, 100).sessions)


def test_deeper_lists_join_shallower_ones():
    settled = memory_of([[0, 1]], [1]).settle(dr.Propensity.of([1, 0.5]))
    both = settled.joined(memory_of([[0, 1, 2]], [1]))
    assert both.documents.tolist() == [[0, 1, -1], [0, 1, 2]]
    assert both.are_settled.tolist() == [True, False]
    assert np.isfinite(both.settled[0]).all()


def test_what_is_kept_counts_for_all_of_it_in_expectation():
    rng = np.random.default_rng(0)
    lists = np.stack([np.arange(60), np.arange(60) + 1], axis=1)
    sessions = rng.pareto(1.0, 60) + 0.1
    clicks = rng.random((60, 2)) * (rng.random((60, 1)) < 0.7)
    memory = memory_of(lists, sessions, clicks)
    wanted = (clicks * sessions[:, None])[:, 0]
    draws = 400
    found, totals = np.zeros((draws, 60)), np.zeros(draws)
    for draw in range(draws):
        kept = memory.kept(20, rng)
        assert len(kept) <= 20
        totals[draw] = kept.total
        shown = kept.documents[:, 0] >= 0
        names = kept.features[kept.documents[shown, 0], 0].astype(int)
        found[draw, names] = (kept.clicks * kept.sessions[:, None])[shown, 0]
    error = found.std(axis=0) / np.sqrt(draws)
    assert (np.abs(found.mean(axis=0) - wanted) < 4 * error + 1e-4).all()
    assert totals.mean() == pytest.approx(sessions.sum(), rel=0.05)


def test_lists_without_clicks_become_one_before_any_is_lost():
    memory = memory_of([[0, 1], [1, 2], [2, 3]], [1, 2, 3], [[0.5, 0], [0, 0], [0, 0]])
    kept = memory.kept(2, np.random.default_rng(0))
    np.testing.assert_array_equal(kept.sessions, [1, 5])
    assert kept.documents.tolist() == [[0, 1], [-1, -1]]
    batch = kept.feedback().draw(1_000, np.random.default_rng(0)).labelled()
    assert batch.drawn == 1_000
    assert len(batch) == pytest.approx(1_000 / 6, rel=0.3)


def test_lists_without_clicks_stay_settled_where_they_were():
    lists, clicks = [[0, 1], [1, 2], [2, 3]], [[0.5, 0], [0, 0], [0, 0]]
    old = memory_of(lists, [1, 2, 3], clicks).settle(dr.Propensity.of([1, 0.5]))
    new = memory_of([[3, 4], [4, 5]], [7, 8], [[0, 0], [0, 0]])
    both = new.joined(old)
    kept = both.kept(3, np.random.default_rng(0))
    assert len(kept) == 3
    assert kept.sessions[kept.are_settled].sum() == 6
    assert kept.sessions[~kept.are_settled].sum() == 15
    # All of them settled: nothing is left that could speak of position.
    assert old.kept(2, np.random.default_rng(0)).are_settled.all()


def test_chances_add_up_to_the_places():
    sessions = np.random.default_rng(0).pareto(1, 100)
    for places in (1, 7, 50, 99):
        found = chances(sessions, places)
        assert found.sum() == pytest.approx(places)
        assert found.max() <= 1


def _changed(arrays, **changes):
    return {**arrays, **{k: v for k, v in changes.items() if v is not None}}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"sessions": np.array([1.0, -1.0])}, "no positive numbers"),
        ({"sessions": np.array([1.0, np.inf])}, "no positive numbers"),
        ({"sessions": np.array([1.0])}, "not of one size"),
        ({"sessions": np.array([1.0, 1.0], np.float32)}, "its sessions are float32"),
        ({"clicks": np.full((2, 2), 2, np.float32)}, "not between 0 and 1"),
        ({"clicks": np.full((2, 2), np.nan, np.float32)}, "not between 0 and 1"),
        ({"documents": np.full((2, 2), 9, np.int32)}, "documents that it does not have"),
        ({"documents": np.full((2, 2), -7, np.int32)}, "documents that it does not have"),
        ({"features": np.full((3, 1), np.nan, np.float32)}, "no finite numbers"),
        ({"features": np.zeros((3, 4), np.float32)}, "4 features, and its model 1"),
        ({"settled": np.array([[0, np.nan], [np.nan] * 2], np.float32)}, "that of whole lists"),
        ({"settled": np.full((2, 2), 1e9, np.float32)}, "that of whole lists"),
        ({"more": np.zeros(1)}, "instead of"),
    ],
)
def test_a_memory_that_nobody_wrote_is_refused(changes, sentence):
    arrays = memory_of([[0, 1], [1, 2]], [1, 2]).arrays()
    Memory.of_arrays(arrays, 1)
    with pytest.raises(ValueError, match=sentence):
        Memory.of_arrays(_changed(arrays, **changes), 1)
