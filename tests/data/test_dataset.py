import pytest

from dualrank.data.dataset import Dataset, concatenate
from dualrank.errors import DataError


def test_data_sets_are_concatenated_query_by_query():
    one = Dataset.from_arrays([[1.0], [2.0]], ["a", "b"], [0, 1], doc_ids=["x", "y"])
    two = Dataset.from_arrays([[3.0]], ["long-id"], [3], doc_ids=["zebra"])
    both = concatenate([one, two])
    assert both.features.tolist() == [[1], [2], [3]]
    assert both.offsets.tolist() == [0, 1, 2, 3]
    assert both.query_ids.tolist() == ["a", "b", "long-id"]
    assert both.grades.tolist() == [0, 1, 3]
    assert both.doc_ids.tolist() == ["x", "y", "zebra"]
    assert both.max_grade == 3
    plain = Dataset.from_arrays([[3.0]], ["c"])
    assert concatenate([one, plain]).grades is None
    assert concatenate([one, plain]).doc_ids is None


def test_data_sets_that_do_not_fit_are_not_concatenated():
    one = Dataset.from_arrays([[1.0]], ["a"])
    with pytest.raises(DataError, match="query 'a' occurs in more than one data set"):
        concatenate([one, one])
    with pytest.raises(DataError, match="one data set has 1 features, another 2"):
        concatenate([one, Dataset.from_arrays([[1.0, 2.0]], ["b"])])
