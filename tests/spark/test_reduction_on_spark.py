"""Spark counts what DuckDB counts, row by row."""

import io
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import zstandard

from dualrank.data.log.read_log import read_log
from dualrank.data.log.saved import to_table
from dualrank.data.log.spark import SparkEngine, read_log_on_spark
from dualrank.errors import DataError

from ..data.log.conftest import dirty, long_table

CLEAN = [
    ("s1", "q1", "a", 1, 0),
    ("s1", "q1", "b", 2, 1),
    ("s2", "q2", "c", 1, 0),
    ("s3", "q1", "a", 1, 0),
    ("s3", "q1", "b", 2, 1),
]


def same(session, path, **options):
    """Both engines on one file: their logs, and what they say of it."""
    one = read_log(path, **options)
    other = read_log_on_spark(path, session=session, **options)
    bare = [to_table(log).replace_schema_metadata(None) for log in (one, other)]
    assert bare[0].equals(bare[1])
    assert one.reading == other.reading
    return one


def test_a_dirty_log_with_everything(spark, tmp_path):
    pq.write_table(dirty(), tmp_path / "log.parquet")
    log = same(
        spark,
        str(tmp_path / "log.parquet"),
        contexts=["device"],
        max_bad_share=1.0,
        max_clicks=2,
        max_client_share=0.2,
    )
    assert len(log.reading.problems) > 6
    assert log.reading.filtered["max_client_share"] >= 0
    assert set(log.columns) == {"device", "period"}


def test_lists_beyond_one_word_of_bits(spark, tmp_path):
    rows = [(s, "q", f"d{p}", p + 1, int((p + s) % 3 == 0)) for s in range(3) for p in range(130)]
    pq.write_table(long_table(rows), tmp_path / "log.parquet")
    assert same(spark, str(tmp_path / "log.parquet")).lists.depth == 130


def test_text_files(spark, tmp_path):
    pyarrow.csv.write_csv(long_table(CLEAN), tmp_path / "log.csv")
    assert same(spark, str(tmp_path / "log.csv")).sessions == 3


def test_names_are_those_of_files_and_folders_change_nothing(spark, tmp_path):
    folder = tmp_path / "d[1]"
    for path in (tmp_path / "d1" / "a1.parquet", folder / "a[1].parquet"):
        path.parent.mkdir()
        pq.write_table(long_table(CLEAN), path)
    assert same(spark, str(folder / "a[1].parquet")).sessions == 3
    assert same(spark, str(folder)).sessions == 3
    hive = tmp_path / "logs" / "doc_id=5" / "device=phone%20x"
    hive.mkdir(parents=True)
    pq.write_table(long_table(CLEAN), hive / "part.parquet")
    assert same(spark, str(tmp_path / "logs")).catalogue.doc_ids.tolist() == ["a", "b", "c"]
    log = same(spark, str(tmp_path / "logs"), contexts=["device"])
    assert log.column("device").names == ("phone x",)


def test_what_spark_cannot_read_is_named(spark, tmp_path):
    with pytest.raises(DataError, match=r"none\.parquet: Spark cannot read it"):
        read_log_on_spark(tmp_path / "none.parquet", session=spark)


def test_what_spark_refuses_to_plan_is_one_sentence(spark, tmp_path, capfd):
    days = pa.array([19_000] * len(CLEAN), pa.date32())
    table = long_table(CLEAN)
    table = table.set_column(table.column_names.index("position"), "position", days)
    pq.write_table(table, tmp_path / "log.parquet")
    with pytest.raises(DataError) as caught:
        read_log_on_spark(tmp_path / "log.parquet", session=spark)
    assert str(caught.value).startswith(f"{tmp_path / 'log.parquet'}: Spark cannot reduce this (")
    assert "position" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")
    with SparkEngine.on(spark, None) as engine:
        engine.open(str(tmp_path / "log.parquet"))
        with pytest.raises(DataError, match=r"log\.parquet: Spark cannot reduce this \("):
            engine.keep("sessions", "SELECT TRY_CAST(position AS DOUBLE) FROM log")


def test_the_yandex_log(spark, tmp_path):
    folder = os.environ.get("DUALRANK_DATA")
    if folder is None:
        pytest.skip("DUALRANK_DATA is not set")
    path = Path(folder) / "yandex_clicks" / "sessions.tsv.zst"
    with path.open("rb") as file:
        text = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), "utf-8")
        pages = [line.rstrip("\n").split("\t") for line in text][1:]
    rows = [
        (session, page[1], document, place, int(click))
        for session, page in enumerate(pages)
        for place, (document, click) in enumerate(
            zip(page[2].split(), page[3].split(), strict=True), 1
        )
    ]
    pq.write_table(long_table(rows), tmp_path / "yandex.parquet")
    log = same(spark, str(tmp_path / "yandex.parquet"))
    assert (log.sessions, len(log.lists)) == (56_477, 1_505)


def test_events_are_summed_alike(spark, tmp_path):
    table = dirty()
    luck = np.random.default_rng(1)
    amounts = [None if luck.random() < 0.5 else round(luck.exponential(9), 4) for _ in table[0]]
    table = table.append_column("dwell_time", pa.array(amounts, pa.float64()))
    bought = pa.array(luck.random(table.num_rows) < 0.1)
    pq.write_table(table.append_column("purchase", bought), tmp_path / "log.parquet")
    log = same(
        spark,
        str(tmp_path / "log.parquet"),
        contexts=["device"],
        event_kinds=["dwell_time", "purchase"],
        max_bad_share=1.0,
    )
    assert log.event("purchase").sum() > 0
