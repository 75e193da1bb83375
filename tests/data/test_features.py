"""Features from Parquet, by name and place, or refused with the document that is wrong."""

import io
import logging
import random

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.data import memory_limits
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
        (
            {"query_id": None},
            "column 'query_id' is missing; features are keyed by columns query_id and",
        ),
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
    assert str(caught.value).startswith(str(tmp_path))
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


def test_the_index_of_pandas_is_no_feature_and_is_named_once(tmp_path, caplog):
    frame = pd.DataFrame({**ROWS, "extra": [1, 2, 3, 4]})
    for number in range(2):
        part = frame.assign(query_id=[f"{q}{number}" for q in frame["query_id"]])
        part[part["price"] != 2].to_parquet(tmp_path / f"{number}.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "0.parquet").names
    with caplog.at_level(logging.WARNING):
        data = read_features(tmp_path)
    assert data.feature_names == ("bm25", "price", "extra")
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path}: column '__index_level_0__' is left out: an index of rows is no feature, and "
        "pandas writes none with index=False"
    ]


def test_an_index_is_known_by_its_name_where_pandas_did_not_say_so(tmp_path, caplog):
    path = written(tmp_path, __index_level_0__=[5, 3, 9, 1])
    assert read_features(path).feature_names == ("bm25", "price")
    assert "'__index_level_0__' is left out" in caplog.text


@pytest.mark.parametrize(
    "numbered",
    [
        lambda frame: frame.reset_index(),
        lambda frame: pd.read_csv(io.StringIO(frame.to_csv())),
        lambda frame: pl.DataFrame(frame).with_row_index(),
        lambda frame: frame.set_axis(pd.Index(list("wxyz"), name="url")),
    ],
    ids=["reset_index", "csv", "polars", "a named index"],
)
def test_an_index_that_was_made_a_column_is_no_feature(numbered, caplog):
    data = read_features(numbered(pd.DataFrame(ROWS)))
    assert data.feature_names == ("bm25", "price")
    assert "left out" in caplog.text


def test_a_column_that_is_called_index_and_measures_something_stays(tmp_path, caplog):
    data = read_features(written(tmp_path, index=[3, 3, 1, 3], level_1=[0.5, 1.5, 2.5, 3.5]))
    assert data.feature_names == ("bm25", "price", "index", "level_1")
    assert not caplog.records


def test_an_index_of_queries_and_documents_is_kept_as_keys(tmp_path, caplog):
    pd.DataFrame(ROWS).set_index(["query_id", "doc_id"]).to_parquet(tmp_path / "f.parquet")
    data = read_features(tmp_path / "f.parquet")
    assert data.pairs() == [("q2", "a"), ("q2", "b"), ("q1", "a"), ("q1", "c")]
    assert not caplog.records


def test_a_model_that_knows_an_index_by_name_gets_it(tmp_path, caplog):
    path = written(tmp_path, __index_level_0__=[5, 3, 9, 1])
    data = read_features(path, names=("__index_level_0__", "price"))
    assert data.features[0].tolist() == [5, 1]
    assert not caplog.records


def test_names_of_folders_say_nothing_about_documents(tmp_path):
    folder = tmp_path / "doc_id=5" / "query_id=7"
    folder.mkdir(parents=True)
    pq.write_table(pa.table(ROWS), folder / "part.parquet")
    for path in (tmp_path, folder, folder / "part.parquet"):
        assert read_features(path).pairs()[0] == ("q2", "a")
    pq.write_table(pa.table(ROWS).drop_columns(["query_id"]), folder / "part.parquet")
    with pytest.raises(DataError, match=r"'query_id' is missing.*no names of folders"):
        read_features(tmp_path)


def test_files_may_have_other_types_and_other_columns(tmp_path):
    pq.write_table(pa.table({**ROWS, "age": [1, 2, 3, 4]}), tmp_path / "a.parquet")
    other = {**ROWS, "query_id": ["x"] * 4, "doc_id": [1.0, 2.0, 3.0, 4.0], "price": [0.5] * 4}
    pq.write_table(pa.table(other), tmp_path / "b.parquet")
    data = read_features(tmp_path)
    assert data.feature_names == ("bm25", "price", "age")
    assert data.pairs()[-1] == ("x", "4")
    assert np.isnan(data.features[4:, 2]).all()


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["1.5", "2.5", "3.5", "4.5"]).cast(pa.decimal128(10, 2)),
        pa.array([1.5, 2.5, 3.5, 4.5]).dictionary_encode(),
        pa.array(np.array([1.5, 2.5, 3.5, 4.5], np.float16)),
    ],
    ids=lambda column: str(column.type),
)
def test_numbers_of_every_kind_are_features(column):
    data = read_features(pa.table({**ROWS, "bm25": column}))
    assert sorted(data.features[:, 0].tolist()) == [1.5, 2.5, 3.5, 4.5]


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
)
def test_ids_of_every_kind_of_text_are_read(kind):
    column = pa.array(ROWS["query_id"])
    column = column.dictionary_encode() if pa.types.is_dictionary(kind) else column.cast(kind)
    assert read_features(pa.table({**ROWS, "query_id": column})).query_ids.tolist() == ["q2", "q1"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"bm25": pa.array([0, 1, 2, 3], pa.timestamp("s"))}, "'bm25' holds timestamp"),
        ({"bm25": [{"a": 1}] * 4}, "'bm25' holds struct<a: int64>; features are numbers"),
        ({"doc_id": [[1], [2], [3], [4]]}, "int64>; ids are text or numbers"),
        ({"doc_id": [b"\xff", b"a", b"b", b"c"]}, "'doc_id' holds what is no text"),
        ({"doc_id": [1.0, float("nan"), 2.0, 3.0]}, "row 1 has no doc_id"),
        ({"features": [[["a"]]] * 4}, "column 'features' holds list"),
        ({"bm25": [1e300, 0.0, 0.0, 0.0]}, "bm25 of document 'a' of query 'q2' is inf"),
    ],
)
def test_types_that_are_no_features_are_named_in_files_and_frames(tmp_path, changed, words):
    table = pa.table({**ROWS, **changed})
    pq.write_table(table, tmp_path / "features.parquet")
    for given in (table, tmp_path / "features.parquet"):
        with pytest.raises(DataError) as caught:
            read_features(given)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


def test_more_rows_than_fit_into_memory_are_refused_before_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_limits, "memory_of_machine", lambda: 10**6)
    rows = 2 * 10**5
    table = pa.table({"query_id": ["q"] * rows, "doc_id": ["d"] * rows, "x": np.zeros(rows)})
    pq.write_table(table, tmp_path / "bomb.parquet")
    assert (tmp_path / "bomb.parquet").stat().st_size < 10_000
    monkeypatch.setattr(pq.ParquetFile, "read", None)
    with pytest.raises(DataError, match=r"bomb\.parquet: its values would take .* of memory"):
        read_features(tmp_path / "bomb.parquet")


def test_one_long_id_does_not_take_all_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_limits, "memory_of_machine", lambda: 10**9)
    rows = 1_000
    names = ["x" * 10**6, *(str(n) for n in range(rows - 1))]
    table = pa.table({"query_id": ["q"] * rows, "doc_id": names, "x": np.zeros(rows)})
    pq.write_table(table, tmp_path / "long.parquet")
    with pytest.raises(DataError, match=r"doc_id of 1,000,000 characters would take 4\.0 GB"):
        read_features(tmp_path / "long.parquet")


@pytest.mark.parametrize("kind", ["parquet", "letor"])
def test_damaged_files_are_refused_or_read(tmp_path, kind):
    path = tmp_path / ("features.parquet" if kind == "parquet" else "features.txt")
    if kind == "parquet":
        pq.write_table(pa.table(ROWS), path, compression="none")
    else:
        write_letor(Dataset.from_arrays([[0.5, 1.0]] * 4, ["q"] * 4, [0, 1, 0, 2]), path)
    whole, draw, said = path.read_bytes(), random.Random(0), []
    for number in range(80):
        damaged = bytearray(whole)
        for _ in range(draw.choice([1, 1, 4])):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        if number % 5 == 0:
            del damaged[draw.randrange(len(damaged)) :]
        target = tmp_path / f"{number}{path.suffix}"
        target.write_bytes(damaged)
        try:
            assert not np.isinf(read_features(target).features).any()
        except DataError as error:
            said.append(str(error))
    assert len(said) > 20
    assert not any("\n" in sentence for sentence in said)
