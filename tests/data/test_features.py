"""Features from Parquet, by name and place, or refused with the document that is wrong."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.data.dataset import Dataset
from dualrank.data.features import read_features
from dualrank.data.letor.writer import write_letor
from dualrank.errors import DataError

ROWS = {
    "query_id": ["q2", "q1", "q2", "q1"],
    "doc_id": ["a", "a", "b", "c"],
    "bm25": [0.5, 1.5, 2.5, 3.5],
    "price": [1, 2, 3, 4],
}


def written(tmp_path, **changed):
    rows = {name: values for name, values in {**ROWS, **changed}.items() if values is not None}
    pq.write_table(pa.table(rows), tmp_path / "features.parquet")
    return tmp_path / "features.parquet"


def test_columns_become_features_and_rows_of_a_query_come_together(tmp_path):
    data = read_features(written(tmp_path, grade=[0, 1, 2, 3]))
    assert data.query_ids.tolist() == ["q2", "q1"]
    assert data.ids_of_documents().tolist() == ["a", "b", "a", "c"]
    assert data.features.tolist() == [[0.5, 1], [2.5, 3], [1.5, 2], [3.5, 4]]
    assert data.require_grades().tolist() == [0, 2, 1, 3]
    assert data.feature_names == ("bm25", "price")


def test_a_list_column_holds_them_all(tmp_path):
    path = written(tmp_path, bm25=None, price=None, features=[[1.0, 2], [3, 4], [5, 6], [7, 8]])
    data = read_features(path, count=2)
    assert data.features.tolist() == [[1, 2], [5, 6], [3, 4], [7, 8]]
    assert data.feature_names is None


def test_a_folder_of_files_and_ids_that_are_numbers(tmp_path):
    for number in range(2):
        table = pa.table({"query_id": [7, 8], "doc_id": [number, number], "x": [1.0, 2.0]})
        pq.write_table(table, tmp_path / f"part-{number}.parquet")
    data = read_features(tmp_path)
    assert data.query_ids.tolist() == ["7", "8"]
    assert data.lengths.tolist() == [2, 2]


def test_features_are_picked_by_the_names_that_a_model_knows(tmp_path):
    data = read_features(written(tmp_path, extra=[0, 0, 0, 0]), names=("price", "bm25"))
    assert data.features[0].tolist() == [1, 0.5]
    with pytest.raises(DataError, match="feature 'age' is missing"):
        read_features(written(tmp_path), names=("price", "age"))


def test_letor_text_goes_on_being_read(tmp_path):
    data = Dataset.from_arrays([[0.5, 1.0]], ["q"], grades=[1], doc_ids=["d"])
    write_letor(data, tmp_path / "features.txt")
    again = read_features(tmp_path / "features.txt", count=2)
    assert again.features.tolist() == data.features.tolist()


def test_whole_numbers_that_became_floats_are_written_whole(tmp_path):
    path = written(tmp_path, query_id=[2.0, 1.0, 2.0, 1.0], doc_id=[1.0, 1.0, 2.5, 3.0])
    data = read_features(path)
    assert data.query_ids.tolist() == ["2", "1"]
    assert data.ids_of_documents().tolist() == ["1", "2.5", "1", "3"]
    assert data.source == str(path)


@pytest.mark.parametrize("name", ["features.csv", "features.jsonl", "features.tsv.gz"])
def test_other_text_is_not_taken_for_letor(tmp_path, name):
    (tmp_path / name).write_text("query_id,doc_id,x\n")
    with pytest.raises(DataError, match="features are Parquet files or LETOR text, not"):
        read_features(tmp_path / name)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"query_id": None}, "column 'query_id' is missing; features are keyed by query_id and"),
        ({"doc_id": ["a", None, "b", "c"]}, "row 1 has no doc_id"),
        ({"doc_id": ["a", "a", "a", "c"]}, "document 'a' of query 'q2' stands there twice"),
        (
            {"bm25": [0.5, float("-inf"), 1, float("inf")]},
            "bm25 of document 'a' of query 'q1' is -inf; features are finite, or missing (2 such",
        ),
        ({"price": ["1", "2", "3", "4"]}, "column 'price' holds string; features are numbers"),
        ({"bm25": None, "price": None}, "there are no features beside query_id and doc_id"),
        ({"features": [[1], [1, 2], [1], [1]]}, "documents have 1 to 2 features; expected equally"),
        ({"features": [1, 2, 3, 4]}, "column 'features' holds int64; expected lists"),
        ({"grade": [0, -1, 1, 1]}, "grades are 0 or more"),
    ],
)
def test_what_is_wrong_is_said_with_the_document(tmp_path, changed, words):
    with pytest.raises(DataError) as caught:
        read_features(written(tmp_path, **changed))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_another_number_of_features_is_refused(tmp_path):
    with pytest.raises(DataError, match="2 features; expected 3"):
        read_features(written(tmp_path), count=3)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(DataError, match=r"broken\.parquet: not readable as Parquet"):
        read_features(tmp_path / "broken.parquet")


def test_missing_values_are_read_as_nan_whether_null_or_nan(tmp_path):
    path = written(tmp_path, bm25=[0.5, float("nan"), 1, 2], price=[1, None, 3, 4])
    data = read_features(path)
    assert np.isnan(data.features).sum() == 2
    filled = data.filled().features
    np.testing.assert_allclose(filled[np.isnan(data.features)], [3.5 / 3, 8 / 3], rtol=1e-6)
    np.testing.assert_array_equal(
        filled[~np.isnan(data.features)], data.features[~np.isnan(data.features)]
    )
