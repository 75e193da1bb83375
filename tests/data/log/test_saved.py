"""A reduced log that was saved is the same log."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.data.dataset import Dataset
from dualrank.data.log.read_log import read_log
from dualrank.data.log.reading_report import BadLogError
from dualrank.data.log.saved import KEY, write_log
from dualrank.errors import DataError, SettingsError

from .conftest import long_table
from .reference import happenings
from .test_days import equal as equal_but_for_examples


def equal(one, other):
    equal_but_for_examples(one, other)
    assert one.reading == other.reading


def test_a_saved_log_reads_back_with_its_contexts_and_its_account(tmp_path, clean):
    rows = [*clean, ("s4", "q1", "a", 2, 0)]
    table = long_table(rows)
    table = table.append_column("device", pa.array([f"device {row[0]}" for row in rows]))
    table = table.append_column("timestamp", pa.array([int(row[0][1]) for row in rows]))
    log = read_log(table, contexts=["device"], max_bad_share=0.5)
    path = tmp_path / "reduced.parquet"
    write_log(log, path)
    equal(read_log(path), log)
    equal(read_log(str(path), contexts=["device"]), log)
    with pytest.raises(DataError, match="no column 'layout'"):
        read_log(path, contexts=["layout"])


def test_a_saved_log_points_to_features_as_the_log_itself_does(tmp_path, clean):
    data = Dataset.from_arrays(
        np.zeros((4, 1)), ["q2", "q1", "q1", "q0"], doc_ids=["c", "b", "a", "z"]
    )
    write_log(read_log(long_table(clean)), tmp_path / "reduced.parquet")
    one, other = (read_log(log, data) for log in (tmp_path / "reduced.parquet", long_table(clean)))
    equal(one, other)
    assert happenings(one) == happenings(read_log(long_table(clean)))
    without = data.take([1, 2])
    with pytest.raises(BadLogError, match="document without features"):
        read_log(tmp_path / "reduced.parquet", without)


def test_a_log_is_reduced_once(tmp_path, clean):
    path = tmp_path / "reduced.parquet"
    write_log(read_log(long_table(clean)), path)
    for option in ({"max_clicks": 3}, {"columns": {"doc_id": "x"}}, {"first_position": 0}):
        with pytest.raises(SettingsError, match="this log is reduced already"):
            read_log(path, **option)
    write_log(read_log(long_table(clean)), tmp_path / "another.parquet")
    with pytest.raises(DataError, match=r"another\.parquet is a reduced log among 2 files"):
        read_log(tmp_path)


def test_a_damaged_or_newer_file_is_named(tmp_path, clean):
    path = tmp_path / "reduced.parquet"
    write_log(read_log(long_table(clean)), path)
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({KEY: b'{"format": 9}'}), path)
    with pytest.raises(DataError, match="a reduced log of format 9; this version reads 1"):
        read_log(path)
    kept = {KEY: table.schema.metadata[KEY]}
    pq.write_table(table.drop_columns(["happened"]).replace_schema_metadata(kept), path)
    with pytest.raises(DataError, match=r"reduced\.parquet: damaged: not a reduced log"):
        read_log(path)


def test_a_file_that_becomes_far_more_than_it_is_is_refused(tmp_path):
    lists = 6_000
    doc_ids = pa.array([[f"d{place}" for place in range(1_000)]]).take(pa.array([0] * lists))
    happened = pa.array([[{"clicks": [1], "sessions": 1}]]).take(pa.array([0] * lists))
    note = json.dumps({"format": 1, "columns": {}, "events": [], "reading": None})
    table = pa.table({"query_id": ["q"] * lists, "doc_ids": doc_ids, "happened": happened})
    path = tmp_path / "log.parquet"
    pq.write_table(table.replace_schema_metadata({KEY: note}), path, compression="zstd")
    with pytest.raises(DataError, match="unpacks to far more"):
        read_log(path)
