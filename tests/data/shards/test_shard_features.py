"""Features are joined to shards in the engine, or refused in a sentence."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.data.features import read_features
from dualrank.data.log.read_log import read_log
from dualrank.data.log.reading_report import BadLogError
from dualrank.data.shards.reduce_to_shards import reduce_to_shards
from dualrank.data.shards.shard_writing import ShardWriter
from dualrank.data.shards.sharded_log import shard_of
from dualrank.data.shards.splitting import write_shards
from dualrank.errors import DataError

from .conftest import OPTIONS, features_of_documents, files_of


def test_lists_without_features_are_left_out_and_counted(files, tmp_path):
    columns = features_of_documents()
    rows = [i for i, document in enumerate(columns["doc_id"]) if document != "d3"]
    table = pa.table({name: [values[i] for i in rows] for name, values in columns.items()})
    pq.write_table(table, tmp_path / "features.parquet")
    log, given = files / "log.parquet", tmp_path / "features.parquet"
    with pytest.raises(BadLogError, match="document without features"):
        reduce_to_shards(log, tmp_path / "log", 4, given)
    assert not (tmp_path / "log").exists()
    sharded = reduce_to_shards(log, tmp_path / "log", 4, given, max_bad_share=1)
    data = read_features(given)
    plain = read_log(log, data, max_bad_share=1)
    assert sharded.sessions == plain.sessions
    counts = {problem.kind: (problem.count, problem.clicked) for problem in plain.reading.problems}
    found = {problem.kind: (problem.count, problem.clicked) for problem in sharded.reading.problems}
    assert found == counts
    assert sharded.reading.bad == plain.reading.bad
    assert files_of(write_shards(plain, tmp_path / "cut", 4, data)) == files_of(sharded)


def write_features(path, **changed):
    columns = features_of_documents()
    columns.update({name: change(columns) for name, change in changed.items()})
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"doc_id": lambda c: ["d0" if d == "d1" else d for d in c["doc_id"]]},
            "document 'd0' of query 'q 0' stands there twice; expected one row of features",
        ),
        (
            {"age": lambda c: np.where(np.arange(len(c["age"])) == 3, np.inf, c["age"])},
            r"age of document .* of query .* is inf; features are finite",
        ),
        ({"doc_id": lambda c: [None, *c["doc_id"][1:]]}, "1 rows have no doc_id"),
        ({"query_id": lambda c: [np.nan, *range(len(c["age"]) - 1)]}, "1 rows have no query_id"),
        ({"age": lambda c: ["old"] * len(c["age"])}, "column 'age' holds string; features are"),
    ],
)
def test_features_that_are_none_are_refused(files, tmp_path, changed, sentence):
    given = write_features(tmp_path / "f.parquet", **changed)
    with pytest.raises(DataError, match=sentence):
        reduce_to_shards(files / "log.parquet", tmp_path / "log", 4, given)
    assert not (tmp_path / "log").exists()


def test_features_as_lists_and_an_index_that_is_none(files, sharded, tmp_path, caplog):
    columns = features_of_documents()
    lists = np.stack([columns.pop(name) for name in ("age", "shard", "bm25")], axis=1)
    pq.write_table(pa.table({**columns, "features": lists.tolist()}), tmp_path / "lists.parquet")
    log = files / "log.parquet"
    other = reduce_to_shards(log, tmp_path / "log", 4, tmp_path / "lists.parquet", **OPTIONS)
    assert other.feature_names is None
    assert files_of(other) == files_of(sharded)
    given = write_features(tmp_path / "f.parquet", index=lambda c: list(range(len(c["age"]))))
    numbered = reduce_to_shards(log, tmp_path / "numbered", 4, given, **OPTIONS)
    assert numbered.feature_names == ("age", "shard", "bm25")
    assert "index" in caplog.text
    (tmp_path / "f.txt").write_text("1 qid:1 1:0.5\n")
    with pytest.raises(DataError, match=r"f.txt: features that go into shards are Parquet files"):
        reduce_to_shards(log, tmp_path / "letor", 4, tmp_path / "f.txt")


@pytest.mark.parametrize("rows", [200, 389])  # of the second, the last file has one row
def test_a_number_of_rows_that_begins_anew_in_every_file_is_no_feature(
    files, sharded, tmp_path, caplog, rows
):
    table = pa.table(features_of_documents())
    parts = table.slice(0, rows), table.slice(rows)
    (tmp_path / "f").mkdir()
    for number, part in enumerate(parts):
        numbered = part.append_column("index", pa.array(range(len(part)), pa.int64()))
        pq.write_table(numbered, tmp_path / "f" / f"{number}.parquet")
    args = files / "log.parquet", tmp_path / "numbered", 4, tmp_path / "f"
    found = reduce_to_shards(*args, **OPTIONS)
    assert "column 'index' is left out" in caplog.text
    assert found.feature_names == ("age", "shard", "bm25")
    assert files_of(found) == files_of(sharded)


def test_a_column_called_index_that_repeats_itself_in_a_file_is_a_feature(files, tmp_path):
    table = pa.table(features_of_documents())
    (tmp_path / "f").mkdir()
    for number, values in enumerate((range(200), [7] * 190)):
        part = table.slice(200 * number, len(values)).append_column("index", pa.array(values))
        pq.write_table(part, tmp_path / "f" / f"{number}.parquet")
    found = reduce_to_shards(files / "log.parquet", tmp_path / "log", 1, tmp_path / "f")
    assert found.feature_names == ("age", "shard", "bm25", "index")


def test_features_of_other_documents_are_refused_before_a_shard_is_written(
    files, tmp_path, monkeypatch
):
    monkeypatch.setattr(ShardWriter, "add", None)
    given = write_features(
        tmp_path / "f.parquet", doc_id=lambda c: [name[1:] for name in c["doc_id"]]
    )
    sentence = (
        "f.parquet: no document of the log has features; the log shows document 'd0' of query "
        "'q 0', the features begin with document '0' of query 'q 0': the ids must be written alike"
    )
    with pytest.raises(DataError, match=sentence):
        reduce_to_shards(files / "log.parquet", tmp_path / "log", 2, given)


@pytest.mark.parametrize("where", [0, 1])
@pytest.mark.parametrize("other", [None, [], [1.0]])
def test_lists_of_features_of_another_length_are_refused(files, tmp_path, other, where):
    columns = features_of_documents()
    ids = {name: columns[name] for name in ("query_id", "doc_id")}
    lists = [other if shard_of(query, 2) == where else [1.0, 2.0] for query in ids["query_id"]]
    pq.write_table(pa.table({**ids, "features": lists}), tmp_path / "f.parquet")
    least = len(other or ())
    with pytest.raises(DataError, match=f"f.parquet: documents have {least} to 2 features"):
        reduce_to_shards(files / "log.parquet", tmp_path / "log", 2, tmp_path / "f.parquet")
