"""Lists made before they are served: reproducible, complete, and refused where damaged."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.decisions.interleaving_lists import (
    ABOUT,
    arm_names,
    build_lists,
    read_lists,
    read_queries,
)
from dualrank.errors import DataError, SettingsError


def test_lists_come_back_as_they_were_written(lists, tmp_path):
    lists.write(tmp_path / "lists.parquet")
    found = read_lists(tmp_path / "lists.parquet")
    assert found.lists == lists.lists
    assert found.making.arms == ("old", "new")
    assert found.making.seed == 3
    about = json.loads(pq.read_schema(tmp_path / "lists.parquet").metadata[ABOUT])
    assert about["way"] == "team-draft"
    assert about["queries"] == 40


def test_the_lists_of_a_query_do_not_depend_on_other_queries(runs, lists):
    few = build_lists(runs, depth=6, per_query=8, seed=3, queries=["q7", "q3", "q7"])
    assert list(few.lists) == ["q7", "q3"]
    assert all(few.lists[query] == lists.lists[query] for query in few.lists)
    assert build_lists(runs, depth=6, per_query=8, seed=4).lists != lists.lists


def test_queries_that_not_all_arms_rank_are_counted(runs):
    part = {"old": runs["old"], "new": {q: r for q, r in runs["new"].items() if q != "q0"}}
    found = build_lists(part, depth=6)
    assert "q0" not in found.lists
    assert found.making.left_out == 1


def test_optimised_lists_fall_back_to_drafts_where_one_ranking_is_short(runs):
    short = {"old": {**runs["old"], "q1": runs["old"]["q1"][:2]}, "new": runs["new"]}
    found = build_lists(short, way="optimised", depth=6, per_query=4)
    assert found.making.drafted == 1
    assert len(found.lists["q1"]) == 4
    assert len({each.probability for each in found.lists["q2"]}) > 1


def test_a_damaged_file_is_refused_in_one_sentence(lists, tmp_path):
    path = tmp_path / "lists.parquet"
    table = lists.table()

    def refused(changed, sentence):
        pq.write_table(changed, path)
        with pytest.raises(DataError, match=sentence) as error:
            read_lists(path)
        assert str(path) in str(error.value)

    def with_column(name, values):
        index = table.column_names.index(name)
        column = pa.array(values, table.schema.field(name).type)
        return table.set_column(index, name, column)

    rows = table.num_rows
    refused(table.drop_columns(["credit"]), "column 'credit' is missing")
    refused(table.replace_schema_metadata({}), "does not say how its lists were made")
    refused(table.slice(0, 0), "there are no lists in it")
    refused(with_column("position", [1] * rows), "other positions than 1 to 6")
    refused(with_column("doc_id", ["d"] * rows), "has a document twice")
    refused(with_column("interleaving", (table["interleaving"].to_numpy() + 1)), "numbered from 1")
    refused(with_column("probability", [-1.0] * rows), "finite and 0 or more")
    refused(with_column("arm", ["other"] * rows), "the arms other are not those")
    refused(with_column("query_id", [None] * rows), "query_id is missing in a row")
    no_text = pa.array([b"\xff\xfe"] * rows, pa.binary()).view(pa.string())
    refused(table.set_column(3, "doc_id", no_text), "the lists cannot be read .*UTF8")
    path.write_bytes(b"PAR1 and more")
    with pytest.raises(DataError, match="the lists cannot be read"):
        read_lists(path)
    with pytest.raises(DataError, match="there is no such file"):
        read_lists(tmp_path / "none.parquet")


def test_what_cannot_be_built(runs):
    with pytest.raises(SettingsError, match="way is team-draft or optimised, not 'balanced'"):
        build_lists(runs, way="balanced")
    with pytest.raises(SettingsError, match="two arms or more; give another run"):
        build_lists({"old": runs["old"]})
    with pytest.raises(SettingsError, match="per_query is 1 or more, not 0"):
        build_lists(runs, per_query=0)
    with pytest.raises(DataError, match="none of these queries is ranked by every arm"):
        build_lists(runs, queries=["nowhere"])
    three = {**runs, "third": runs["old"]}
    with pytest.raises(SettingsError, match="compares two rankings, not 3"):
        build_lists(three, way="optimised")


def test_arms_are_named_after_their_files(tmp_path):
    paths = [tmp_path / "a" / "run.csv", tmp_path / "b" / "run.csv"]
    assert arm_names(paths) == tuple(map(str, paths))
    assert arm_names(paths, ["x", "y"]) == ("x", "y")
    with pytest.raises(SettingsError, match="arms names 1 for 2 runs: x"):
        arm_names(paths, ["x"])
    with pytest.raises(SettingsError, match="two arms are called 'x'"):
        arm_names(paths, ["x", "x"])


def test_queries_are_read_from_text_and_tables(tmp_path):
    (tmp_path / "q.txt").write_text("red shoes\n\nq2\nq2\n")
    assert read_queries(tmp_path / "q.txt") == ["red shoes", "q2"]
    (tmp_path / "q.csv").write_text("query_id,n\n007,1\n")
    assert read_queries(tmp_path / "q.csv") == ["007"]
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(DataError, match="there is no query id in it"):
        read_queries(tmp_path / "empty.txt")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="not UTF-8"):
        read_queries(tmp_path / "bytes.txt")
