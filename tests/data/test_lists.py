"""Displayed lists: the top of a ranking, in order, padded at the end."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualrank.data.dataset import Dataset
from dualrank.data.lists import PADDING, rank_documents, top_lists
from dualrank.errors import DataError


def dataset_of(lengths):
    return Dataset.from_arrays(
        np.zeros((sum(lengths), 1)), np.repeat(np.arange(len(lengths)), lengths)
    )


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 8), min_size=1, max_size=6),
    depth=st.integers(1, 10),
    seed=st.integers(0, 1000),
)
def test_lists_are_the_top_of_a_stable_sort(lengths, depth, seed):
    data = dataset_of(lengths)
    # Few distinct scores, so that there are ties.
    scores = np.random.default_rng(seed).integers(0, 4, data.document_count).astype(float)
    lists = top_lists(data, scores, depth)
    assert lists.documents.shape == (len(lengths), depth)
    assert lists.depth == depth
    assert len(lists) == len(lengths)
    assert lists.queries.tolist() == list(range(len(lengths)))
    for query, found in enumerate(lists.documents.tolist()):
        rows = range(data.offsets[query], data.offsets[query + 1])
        expected = sorted(rows, key=lambda row: -scores[row])[:depth]
        assert found == expected + [PADDING] * (depth - len(expected))


def test_ties_keep_the_order_of_the_input():
    data = dataset_of([4])
    assert top_lists(data, np.array([1.0, 2.0, 1.0, 2.0]), 4).documents.tolist() == [[1, 3, 0, 2]]


def test_a_score_that_is_no_number_ranks_last():
    data = dataset_of([3, 1])
    assert rank_documents(data, np.array([np.nan, -1e30, 5.0, np.nan])).tolist() == [2, 1, 0, 3]


def test_scores_of_another_length_are_refused():
    with pytest.raises(DataError, match=r"scores has shape \(2,\), but there are 3 documents"):
        top_lists(dataset_of([3]), np.zeros(2))


def test_values_are_laid_out_like_the_lists_with_zero_at_padding():
    data = dataset_of([3, 1])
    lists = top_lists(data, np.array([0.1, 0.3, 0.2, 0.0]), 2)
    values = np.array([10, 20, 30, 40], np.float32)
    assert lists.gather(values).tolist() == [[20, 30], [40, 0]]
    assert lists.mask.tolist() == [[True, True], [True, False]]
