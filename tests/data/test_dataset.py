"""Documents as flat arrays: what comes in is checked, what is taken out is right."""

import numpy as np
import pytest

from dualrank.data.dataset import Dataset
from dualrank.errors import DataError

X = [[0.1, 1.0], [0.2, 2.0], [0.3, 3.0], [0.4, 4.0], [0.5, 5.0]]
QID = ["b", "b", "a", "c", "c"]


@pytest.fixture
def data():
    return Dataset.from_arrays(
        X, QID, [0, 2, 1, 0, 3], doc_ids=[10, 11, 12, 13, 14], feature_names=["x", "y"]
    )


def test_arrays_become_a_data_set(data):
    assert len(data) == 3
    assert data.document_count == 5
    assert data.feature_count == 2
    assert data.offsets.tolist() == [0, 2, 3, 5]
    assert data.lengths.tolist() == [2, 1, 2]
    assert data.query_of_document.tolist() == [0, 0, 1, 2, 2]
    assert data.query_ids.tolist() == ["b", "a", "c"]
    assert data.doc_ids.tolist() == ["10", "11", "12", "13", "14"]
    assert data.features.dtype == np.float32
    assert data.max_grade == 3
    assert data.feature_names == ("x", "y")


def test_the_highest_grade_can_be_declared():
    assert Dataset.from_arrays(X, QID, [0] * 5, max_grade=4).max_grade == 4


def test_queries_are_taken_in_the_order_asked_for(data):
    part = data.take([2, 0])
    assert part.query_ids.tolist() == ["c", "b"]
    np.testing.assert_allclose(part.features[:, 0], [0.4, 0.5, 0.1, 0.2])
    assert part.grades.tolist() == [0, 3, 0, 2]
    assert part.doc_ids.tolist() == ["13", "14", "10", "11"]
    assert part.offsets.tolist() == [0, 2, 4]
    assert part.max_grade == 3


def test_documents_are_kept_with_the_queries_that_have_one(data):
    kept = np.zeros(data.document_count, dtype=bool)
    kept[data.offsets[0] : data.offsets[1]] = True
    kept[data.offsets[3] - 1] = True
    part = data.keep(kept)
    assert part.query_ids.tolist() == [data.query_ids[0], data.query_ids[2]]
    assert part.lengths.tolist() == [data.lengths[0], 1]
    assert (part.features == data.features[kept]).all()
    assert (part.grades == data.grades[kept]).all()


def test_one_query_may_be_taken_twice_and_none_at_all(data):
    assert data.take([1, 1]).features[:, 1].tolist() == [3, 3]
    assert len(data.take([])) == 0


def test_it_prints_as_what_it_is(data):
    assert repr(data) == "Dataset(3 queries, 5 documents, 2 features, grades 0 to 3)"
    single = Dataset.from_arrays([[1.0]], [1])
    assert repr(single) == "Dataset(1 query, 1 document, 1 feature, no grades)"


def test_grades_are_required_where_they_are_needed(data):
    assert data.require_grades() is data.grades
    with pytest.raises(DataError, match="no grades"):
        Dataset.from_arrays(X, QID).require_grades()


def test_documents_without_ids_are_named_by_their_row(data):
    assert data.ids_of_documents().tolist() == ["10", "11", "12", "13", "14"]
    assert Dataset.from_arrays(X, QID).ids_of_documents().tolist() == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("features", "qid", "options", "sentence"),
    [
        ([1.0, 2.0], [1, 1], {}, "features must be a matrix of documents by features, not of 1"),
        (X, QID[:3], {}, "qid has shape (3,), but there are 5 documents"),
        (np.empty((0, 2)), [], {}, "there are no documents"),
        ([[np.inf], [1.0]], [1, 1], {}, "row 0 of features holds an infinity"),
        (X, ["a", "b", "a", "c", "c"], {}, "query 'a' occurs in separate places; rows of one"),
        (X, QID, {"grades": [1, 2]}, "grades has shape (2,), but there are 5 documents"),
        (X, QID, {"grades": [0, 1, -1, 0, 0]}, "row 2 has grade -1; grades are 0 or more"),
        (X, QID, {"grades": [0, 1, np.nan, 0, 0]}, "row 2 has grade nan; grades are 0 or more"),
        (
            X,
            QID,
            {"grades": [0, 1, 5, 0, 0], "max_grade": 4},
            "row 2 has grade 5, above the declared maximum of 4",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(features, qid, options, sentence):
    with pytest.raises(DataError) as caught:
        Dataset.from_arrays(features, qid, **options)
    assert sentence in str(caught.value)
