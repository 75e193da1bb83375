"""A click log becomes the distinct things that happened, whatever the order of its rows."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualrank.data.click_log import ClickLog, Column
from dualrank.data.dataset import Dataset
from dualrank.data.lists import PADDING, RankedLists
from dualrank.errors import DataError

DATA = Dataset.from_arrays(
    np.zeros((7, 1)), ["q1"] * 4 + ["q2"] * 2 + ["q3"], doc_ids=["a", "b", "c", "d", "a", "b", "e"]
)
ROW_OF = {
    (str(q), str(d)): row
    for row, (q, d) in enumerate(
        zip(DATA.query_ids[DATA.query_of_document], DATA.doc_ids, strict=True)
    )
}


def table_of(sessions, order=None):
    """The long log of sessions `(query, documents, clicks)`; rows in the given order."""
    rows = [
        (number, query, document, position, click)
        for number, (query, documents, clicks) in enumerate(sessions)
        for position, (document, click) in enumerate(zip(documents, clicks, strict=True), 1)
    ]
    rows = rows if order is None else [rows[i] for i in order]
    names = ("session_id", "query_id", "doc_id", "position", "clicked")
    return pa.table(
        {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    )


def happenings(log):
    """What happened, as a plain dictionary from (displayed rows, clicks) to sessions."""
    found = Counter()
    for list_of, clicks, count in zip(log.list_of, log.clicks, log.counts, strict=True):
        shown = log.lists.mask[list_of]
        key = tuple(log.lists.documents[list_of][shown].tolist()), tuple(clicks[shown].tolist())
        assert key not in found or log.columns
        found[key] += int(count)
    return found


@st.composite
def logs(draw):
    """Some sessions over the documents of DATA, and an order of their rows."""
    documents = {"q1": "abcd", "q2": "ab", "q3": "e"}
    sessions = []
    for _ in range(draw(st.integers(1, 12))):
        query = draw(st.sampled_from(sorted(documents)))
        shown = draw(st.permutations(documents[query]))
        shown = shown[: draw(st.integers(1, len(shown)))]
        clicks = draw(st.lists(st.booleans(), min_size=len(shown), max_size=len(shown)))
        sessions.append((query, shown, clicks))
    rows = sum(len(shown) for _, shown, _ in sessions)
    return sessions, draw(st.permutations(range(rows)))


@settings(max_examples=6, deadline=None)
@given(logs())
def test_the_reduction_counts_what_happened_whatever_the_order_of_rows(case):
    sessions, order = case
    expected = Counter(
        (tuple(ROW_OF[query, d] for d in shown), tuple(clicks)) for query, shown, clicks in sessions
    )
    log = ClickLog.from_frame(table_of(sessions, order), DATA)
    assert happenings(log) == expected
    assert log.sessions == len(sessions)

    displayed = {documents for documents, _ in expected}
    assert len(log.lists) == len(displayed)
    for number, documents in enumerate(log.lists.documents.tolist()):
        shown = tuple(d for d in documents if d != PADDING)
        assert shown in displayed
        assert documents[len(shown) :] == [PADDING] * (log.lists.depth - len(shown))
        assert log.lists.queries[number] == DATA.query_of_document[shown[0]]
        of_list = {clicks: n for (docs, clicks), n in expected.items() if docs == shown}
        assert log.sessions_per_list[number] == sum(of_list.values())
        for position in range(len(shown)):
            total = sum(n for clicks, n in of_list.items() if clicks[position])
            assert log.clicks_per_list[number, position] == total

    in_order = ClickLog.from_frame(table_of(sessions), DATA)
    for name in ("list_of", "clicks", "counts"):
        assert np.array_equal(getattr(log, name), getattr(in_order, name))
    assert np.array_equal(log.lists.documents, in_order.lists.documents)


@settings(max_examples=3, deadline=None)
@given(logs())
def test_the_long_table_of_a_log_reads_back_as_the_log(case):
    log = ClickLog.from_frame(table_of(case[0]), DATA)
    again = ClickLog.from_frame(log.to_table(DATA), DATA)
    assert happenings(again) == happenings(log)


SESSIONS = [("q1", "cab", (1, 0, 1)), ("q2", "ab", (0, 0)), ("q1", "cab", (1, 0, 1))]


def test_a_parquet_file_reads_back(tmp_path):
    log = ClickLog.from_frame(table_of(SESSIONS), DATA)
    pq.write_table(log.to_table(DATA), tmp_path / "log.parquet")
    for path in (tmp_path / "log.parquet", str(tmp_path / "log.parquet")):
        again = ClickLog.from_parquet(path, DATA)
        assert happenings(again) == happenings(log)
        assert again.sessions == 3


def test_documents_without_ids_are_named_by_their_row():
    data = Dataset.from_arrays(np.zeros((3, 1)), ["x", "y", "y"])
    sessions = [("y", ["2", "1"], (0, 1)), ("x", ["0"], (0,))]
    log = ClickLog.from_frame(table_of(sessions), data)
    assert happenings(log) == {((2, 1), (False, True)): 1, ((0,), (False,)): 1}
    assert happenings(ClickLog.from_frame(log.to_table(data), data)) == happenings(log)


def test_ids_may_be_numbers_and_clicks_may_be_zero_and_one():
    data = Dataset.from_arrays(np.zeros((2, 1)), [7, 7], doc_ids=[10, 11])
    log = ClickLog.from_frame(table_of([(7, [11, 10], (1, 0))]), data)
    assert happenings(log) == {((1, 0), (True, False)): 1}


def test_context_columns_of_any_name_do_no_harm():
    table = table_of(SESSIONS)
    for extra in ("timestamp", "query", "document", "k", "sessions"):
        table = table.append_column(extra, pa.array(range(table.num_rows)))
    expected = ClickLog.from_frame(table_of(SESSIONS), DATA)
    assert happenings(ClickLog.from_frame(table, DATA)) == happenings(expected)


def test_data_frames_of_others_are_taken():
    columns = table_of(SESSIONS).to_pydict()
    expected = ClickLog.from_frame(table_of(SESSIONS), DATA)
    assert happenings(ClickLog.from_frame(columns, DATA)) == happenings(expected)


def refused(table):
    with pytest.raises(DataError) as caught:
        ClickLog.from_frame(table, DATA)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


def with_column(name, values):
    table = table_of([("q1", "cab", (1, 0, 1))])
    return table.set_column(table.schema.get_field_index(name), name, pa.array(values))


@pytest.mark.parametrize("column", ["session_id", "query_id", "doc_id", "position", "clicked"])
def test_a_missing_column_is_named(column):
    sentence = refused(table_of(SESSIONS).drop_columns([column]))
    assert f"column '{column}' is missing; a log has session_id, query_id, doc_id" in sentence


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("session_id", [0, None, 0]),
        ("query_id", ["q1", None, "q1"]),
        ("doc_id", ["c", None, "b"]),
        ("position", [1, None, 3]),
        ("clicked", [True, None, False]),
    ],
)
def test_a_missing_value_is_found(column, values):
    sentence = refused(with_column(column, values))
    assert ("value missing" in sentence) == (column != "session_id")
    assert column in sentence


@pytest.mark.parametrize(
    ("column", "values", "sentence"),
    [
        ("doc_id", ["c", "a", "z"], "document without features (1 session: document 'z' of"),
        ("position", [1.0, 2.4, 3.0], "session 0 has position 2.4"),
        ("position", ["1", "two", "3"], "session 0 has position two"),
        ("position", [1, 2, 4000], "session 0 has position 4000"),
        ("clicked", ["yes", "no", "maybe"], "session 0 has clicked yes at position 1"),
        ("clicked", [0, float("nan"), 1], "session 0 has clicked nan at position 2"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(column, values, sentence):
    assert sentence in refused(with_column(column, values))


def test_an_empty_log_is_refused():
    assert refused(table_of(SESSIONS).slice(0, 0)) == "the log: the log is empty"


def test_files_that_are_not_parquet_are_refused_by_name(tmp_path):
    path = tmp_path / "log.parquet"
    with pytest.raises(DataError, match=r"log\.parquet: there is no such file"):
        ClickLog.from_parquet(path, DATA)
    path.write_text("session_id,query_id\n")
    with pytest.raises(DataError, match=r"log\.parquet: not a readable Parquet file") as caught:
        ClickLog.from_parquet(path, DATA)
    assert "\n" not in str(caught.value)


def test_errors_of_a_file_name_the_file(tmp_path):
    pq.write_table(with_column("position", [1, 2, 4]), tmp_path / "log.parquet")
    with pytest.raises(DataError, match=r"log\.parquet: 1 of 1 sessions are bad.*1, 2, 4"):
        ClickLog.from_parquet(tmp_path / "log.parquet", DATA)


def test_sessions_are_summed_into_patterns_with_and_without_counts():
    lists = RankedLists(np.array([[0, 1], [4, PADDING]], np.int32), np.array([0, 1], np.int32))
    clicks = np.array([[1, 0], [0, 0], [1, 0], [1, 0]], bool)
    log = ClickLog.from_clicks(lists, np.array([0, 1, 0, 1]), clicks)
    assert happenings(log) == {((0, 1), (True, False)): 2, ((4,), (False,)): 1, ((4,), (True,)): 1}
    weighted = ClickLog.from_clicks(lists, np.array([0, 1, 0, 1]), clicks, np.array([5, 1, 2, 7]))
    assert happenings(weighted) == {
        ((0, 1), (True, False)): 7,
        ((4,), (False,)): 1,
        ((4,), (True,)): 7,
    }


def test_part_of_the_lists_is_part_of_the_log():
    log = ClickLog.from_frame(table_of(SESSIONS), DATA)
    for number in range(len(log.lists)):
        part = log.take_lists(np.array([number]))
        assert part.sessions == log.sessions_per_list[number]
        assert np.array_equal(part.clicks_per_list[0], log.clicks_per_list[number])
        assert part.lists.queries[0] == log.lists.queries[number]
    swapped = log.take_lists(np.arange(len(log.lists))[::-1])
    assert happenings(swapped) == happenings(log)


def test_a_log_says_what_it_holds():
    log = ClickLog.from_frame(table_of(SESSIONS), DATA)
    assert repr(log) == "ClickLog(3 sessions, 2 lists, 2 click patterns)"


def test_rows_that_differ_in_a_column_stand_apart_and_can_be_split():
    lists = RankedLists(np.array([[0, 1], [1, 0]], np.int32), np.zeros(2, np.int32))
    clicks = np.array([[1, 0], [1, 0], [0, 0], [1, 0]], bool)
    device = Column(("phone", "desk"), np.array([0, 1, 1, 0], np.int32))
    log = ClickLog.from_clicks(lists, np.array([0, 0, 1, 0]), clicks, columns={"device": device})
    assert log.counts.tolist() == [2, 1, 1]
    parts = log.split("device")
    assert {name: part.sessions for name, part in parts.items()} == {"phone": 2, "desk": 2}
    assert {name: len(part.lists) for name, part in parts.items()} == {"phone": 1, "desk": 2}
    with pytest.raises(DataError, match=r"no column 'layout'.*it has device"):
        log.split("layout")


def test_a_log_without_names_asks_for_the_data_set():
    lists = RankedLists(np.array([[0, 1]], np.int32), np.zeros(1, np.int32))
    log = ClickLog.from_clicks(lists, np.array([0]), np.array([[1, 0]], bool))
    with pytest.raises(DataError, match="give the data set"):
        log.to_table()
