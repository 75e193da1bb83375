import numpy as np
import pytest

from dualrank.data.dataset import Dataset
from dualrank.data.lists import PADDING, rank_documents, top_lists
from dualrank.errors import DataError


def data_of(lengths):
    qid = np.repeat(np.arange(len(lengths)), lengths)
    return Dataset.from_arrays(np.zeros((len(qid), 1)), qid)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_documents_are_ranked_by_descending_score_within_their_query(dtype):
    rng = np.random.default_rng(1)
    data = data_of([3, 1, 200, 40])
    scores = rng.integers(-5, 5, data.document_count).astype(dtype)
    expected = np.lexsort((-scores, data.query_of_document))
    assert np.array_equal(rank_documents(data, scores), expected)


def test_scores_may_be_read_only_or_strided():
    data = data_of([2, 2])
    scores = np.array([0.0, 9, 1, 9, 3, 9, 2, 9])[::2]
    scores.flags.writeable = False
    assert rank_documents(data, scores).tolist() == [1, 0, 2, 3]


def test_a_score_that_is_no_number_is_ranked_last():
    scores = np.array([np.nan, 1, np.nan, -2, 3] * 20)
    order = rank_documents(data_of([100]), scores)
    assert np.array_equal(order, np.lexsort((-scores, np.zeros(100))))


def test_scores_of_another_shape_are_named():
    with pytest.raises(DataError, match=r"^scores has shape \(3,\), but there are 4 documents$"):
        top_lists(data_of([2, 2]), np.zeros(3))


def test_short_lists_end_in_padding_and_long_ones_are_cut():
    lists = top_lists(data_of([1, 3]), np.array([5.0, 0, 2, 1]), depth=2)
    assert lists.documents.tolist() == [[0, PADDING], [2, 3]]
    assert lists.queries.tolist() == [0, 1]
    assert lists.gather(np.float32([7, 1, 2, 3])).tolist() == [[7, 0], [2, 3]]
