"""Spark ranks as dualrank does, on executors that have neither dualrank nor torch."""

import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.data.features import read_features
from dualrank.data.runs import read_run
from dualrank.errors import DataError, SettingsError
from dualrank.learning.rank_features import rank_features
from dualrank.learning.rank_on_spark import rank_on_spark

from ..learning.test_rank_features import NAMES, model_of, table, trees

REFUSED = "('dualrank', 'torch', 'numba', 'scipy', 'pandas', 'safetensors', 'lightgbm')"
BARE = f"""
import sys

class Refuse:
    def find_spec(self, name, *_):
        if name.split(".")[0] in {REFUSED}:
            raise ModuleNotFoundError(f"No module named {{name!r}}: executors are bare")

sys.meta_path.insert(0, Refuse())
"""


@pytest.fixture(scope="module", autouse=True)
def bare_executors(spark, tmp_path_factory):
    """The Python of executors knows next to nothing."""
    bare = tmp_path_factory.mktemp("bare")
    (bare / "sitecustomize.py").write_text(BARE)
    python = bare / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{bare}:$PYTHONPATH" exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark.sparkContext, "pythonExec", str(python))
        yield


def test_executors_are_bare(spark):
    def looked(batches):
        try:
            import dualrank  # noqa: F401
        except ModuleNotFoundError:
            yield from batches

    frame = spark.range(3).mapInArrow(looked, "id long")
    assert frame.count() == 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("features")
    for number, seed in enumerate((0, 1)):
        rows = table(600, seed, queries=25)
        names = pa.array([f"d{number}-{name}" for name in rows["doc_id"].to_pylist()])
        pq.write_table(rows.set_column(1, "doc_id", names), root / f"{number}.parquet")
    return root


def test_scores_and_ranks_are_those_of_one_machine(spark, folder, tmp_path):
    data = read_features(folder)
    for model in (model_of(), trees()):
        found = rank_on_spark(model, folder, tmp_path / "run", session=spark)
        alone = rank_features(model, folder, tmp_path / "alone.parquet")
        assert found == alone
        scores = [read_run(tmp_path / name, data) for name in ("run", "alone.parquet")]
        assert np.allclose(*scores, rtol=1e-6, atol=1e-6)
        run = pa.concat_tables(map(pq.read_table, sorted((tmp_path / "run").glob("*.parquet"))))
        expected = pq.read_table(tmp_path / "alone.parquet")
        assert run.schema.names == expected.schema.names
        assert run.schema.types == expected.schema.types
        rows = run.to_pylist()
        in_order = sorted(rows, key=lambda row: (row["query_id"], -row["score"], row["doc_id"]))
        assert in_order == sorted(rows, key=lambda row: (row["query_id"], row["rank"]))
        assert [row["rank"] for row in rows if row["query_id"] == "q1"] == list(
            range(1, 1 + sum(row["query_id"] == "q1" for row in rows))
        ), "rows of a query stand together, best first"


def test_lists_numbers_and_tables_are_ranked_too(spark, folder, tmp_path):
    rows = read_features(folder)
    columns = {
        "query_id": rows.query_of_document.astype(float),
        "doc_id": np.arange(rows.document_count),
        "features": rows.features.astype(float).tolist(),
    }
    pq.write_table(pa.table(columns), tmp_path / "f.parquet")
    spark.read.parquet(str(tmp_path / "f.parquet")).createOrReplaceTempView("my_features")
    data = read_features(tmp_path / "f.parquet")
    for name in (tmp_path / "f.parquet", "my_features"):
        found = rank_on_spark(trees(None), name, tmp_path / "run", session=spark)
        assert (found.queries, found.documents) == (25, 1_200)
        scores = read_run(tmp_path / "run", data)
        assert np.array_equal(scores.astype(np.float32), trees(None).predict(data))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"b": [0.5, float("inf")]}, "b of document 'd2' of query 'q' is infinite; features are"),
        ({"a": [None, 1.0]}, "a of document 'd1' of query 'q' is missing; a ranker of kind dnn"),
        ({"doc_id": ["d1", "d1"]}, "document 'd1' of query 'q' stands there twice; expected one"),
        ({"doc_id": [None, "d1"]}, "a row has no query_id, or no doc_id"),
        ({"c": ["x", "y"]}, "column 'c' holds string; features are numbers"),
        ({"c": None}, "feature 'c' is missing"),
    ],
)
def test_what_cannot_be_ranked_is_one_sentence(spark, tmp_path, capfd, changed, said):
    rows = {"query_id": ["q"] * 2, "doc_id": ["d1", "d2"], **{name: [0.5, 1.0] for name in NAMES}}
    rows = {name: value for name, value in {**rows, **changed}.items() if value is not None}
    pq.write_table(pa.table(rows), tmp_path / "f.parquet")
    with pytest.raises(DataError) as caught:
        rank_on_spark(model_of(), tmp_path / "f.parquet", tmp_path / "run", session=spark)
    assert str(caught.value).startswith(f"{tmp_path / 'f.parquet'}: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "QueryContextLogger" not in "".join(capfd.readouterr())
    assert [path.name for path in tmp_path.iterdir()] == ["f.parquet"]


def test_what_stands_there_stays(spark, folder, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").touch()
    (tmp_path / "file").touch()
    for name, said in (
        ("notes", "holds something else than a run"),
        ("file", "Spark writes a folder, and this is a file"),
        ("run.csv", "Spark writes a folder of Parquet files"),
    ):
        with pytest.raises(SettingsError, match=said):
            rank_on_spark(trees(), folder, tmp_path / name, session=spark)
    assert (tmp_path / "notes" / "mine.txt").exists()
    with pytest.raises(DataError, match="nowhere: Spark cannot read it"):
        rank_on_spark(trees(), tmp_path / "nowhere", tmp_path / "run", session=spark)


def test_a_log_in_shards_is_not_for_spark(spark, tmp_path):
    (tmp_path / "shards.json").write_text("{}")
    with pytest.raises(SettingsError, match="a log in shards, which Spark does not read; rank it"):
        rank_on_spark(trees(), tmp_path, tmp_path / "run", session=spark)


def test_where_there_are_no_documents_nothing_is_written(spark, tmp_path):
    pq.write_table(table(5)[:0], tmp_path / "f.parquet")
    for out in (str(tmp_path / "run"), (tmp_path / "run").as_uri()):
        with pytest.raises(DataError, match=r"f\.parquet: there are no documents"):
            rank_on_spark(trees(), tmp_path / "f.parquet", out, session=spark)
    assert [path.name for path in tmp_path.iterdir()] == ["f.parquet"]


def test_decimals_are_written_as_on_one_machine_and_no_model_is_left(spark, tmp_path):
    rows = table(5)
    numbers = pa.array(range(5), pa.int64()).cast(pa.decimal128(21, 2))
    pq.write_table(rows.set_column(1, "doc_id", numbers), tmp_path / "f.parquet")
    before = sorted(os.listdir(spark.sparkContext._temp_dir))
    rank_on_spark(trees(), tmp_path / "f.parquet", tmp_path / "run", session=spark)
    assert sorted(os.listdir(spark.sparkContext._temp_dir)) == before
    rank_features(trees(), tmp_path / "f.parquet", tmp_path / "alone.parquet")
    found, alone = (
        sorted(pq.read_table(tmp_path / name)["doc_id"].to_pylist())
        for name in ("run", "alone.parquet")
    )
    assert found == alone == [f"{number}.00" for number in range(5)]
