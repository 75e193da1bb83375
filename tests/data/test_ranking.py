import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualrank.data.ranking import by_rank, rank_segments


def lexsorted(scores, lengths):
    return np.lexsort((-scores, np.repeat(np.arange(len(lengths)), lengths)))


def offsets_of(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


@settings(deadline=None, max_examples=150)
@given(
    lengths=st.lists(st.integers(0, 150), min_size=1, max_size=8),
    levels=st.integers(1, 1000),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_order_is_that_of_lexsort(lengths, levels, seed):
    # Few levels make many ties; many levels make almost none.
    scores = np.random.default_rng(seed).integers(0, levels, sum(lengths)) / levels
    assert np.array_equal(rank_segments(scores, offsets_of(lengths)), lexsorted(scores, lengths))


@pytest.mark.parametrize("levels", [1, 7, 1_000_000])
def test_one_very_long_query_among_short_ones(levels):
    lengths = [1, 50_000, 2, 33]
    scores = np.random.default_rng(3).integers(0, levels, sum(lengths)).astype(float)
    assert np.array_equal(rank_segments(scores, offsets_of(lengths)), lexsorted(scores, lengths))


def test_infinite_scores_and_signed_zeros_have_their_place():
    scores = np.array([-np.inf, 0.0, -0.0, np.inf, -np.inf, np.inf])
    assert rank_segments(scores, np.array([0, 6])).tolist() == [3, 5, 1, 2, 0, 4]


def test_equal_scores_share_what_their_ranks_are_worth():
    worth = np.array([1.0, 0.5, 0.25, 0.125])
    scores = np.array([[0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 2.0, 0.0], [3.0, 3.0, 9.0, 9.0]])
    mask = np.array([[True] * 4, [True] * 4, [True, True, False, False]])
    found = by_rank(scores, mask, worth)
    np.testing.assert_allclose(found[0], worth.mean())
    np.testing.assert_allclose(found[1], [0.25, 0.75, 0.75, 0.125])
    np.testing.assert_allclose(found[2, :2], 0.75)
