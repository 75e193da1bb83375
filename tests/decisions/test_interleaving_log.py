"""Interleaved sessions read from logs: the same from every source, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from dualrank.data.log.read_log import read_log
from dualrank.data.log.saved import write_log
from dualrank.decisions.interleaving_lists import build_lists
from dualrank.decisions.interleaving_log import read_interleaved
from dualrank.errors import DataError, SettingsError

LONG = ["session_id", "query_id", "doc_id", "position", "clicked"]


def totals(found):
    """What all clicks counted for each arm, sessions, and days."""
    credit = (found.credits * found.counts[:, None]).sum(axis=0)
    return dict(zip(found.arms, credit.round(6).tolist(), strict=True)), found.sessions


@pytest.fixture(scope="module")
def direct(log):
    """The log, read from memory."""
    return read_interleaved(log)


def expected(log):
    clicked = log.filter(log["clicked"])
    return {
        arm: float(pc.sum(clicked.filter(pc.equal(clicked["arm"], arm))["credit"]).as_py())
        for arm in ("old", "new")
    }


def test_credit_is_what_was_clicked_of_each_team(log):
    found = read_interleaved(log.drop_columns(["interleaving", "credit"]))
    assert totals(found) == (expected(log), 1_200)
    assert found.arms == ("new", "old")
    assert not found.graded
    assert len(np.unique(found.day_of)) == 10


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_every_format_reads_the_same(log, direct, tmp_path, suffix):
    path = tmp_path / f"log.{suffix}"
    if suffix == "parquet":
        pq.write_table(log, path)
    elif suffix == "csv":
        pyarrow.csv.write_csv(log, path)
    else:
        path.write_text("\n".join(map(json.dumps, log.to_pylist())))
    found = read_interleaved(path)
    assert totals(found) == totals(direct)
    assert sorted(np.unique(found.day_of)) == sorted(np.unique(direct.day_of))


def test_lists_tell_the_arms_of_a_log_that_does_not(log, lists, tmp_path):
    lists.write(tmp_path / "lists.parquet")
    numbered = log.select([*LONG, "interleaving"])
    found = read_interleaved(numbered, lists=tmp_path / "lists.parquet")
    assert totals(found) == (expected(log), 1_200)
    assert found.arms == ("old", "new")
    renamed = numbered.rename_columns([*LONG, "draw"])
    again = read_interleaved(renamed, lists=lists, columns={"interleaving": "draw"})
    assert totals(again) == totals(found)


def test_without_numbers_lists_are_known_by_what_they_show(log, lists):
    found = read_interleaved(log.select(LONG), lists=lists)
    credit, sessions = totals(found)
    assert sessions == 1_200
    # Draws that show the same have their credit shared; on the whole little changes.
    assert sum(credit.values()) == pytest.approx(sum(expected(log).values()), rel=1e-6)
    assert credit["new"] == pytest.approx(expected(log)["new"], rel=0.1)


def test_optimised_lists_count_their_own_credit(runs, sessions):
    lists = build_lists(runs, way="optimised", depth=6)
    log = sessions(lists, 300)
    by_lists = read_interleaved(log.select([*LONG, "interleaving"]), lists=lists)
    assert by_lists.graded
    assert totals(by_lists)[0] == pytest.approx(expected(log))
    by_columns = read_interleaved(log.drop_columns(["interleaving"]), arms=["old", "new"])
    assert totals(by_columns)[0] == pytest.approx(expected(log))
    shown = read_interleaved(log.select(LONG), lists=lists)
    assert totals(shown)[0] == pytest.approx(expected(log))


def test_a_page_that_shows_the_beginning_of_a_list_is_known(log, lists):
    part = log.filter(pc.less_equal(log["position"], 3))
    found = read_interleaved(part.select([*LONG, "interleaving"]), lists=lists)
    assert totals(found) == (expected(part), 1_200)


def test_lists_with_gaps_are_known_where_that_is_allowed(log, lists):
    part = log.filter(pc.not_equal(log["position"], 2))
    found = read_interleaved(part.select([*LONG, "interleaving"]), lists=lists, partial=True)
    assert totals(found) == (expected(part), 1_200)


def test_other_names_of_the_arms_column(log, direct):
    for name in ("team", "search_config"):
        renamed = log.rename_columns([name if c == "arm" else c for c in log.column_names])
        assert totals(read_interleaved(renamed)) == totals(direct)
    renamed = log.rename_columns(["variant" if c == "arm" else c for c in log.column_names])
    found = read_interleaved(renamed, columns={"arm": "variant"}, arms=["old", "new"])
    assert found.arms == ("old", "new")


def test_days_are_read_from_times_of_any_kind(log):
    index = log.column_names.index("timestamp")
    seconds = log["timestamp"].to_numpy() + 1.7e9
    for values in (seconds * 1e3, seconds.astype("datetime64[s]"), seconds):
        changed = log.set_column(index, "timestamp", pa.array(values))
        days = np.unique(read_interleaved(changed).day_of)
        assert days[0] == 1.7e9 // 86_400
        assert len(days) in (10, 11)
    found = read_interleaved(log.drop_columns(["timestamp"]))
    assert np.unique(found.day_of).tolist() == [-1]


def change(log, name, values):
    index = log.column_names.index(name)
    return log.set_column(index, name, pa.array(values))


@pytest.mark.slow
def test_every_mistake_is_one_sentence(log, lists, runs, tmp_path):
    def refused(sentence, changed, error=DataError, **settings):
        with pytest.raises(error, match=sentence) as found:
            read_interleaved(changed, **settings)
        assert "\n" not in str(found.value)

    rows = log.num_rows
    plain = log.select(LONG)
    refused("no column says which arm a document is of", plain)
    refused("column 'arm' is empty", change(log, "arm", pa.nulls(rows, pa.string())))
    refused("all documents are of one arm, 'A'", change(log, "arm", ["A"] * rows))
    refused("arm 'third' is in no impression; there are new, old", log, arms=["old", "third"])
    refused("arms names one twice", log, SettingsError, arms=["old", "old"])
    refused("arms names one arm, 'old'; a comparison has two", log, SettingsError, arms=["old"])
    refused("more than 20 values", change(log, "arm", [f"d{i}" for i in range(rows)]))
    refused("there is no column 'x' .as arm.", log, columns={"arm": "x"})
    refused("a credit is '-1.0'; expected", change(log, "credit", [-1.0] * rows))
    refused("columns 'session_id', 'query_id'", pa.table({"arm": ["A"], "clicked": [True]}))
    refused("several documents at one position", change(log, "position", [1] * rows))
    refused("one document at several positions", change(log, "doc_id", ["d"] * rows))
    refused("clicked neither 0 nor 1", change(log, "clicked", [7] * rows))
    others = build_lists(runs, depth=6, per_query=2, seed=99, queries=["q1", "q2"])
    numbered = log.select([*LONG, "interleaving"])
    refused(
        "sessions show a list that is not among those that lists= names", numbered, lists=others
    )
    refused("there is no such file", log, lists=tmp_path / "none.parquet")
    refused("there is no such file", tmp_path / "none.parquet")
    ghost = replace(lists, making=replace(lists.making, arms=("old", "new", "ghost")))
    refused("arm 'ghost' is in no impression; there are old, new", numbered, lists=ghost)


def test_sessions_that_were_not_served_are_left_out_where_that_is_allowed(log, lists):
    few = set(list(lists.lists)[:38])
    part = replace(lists, lists={q: each for q, each in lists.lists.items() if q in few})
    numbered = log.select([*LONG, "interleaving"])
    found = read_interleaved(numbered, lists=part, max_bad_share=0.2)
    assert found.sessions < 1_200
    assert "show a list that was not served, and are left out" in found.notes[0]


def test_a_reduced_log_is_refused(log, tmp_path):
    write_log(read_log(log), tmp_path / "log.parquet")
    with pytest.raises(DataError, match="does not tell which arm"):
        read_interleaved(tmp_path / "log.parquet")


def test_two_arms_at_one_position_are_refused(log):
    first = log.slice(0, 1)
    twice = pa.concat_tables([log, change(first, "arm", ["other"])])
    with pytest.raises(DataError, match="a session has two arms at position 1"):
        read_interleaved(twice)


def test_sessions_without_clicks_count(log):
    none = change(log, "clicked", [False] * log.num_rows)
    found = read_interleaved(none)
    assert totals(found) == ({"new": 0.0, "old": 0.0}, 1_200)
