"""Any log, however dirty, is counted as a plain Python loop would count it."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dualrank.data.click_log import PERIOD, ClickLog
from dualrank.data.log.read_log import read_log
from dualrank.errors import DataError, SettingsError

from .conftest import COLUMNS, long_table
from .reference import happenings, reduce_plainly

some = lambda *values: st.sampled_from(values)  # noqa: E731
dirty_rows = st.lists(
    st.tuples(
        some(1, 2, 3, None),
        some("q1", "q1", "q1", "q2", None),
        some("a", "b", "c", "d", None),
        some(1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 0.0, 1.5, 2000.0, None),
        some(0, 1, 0, 1, 0, 1, 2, None),
    ),
    min_size=1,
    max_size=14,
)


@st.composite
def clean_rows(draw):
    """Sessions without a flaw."""
    rows = []
    for session in range(draw(st.integers(1, 8))):
        query = draw(some("q1", "q2"))
        documents = draw(st.permutations("abc"))[: draw(st.integers(1, 3))]
        clicks = draw(st.tuples(*[st.integers(0, 1)] * len(documents)))
        for place, (document, click) in enumerate(zip(documents, clicks, strict=True), 1):
            rows.append((session, query, document, float(place), click))
    return rows


def schema():
    kinds = (pa.int64(), pa.string(), pa.string(), pa.float64(), pa.int8())
    return pa.schema(list(zip(COLUMNS, kinds, strict=True)))


def typed(rows):
    return long_table(rows).cast(schema()) if rows else schema().empty_table()


@settings(max_examples=12, deadline=None)
@given(dirty_rows)
def test_a_dirty_log_is_counted_as_a_plain_loop_counts_it(rows):
    expected, problems = reduce_plainly(rows)
    if not expected:
        with pytest.raises(DataError, match="none of its"):
            read_log(typed(rows), max_bad_share=1.0)
        return
    log = read_log(typed(rows), max_bad_share=1.0)
    assert happenings(log) == expected
    assert {p.kind: p.count for p in log.reading.problems} == dict(problems)
    assert log.reading.kept == log.sessions == sum(expected.values())
    assert log.reading.rows == len(rows)


@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(clean_rows(), st.randoms(), st.integers(1, 3))
def test_neither_the_order_of_rows_nor_the_split_over_files_matters(tmp_path, rows, luck, files):
    expected, _ = reduce_plainly(rows)
    whole = read_log(typed(rows))
    assert happenings(whole) == expected

    luck.shuffle(rows)
    for old in tmp_path.glob("*.parquet"):
        old.unlink()
    for number in range(files):
        part = tmp_path / f"part-{number}.parquet"
        pq.write_table(typed(rows[number::files]), part)
    for split in (read_log(tmp_path), read_log(str(tmp_path / "part-*.parquet"))):
        for name in ("list_of", "clicks", "counts"):
            assert np.array_equal(getattr(split, name), getattr(whole, name))
        assert np.array_equal(split.lists.documents, whole.lists.documents)
        assert np.array_equal(split.catalogue.doc_ids, whole.catalogue.doc_ids)


def write(table, path):
    """A table in the format that the name says."""
    text = path.suffixes[0]
    if text == ".parquet":
        pq.write_table(table, path)
        return
    plain = path.with_name("plain")
    if text == ".csv":
        pyarrow.csv.write_csv(table, plain)
    else:
        plain.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    content = plain.read_bytes()
    plain.unlink()
    content = gzip.compress(content) if path.suffix == ".gz" else content
    path.write_bytes(zstandard.compress(content) if path.suffix == ".zst" else content)


@pytest.mark.parametrize(
    "name",
    [
        "log.parquet",
        "log.csv",
        "log.csv.gz",
        "log.csv.zst",
        "log.jsonl",
        "log.jsonl.gz",
        "log.ndjson.zst",
    ],
)
def test_every_format_reads_alike_and_ids_stay_as_they_are_written(tmp_path, clean, name):
    rows = [(s, "2024-01-01", f"00{d}" if d != "a" else "7.0", p, c) for s, _, d, p, c in clean]
    write(long_table(rows), tmp_path / name)
    log = read_log(tmp_path / name)
    assert happenings(log) == {
        ("2024-01-01", ("7.0", "00b"), (False, True)): 2,
        ("2024-01-01", ("00c",), (False,)): 1,
    }
    assert log.reading.rows == 5


def test_files_may_differ_in_the_order_and_type_of_columns(tmp_path, clean):
    first, second = long_table(clean[:3]), long_table([(4, *clean[0][1:])])
    pq.write_table(first, tmp_path / "1.parquet")
    pq.write_table(second.select(second.column_names[::-1]), tmp_path / "2.parquet")
    (tmp_path / "_SUCCESS").touch()
    assert read_log(tmp_path).sessions == 3
    assert read_log([tmp_path / "1.parquet", tmp_path / "2.parquet"]).sessions == 3


def test_frames_of_pandas_and_polars_are_taken(clean):
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    table = long_table(clean)
    expected = happenings(read_log(table))
    assert happenings(ClickLog.from_frame(pandas.DataFrame(table.to_pydict()))) == expected
    assert happenings(ClickLog.from_frame(polars.DataFrame(table.to_pydict()))) == expected


def test_another_sign_may_stand_in_the_place_of_clicks(clean):
    """What was bought, in a log that also has what was clicked."""
    table = long_table(clean)
    clicked = np.asarray(table["clicked"]).astype(int)
    bought = clicked * (np.arange(len(clicked)) % 2)
    both = table.append_column("bought", pa.array(bought))
    found = read_log(both, columns={"clicked": "bought"})
    instead = table.set_column(table.column_names.index("clicked"), "clicked", pa.array(bought))
    assert 0 < bought.sum() < clicked.sum()
    assert happenings(found) == happenings(read_log(instead))


def test_columns_of_other_names_are_mapped(clean):
    table = long_table(clean, ("visit", "query_id", "item number", "position", "clicked"))
    named = {"session_id": "visit", "doc_id": "item number"}
    assert happenings(read_log(table, columns=named)) == happenings(read_log(long_table(clean)))
    with pytest.raises(DataError, match=r"column 'thing' \(as doc_id\) is missing; a log has"):
        read_log(table, columns={**named, "doc_id": "thing"})
    with pytest.raises(SettingsError, match="no meaning 'document' for a column; there are sess"):
        read_log(table, columns={"document": "item number"})


def test_a_log_that_counts_from_0_is_read_when_told_so(clean):
    table = long_table([(s, q, d, p - 1, c) for s, q, d, p, c in clean])
    with pytest.raises(DataError, match="for a log that counts from 0 set first_position to 0"):
        read_log(table)
    assert happenings(read_log(table, first_position=0)) == happenings(read_log(long_table(clean)))


@pytest.mark.parametrize("depth", [62, 63, 124, 125])
def test_lists_may_be_longer_than_a_word_has_bits(depth):
    luck = np.random.default_rng(depth)
    clicks = luck.random((4, depth)) < 0.5
    rows = [
        (session, "q", f"d{place}", place + 1, int(clicks[session, place]))
        for session in range(4)
        for place in luck.permutation(depth)
    ]
    log = read_log(long_table(rows))
    assert sorted(log.clicks.tolist()) == sorted(clicks.tolist())


def test_sessions_that_differ_in_a_context_are_counted_apart(clean):
    table = long_table(clean)
    device = {"s1": "phone", "s2": "desk", "s3": None}
    table = table.append_column("device", pa.array([device[row[0]] for row in clean]))
    log = read_log(table, contexts=["device"])
    assert {name: part.sessions for name, part in log.split("device").items()} == {
        "phone": 1,
        "desk": 1,
        "(none)": 1,
    }
    assert len(log.lists) == 2
    with pytest.raises(DataError, match="no context column 'layout'; the log has session_id"):
        read_log(table, contexts=["layout"])


def test_what_only_sessions_that_are_left_out_were_shown_is_not_named(clean):
    rows = [*clean, ("s4", "q1", "a", 1, 0), ("s4", "q1", "b", 2, 0), ("s4", "q1", "z", 3, 1)]
    devices = pa.array(["phone"] * (len(rows) - 1) + ["desk"])
    table = long_table(rows).append_column("device", devices)
    log = read_log(table, contexts=["device"], max_bad_share=1)
    assert log.catalogue.doc_ids.tolist() == ["a", "b", "c"]
    assert log.lists.depth == 2


def timed(table, times):
    return table.append_column("timestamp", pa.array(times))


@pytest.mark.parametrize("kind", ["numbers", "texts", "times"])
def test_the_time_of_a_log_is_cut_into_parts_of_equally_many_sessions(kind):
    hours = np.array([0, 1, 2, 3, 1000, 1001, 1002, 1003])
    times = {
        "numbers": hours * 3600,
        "texts": [
            str(np.datetime64("2024-01-01T00:00:00") + np.timedelta64(h, "h")) for h in hours
        ],
        "times": np.datetime64("2024-01-01", "us") + hours.astype("m8[h]"),
    }[kind]
    rows = [(session, "q", "d", 1, 0) for session in range(8)]
    log = read_log(timed(long_table(rows), times))
    parts = log.split(PERIOD)
    assert [part.sessions for part in parts.values()] == [2, 2, 2, 2]
    names = log.column(PERIOD).names
    assert names[1:3] == (
        ("7200", "3600000") if kind == "numbers" else ("2024-01-01T02:00:00", "2024-02-11T16:00:00")
    )
    if kind == "numbers":
        halves = read_log(timed(long_table(rows), times), periods=2).split(PERIOD)
        assert [part.sessions for part in halves.values()] == [4, 4]
        assert PERIOD not in read_log(timed(long_table(rows), times), periods=0).columns


def test_times_with_an_offset_are_told_apart_from_those_without():
    rows = [(session, "q", "d", 1, 0) for session in range(2)]
    texts = ["2024-05-16T12:00:00+02:00", "2024-05-16T11:00:00Z"]
    names = read_log(timed(long_table(rows), texts)).column(PERIOD).names
    assert names == ("2024-05-16T10:00:00", "2024-05-16T11:00:00")


def test_settings_out_of_range_are_refused(clean):
    table = long_table(clean)
    for name, value in {
        "max_bad_share": 1.5,
        "max_clicks": 0,
        "max_client_share": 0.0,
        "first_position": 2,
        "periods": -1,
    }.items():
        with pytest.raises(SettingsError, match=name):
            read_log(table, **{name: value})


def test_periods_of_the_logs_own_are_kept_and_other_names_are_reserved(clean):
    table = timed(long_table(clean), range(5))
    table = table.append_column(PERIOD, pa.array(["new", "new", "old", "new", "new"]))
    table = table.append_column("clicks", pa.array([1] * 5))
    assert read_log(table, contexts=[PERIOD]).column(PERIOD).names == ("new", "old")
    with pytest.raises(DataError, match="a context cannot be called 'clicks'"):
        read_log(table, contexts=["clicks"])
    with pytest.raises(DataError, match="'clicked' is a column that every log has, and no context"):
        read_log(table, contexts=["clicked"])


def test_folders_that_are_named_after_a_value_give_a_column(tmp_path, clean):
    for device, rows in (("desk", clean[:3]), ("phone", clean[3:])):
        (tmp_path / f"device={device}").mkdir()
        pq.write_table(long_table(rows), tmp_path / f"device={device}" / "part.parquet")
    parts = read_log(tmp_path, contexts=["device"]).split("device")
    assert {name: part.sessions for name, part in parts.items()} == {"desk": 2, "phone": 1}
