"""Lists that show the same documents at several positions."""

import numpy as np

from dualrank.data.interventions import join_lists, shuffle_lists, swap_with_first
from dualrank.data.lists import PADDING, RankedLists

LISTS = RankedLists(
    np.array([[0, 1, 2], [7, 8, PADDING]], dtype=np.int32), np.array([4, 5], dtype=np.int32)
)


def test_shuffling_keeps_documents_queries_and_padding():
    shuffled = shuffle_lists(LISTS, 3_000, np.random.default_rng(0))
    assert len(shuffled) == 6_000
    of_4 = shuffled.documents[shuffled.queries == 4]
    assert (np.sort(of_4, axis=1) == [0, 1, 2]).all()
    # Each of six orders comes 500 times, with a standard deviation of 20.
    assert np.abs(np.unique(of_4, axis=0, return_counts=True)[1] - 500).max() < 100
    assert (shuffled.documents[shuffled.queries == 5, 2] == PADDING).all()
    assert shuffled.documents.dtype == np.int32


def test_the_first_is_swapped_with_each_of_the_others():
    swapped = swap_with_first(LISTS)
    assert swapped.documents.tolist() == [[0, 1, 2], [1, 0, 2], [2, 1, 0], [7, 8, -1], [8, 7, -1]]
    assert swapped.queries.tolist() == [4, 4, 4, 5, 5]
    assert LISTS.documents.tolist() == [[0, 1, 2], [7, 8, -1]]


def test_lists_of_several_rankers_stand_once_each():
    joined = join_lists([LISTS, LISTS, swap_with_first(LISTS)])
    assert len(joined) == 5
