"""Whatever is wrong with a log is named, with an example, and left out only if that is allowed."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.data.click_log import PERIOD
from dualrank.data.dataset import Dataset
from dualrank.data.log.read_log import read_log
from dualrank.data.log.reading_report import KINDS, BadLogError, ReadingReport
from dualrank.errors import DataError

from .conftest import long_table
from .reference import happenings

CLEAN = {("q1", ("a", "b"), (False, True)): 2, ("q2", ("c",), (False,)): 1}
BAD = {
    "missing_value": ([("x", "q1", None, 1, 0)], "(1 session: session 'x' has no doc_id at positi"),
    "bad_position": (
        [("x", "q1", "a", -3, 0)],
        "(1 session: session 'x' has position -3; expected a whole number from 1 to 1024)",
    ),
    "zero_based": ([("x", "q1", "a", 0, 0)], "position 0 (1 session: session 'x' has positions 0"),
    "gap": (
        [("x", "q1", "a", 1, 0), ("x", "q1", "b", 3, 0)],
        "gap in the positions (1 session: session 'x' has positions 1, 3; expected 1, 2, 3",
    ),
    "same_position": (
        [("x", "q1", "a", 1, 0), ("x", "q1", "b", 1, 0)],
        "several documents at one position (1 session: session 'x' has documents 'a' and 'b' at",
    ),
    "same_document": (
        [("x", "q1", "a", 1, 0), ("x", "q1", "a", 2, 0)],
        "one document at several positions (1 session: session 'x' shows document 'a' at positio",
    ),
    "bad_click": ([("x", "q1", "a", 1, 5)], "clicked neither 0 nor 1 (1 session: session 'x' has"),
    "several_queries": (
        [("x", "q1", "a", 1, 0), ("x", "q2", "b", 2, 0)],
        "several queries in a session (1 session: session 'x' holds queries 'q1' and 'q2')",
    ),
    "not_displayed": (
        [("x", "q1", "a", 1, 0), ("x", "q1", "z", None, 1)],
        "not displayed (1 session: session 'x' has a click on 'z', which it does not show)",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_each_kind_of_problem_has_its_words_and_can_be_left_out(kind, clean):
    rows, words = BAD[kind]
    with pytest.raises(BadLogError) as caught:
        read_log(long_table([*clean, *rows]))
    sentence = str(caught.value)
    assert words in sentence
    assert "\n" not in sentence
    assert "1 of 4 sessions are bad, a share of 0.25 where none is allowed" in sentence
    assert [p.kind for p in caught.value.reading.problems] == [kind]

    log = read_log(long_table([*clean, *rows]), max_bad_share=0.25)
    if KINDS[kind].treatment == "dropped":
        assert happenings(log) == CLEAN
    else:
        assert log.sessions == 4
    assert log.reading.bad == 1


def test_rows_without_a_session_are_a_share_of_the_rows(clean):
    rows = [*clean, *[(None, "q1", f"d{place}", place, 0) for place in range(1, 16)]]
    with pytest.raises(BadLogError) as caught:
        read_log(long_table(rows))
    assert (
        "15 of 20 rows are bad, a share of 0.75 where none is allowed: session_id missing (15 rows:"
        " such as the row of document 'd1' of query 'q1' at position 1)"
    ) in str(caught.value)
    with pytest.raises(BadLogError, match="15 of 20 rows"):
        read_log(long_table(rows), max_bad_share=0.7)
    log = read_log(long_table(rows), max_bad_share=0.75)
    assert happenings(log) == CLEAN
    assert (log.reading.sessions, log.reading.bad) == (3, 0)


def test_clicks_are_counted_as_they_are_found(clean):
    rows = [*clean, ("s4", "q1", "a", 1, 1), ("s4", "q1", "z", None, 1), ("s5", "q1", "a", 4000, 1)]
    assert read_log(long_table(rows), max_bad_share=1.0).reading.clicks == 5


def test_all_problems_are_told_at_once(clean):
    rows = [*clean]
    for number, (bad, _) in enumerate(BAD.values()):
        rows += [(session and f"{session}{number}", *rest) for session, *rest in bad]
    with pytest.raises(BadLogError) as caught:
        read_log(long_table(rows))
    assert [p.kind for p in caught.value.reading.problems] == [k for k in KINDS if k in BAD]
    with pytest.raises(BadLogError, match=r"a share of 0\.75 where 0\.7 is allowed"):
        read_log(long_table(rows), max_bad_share=0.7)
    for kind in BAD:
        assert KINDS[kind].says in str(caught.value)
    assert len(caught.value.reading.table()) == len(BAD)


def test_repeated_rows_are_merged_and_noted(clean):
    log = read_log(long_table([*clean, clean[1], ("s2", "q2", "c", 1, 1)]))
    assert happenings(log) == {("q1", ("a", "b"), (False, True)): 2, ("q2", ("c",), (True,)): 1}
    (problem,) = log.reading.problems
    assert (problem.kind, problem.count) == ("repeated_row", 2)
    assert problem.example == "session 's1' has document 'b' at position 2 2 times"
    assert log.reading.bad == 0


HEADER = b"session_id,query_id,doc_id,position,clicked\n"


def with_column(rows, name, values):
    return long_table(rows).append_column(name, pa.array(values))


@pytest.mark.parametrize(
    ("name", "values", "options", "words"),
    [
        (
            "device",
            ["a", "b", "c", "d", "d"],
            {"contexts": ["device"]},
            "context changes within a session (1 session: session 's1' has device 'a' and 'b'; a "
            "session is one list that one user saw: build its id of visit, query and time)",
        ),
        (
            "client_id",
            ["a", "b", "c", "d", "d"],
            {},
            "several clients in a session (1 session: session 's1' has client 'a' and 'b'; a sess",
        ),
        (
            "timestamp",
            ["2024", "then", "now", "2024-01-01", "2024-01-01"],
            {},
            "no readable timestamp (1 session: session 's2' has timestamp 'now')",
        ),
    ],
)
def test_what_must_not_change_within_a_session(clean, name, values, options, words):
    table = with_column(clean, name, values)
    with pytest.raises(BadLogError) as caught:
        read_log(table, **options)
    assert words in str(caught.value)
    assert read_log(table, max_bad_share=0.5, **options).sessions == 2


def test_times_that_cannot_be_read_at_all_leave_a_log_without_periods(clean):
    log = read_log(with_column(clean, "timestamp", ["16/5/24 noon"] * 5))
    assert log.sessions == 3
    assert PERIOD not in log.columns
    (problem,) = log.reading.problems
    assert (problem.kind, problem.count) == ("no_times", 3)
    assert problem.example == "session 's1' has timestamp '16/5/24 noon'"


def test_a_log_without_any_session_is_refused_as_such():
    rows = with_column([(None, "q", "a", 1, 1)], "timestamp", ["then"])
    with pytest.raises(BadLogError, match="1 of 1 rows are bad"):
        read_log(rows)
    with pytest.raises(DataError, match="none of its 0 sessions is left"):
        read_log(rows, max_bad_share=1.0)


FEATURES = Dataset.from_arrays(
    np.zeros((4, 1)), ["q1", "q1", "q1", "q9"], doc_ids=["a", "b", "n", "c"]
)


def test_documents_without_features_and_features_without_documents(clean):
    with pytest.raises(BadLogError) as caught:
        read_log(long_table(clean), FEATURES)
    assert "document without features (1 session: document 'c' of query 'q2' is not in" in str(
        caught.value
    )
    assert "the features); add the missing documents to the features, or raise max_bad" in str(
        caught.value
    )
    log = read_log(long_table(clean), FEATURES, max_bad_share=0.4)
    assert log.sessions == log.reading.kept == 2
    assert log.lists.documents.tolist() == [[0, 1]]
    found = {p.kind: (p.count, p.example) for p in log.reading.problems}
    assert found["not_in_log"] == (2, "document 'n' of query 'q1'")


def test_when_nothing_joins_an_id_of_each_side_is_shown(clean):
    others = Dataset.from_arrays(np.zeros((1, 1)), ["q1.0"], doc_ids=["a.0"])
    words = "the log shows document 'a' of query 'q1', the features begin with document 'a.0' of qu"
    with pytest.raises(DataError, match=words):
        read_log(long_table(clean), others, max_bad_share=1.0)


def test_whole_numbers_that_became_floats_are_written_whole():
    rows = [("s", 7.0, 0.0, 1, 0), ("s", 7.0, 12345678.0, 2, 1), ("t", 7.5, 1.0, 1, 0)]
    assert happenings(read_log(long_table(rows))) == {
        ("7", ("0", "12345678"), (False, True)): 1,
        ("7.5", ("1",), (False,)): 1,
    }


def test_a_position_that_is_there_twice_is_no_gap_as_well(clean):
    rows = [*clean, *(("x", "q1", d, p, 0) for d, p in (("a", 1), ("b", 1), ("c", 3)))]
    found = read_log(long_table(rows), max_bad_share=1.0).reading.problems
    assert [problem.kind for problem in found] == ["same_position"]


def test_a_log_that_counts_from_1_is_told_so(clean):
    with pytest.raises(BadLogError) as caught:
        read_log(long_table(clean), first_position=0)
    assert (
        "has positions 1, 2; expected 0, 1, 2 … without gaps; for a log that counts from 1 set "
        "first_position to 1"
    ) in str(caught.value)


def test_features_given_twice_are_refused_where_they_are_needed(clean):
    twice = Dataset.from_arrays(np.zeros((3, 1)), ["q1"] * 3, doc_ids=["a", "b", "b"])
    with pytest.raises(DataError, match="features: document 'b' of query 'q1' stands there twice"):
        read_log(long_table(clean[:2]), twice)


def test_no_session_left_is_an_error(clean):
    with pytest.raises(DataError, match="none of its 1 sessions is left"):
        read_log(long_table([("x", "q1", "a", 2, 0)]), max_bad_share=1.0)


def test_the_account_survives_as_json(clean):
    rows = [*clean, *BAD["gap"][0]]
    table = with_column(rows, "client_id", [row[0] for row in rows])
    reading = read_log(table, max_bad_share=1.0, max_clicks=1).reading
    assert ReadingReport.from_dict(reading.to_dict()) == reading


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("log.parquet", b"session_id,query_id\n", "not a readable Parquet file"),
        ("log.parquet", b"PAR1 and then nothing", "not a readable Parquet file"),
        ("log.jsonl", b'{"session_id": 1\n', "log.jsonl"),
        (
            "log.csv",
            b"session_id,query_id\n1,2\n",
            "columns 'doc_id', 'position', 'clicked' are missing",
        ),
        ("log.xlsx", b"what", "a log is a .parquet, .pq, .csv, .tsv, .jsonl, .ndjson, .json file"),
        ("log.csv.gz", b"not gzip", "log.csv.gz"),
        ("log.csv", b"", "the file is empty"),
        ("log.jsonl", b"\n", "the file is empty"),
        ("log.json", b'[{"a": 1},\n {"a": 2}]', "a JSON array; expected one object per line"),
        ("log.csv", HEADER + b"1,q,a,1,0\n1,q,b\n", "line 3: 3 values where the header has 5"),
        ("log.csv", HEADER + b'1,"q"x,a,1,0,7\n', "line 2: 6 values where the header has 5; mend"),
        (
            "log.csv",
            HEADER + b"1,q,a,1,0\n" * 30_000 + b"2,q\n",
            "CSV Error on Line: 30002, Expected Number of Columns: 5 Found: 2",
        ),
    ],
)
def test_files_that_cannot_be_read_are_named(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_log(tmp_path / name)
    assert words in str(caught.value)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_places_without_a_log_are_named(tmp_path, clean):
    with pytest.raises(DataError, match="there is no such file"):
        read_log(tmp_path / "none.parquet")
    with pytest.raises(DataError, match="no file fits this pattern"):
        read_log(tmp_path / "*.parquet")
    with pytest.raises(DataError, match="no log in this folder"):
        read_log(tmp_path)
    pq.write_table(long_table(clean), tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("session_id\n")
    with pytest.raises(DataError, match=r"several formats \(CSV, Parquet\); give a pattern"):
        read_log(tmp_path)
    with pytest.raises(DataError, match="an empty list of files"):
        read_log([])


def untimed_where_unclicked(sessions=300):
    """A log that has a timestamp for the sessions with a click alone, two in three."""
    rows = [(f"s{i:03}", "q1", "a", 1, int(i % 3 > 0)) for i in range(sessions)]
    times = [f"2024-01-{i % 28 + 1:02}" if i % 3 else None for i in range(sessions)]
    return with_column(rows, "timestamp", times)


def test_what_leaving_sessions_out_does_to_the_click_rate_is_said_before_it_is_advised():
    with pytest.raises(BadLogError) as caught:
        read_log(untimed_where_unclicked())
    assert str(caught.value).endswith(
        "reduce it with periods=0, which needs no times and keeps these sessions, or raise "
        "max_bad_share to leave them out, by which the share of sessions with a click would rise "
        "from 67% to 100%"
    )
    ((_, times, _, example),) = caught.value.reading.table()
    assert times == "100 sessions"
    assert example.endswith("; 0% of these sessions have a click, and 100% of the others")


def test_a_log_that_misses_times_alone_is_whole_without_periods():
    log = read_log(untimed_where_unclicked(), periods=0)
    assert log.sessions == 300
    assert not log.reading.problems


def test_a_loss_that_leaves_the_click_rate_as_it_is_needs_no_word():
    rows = [(f"s{i:03}", "q1", "a" if i % 10 else None, 1, i // 10 % 2) for i in range(400)]
    with pytest.raises(BadLogError, match=r"or raise max_bad_share to leave them out$"):
        read_log(long_table(rows))


def test_features_that_miss_clicked_documents_say_so():
    rows = [(f"s{i:03}", "q1", "ab"[i % 2], 1, i % 2) for i in range(100)]
    data = Dataset.from_arrays([[0.0]], ["q1"], doc_ids=["a"])
    with pytest.raises(BadLogError, match="with a click would fall from 50% to 0%"):
        read_log(long_table(rows), data)


def test_accounts_of_reduced_logs_that_did_not_count_clicks_are_read():
    log = read_log(untimed_where_unclicked(), max_bad_share=1.0)
    written = log.reading.to_dict()
    for name in ("clicked", "bad_clicked"):
        del written[name]
    for problem in written["problems"]:
        del problem["clicked"]
    read = ReadingReport.from_dict(written)
    assert "have a click" not in read.table()[0][3]


@pytest.mark.parametrize("time", ["1e300", "inf", "nan", "+292278994-08-17T07:12:55Z"])
def test_times_out_of_range_are_no_times(clean, time):
    table = with_column(clean, "timestamp", [time, time, "2024-01-01", "2024-02-01", "2024-02-01"])
    with pytest.raises(BadLogError, match=r"no readable timestamp .1 session: session 's1' has"):
        read_log(table)


@pytest.mark.parametrize("time", ["99999999999999", "290000-01-01"])
def test_times_that_are_no_date_have_the_name_of_their_number(clean, time):
    table = with_column(clean, "timestamp", [time, time, "2024-01-01", "2024-02-01", "2024-02-01"])
    assert read_log(table).column(PERIOD).names[-1].isdigit()
