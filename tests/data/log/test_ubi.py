"""User Behavior Insights: what was returned, joined with what was clicked."""

import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from dualrank.data.log.read_log import read_log
from dualrank.data.log.reading_report import BadLogError
from dualrank.errors import DataError, SettingsError

from .reference import happenings


def query(query_id, user_query, hits, client="c1"):
    return {
        "query_id": query_id,
        "user_query": user_query,
        "query_response_id": f"response to {query_id}",
        "query_response_hit_ids": hits,
        "client_id": client,
        "timestamp": "2024-05-16T12:34:56.789Z",
        "application": "shop",
        "query_attributes": {"experiment": "A"},
    }


def event(query_id, object_id, ordinal, action="click"):
    return {
        "action_name": action,
        "query_id": query_id,
        "client_id": "c1",
        "timestamp": "2024-05-16T12:35:00Z",
        "event_attributes": {
            "object": {"object_id": object_id, "object_id_field": "sku"},
            "position": {"ordinal": ordinal},
        },
    }


QUERIES = [
    query("u1", "toner", ["a", "b", "c"]),
    query("u2", "toner", ["a", "b", "c"], "c2"),
    query("u3", "ram", ["x", "007"]),
]
EVENTS = [
    event("u1", "b", 2),
    event("u2", "a", 1),
    event("u2", "c", 3, "impression"),
    event("u3", "007", 2),
    event("u3", "x", 1, "add_to_cart"),
]
EXPECTED = {
    ("toner", ("a", "b", "c"), (False, True, False)): 1,
    ("toner", ("a", "b", "c"), (True, False, False)): 1,
    ("ram", ("x", "007"), (False, True)): 1,
}


def lines(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def written(folder, form, queries=QUERIES, events=EVENTS):
    """An export as its tools write it: nested, wrapped, typed or flattened."""
    if form == "json":
        return lines(folder / "q.jsonl", queries), lines(folder / "e.jsonl", events)
    if form == "wrapped":
        wrap = [[{"_id": i, "_source": r} for i, r in enumerate(x)] for x in (queries, events)]
        return lines(folder / "q.ndjson", wrap[0]), lines(folder / "e.ndjson", wrap[1])
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(queries), folder / "q.parquet")
        pq.write_table(pa.Table.from_pylist(events), folder / "e.parquet")
        return folder / "q.parquet", folder / "e.parquet"
    flat = [
        {
            "action_name": e["action_name"],
            "query_id": e["query_id"],
            "event_attributes.object.object_id": e["event_attributes"]["object"]["object_id"],
        }
        for e in events
    ]
    joined = [
        {
            "query_id": q["query_id"],
            "user_query": q["user_query"],
            "query_response_hit_ids": ", ".join(q["query_response_hit_ids"]),
            "query_attributes.experiment": q["query_attributes"]["experiment"],
        }
        for q in queries
    ]
    pyarrow.csv.write_csv(pa.Table.from_pylist(joined), folder / "q.csv")
    pyarrow.csv.write_csv(pa.Table.from_pylist(flat), folder / "e.csv")
    return folder / "q.csv", folder / "e.csv"


@pytest.mark.parametrize("form", ["json", "wrapped", "parquet", "flat"])
def test_an_export_of_any_form_is_joined(tmp_path, form):
    queries, events = written(tmp_path, form)
    log = read_log(queries, events=events, contexts=["query_attributes.experiment"])
    assert happenings(log) == EXPECTED
    assert log.column("query_attributes.experiment").names == ("A",)
    assert log.reading.problems == ()


def test_the_actions_that_count_as_clicks_can_be_chosen(tmp_path):
    queries, events = written(tmp_path, "json")
    log = read_log(queries, events=events, actions=("add_to_cart",))
    assert happenings(log)["ram", ("x", "007"), (True, False)] == 1
    assert log.reading.clicks == 1


def test_clients_and_times_come_from_the_queries(tmp_path):
    queries, events = written(tmp_path, "json")
    log = read_log(queries, events=events)
    assert {client.name: client.clicks for client in log.reading.clients} == {"c1": 2, "c2": 1}


@pytest.mark.parametrize(
    ("queries", "events", "kind", "count", "kept"),
    [
        ([], [event("u3", "zz", 9)], "not_displayed", 1, 3),
        ([], [event("u9", "a", 1)], "no_query", 1, 3),
        ([], [event("u1", None, 1)], "no_object", 1, 3),
        ([], [event("u1", "b", 2)], "repeated_click", 1, 3),
        ([], [event("u1", "c", 4)], "other_position", 1, 3),
        ([query("u4", "nothing", [])], [], "nothing_shown", 1, 3),
        ([query("u3", "ram", ["007", "x"])], [], "same_position", 1, 2),
        ([query("u3", "rom", ["x", "007"])], [], "several_queries", 1, 2),
        ([query("u4", None, ["x"])], [], "missing_value", 1, 3),
        ([query("u4", "odd", ["x", "x"])], [], "same_document", 1, 3),
    ],
)
def test_what_does_not_fit_is_counted(tmp_path, queries, events, kind, count, kept):
    paths = written(tmp_path, "json", [*QUERIES, *queries], [*EVENTS, *events])
    log = read_log(paths[0], events=paths[1], max_bad_share=1.0)
    found = {problem.kind: problem.count for problem in log.reading.problems}
    assert found[kind] == count
    assert log.sessions == kept


def test_clicks_without_a_displayed_list_are_a_share_of_the_clicks(tmp_path):
    strays = [event(f"before {number}", "a", 1) for number in range(12)]
    paths = written(tmp_path, "json", QUERIES, [*EVENTS, *strays, event("u1", None, 1)])
    with pytest.raises(BadLogError, match=r"13 of 16 clicks are bad, a share of 0\.812 where none"):
        read_log(paths[0], events=paths[1])
    log = read_log(paths[0], events=paths[1], max_bad_share=1.0)
    assert happenings(log) == EXPECTED
    assert (log.reading.bad, log.reading.clicks) == (0, 16)
    assert log.reading.lost["clicks"] == (13, 16)


@pytest.mark.parametrize("inside", [True, False])
def test_a_position_may_be_a_plain_number(tmp_path, inside):
    events = [event("u1", "b", 2), event("u2", "a", 1), event("u3", "007", 7)]
    for record in events:
        position = record["event_attributes"].pop("position")["ordinal"]
        (record["event_attributes"] if inside else record)["position"] = position
    paths = written(tmp_path, "json", QUERIES, events)
    (problem,) = read_log(paths[0], events=paths[1]).reading.problems
    assert (problem.kind, problem.count) == ("other_position", 1)
    assert problem.example == "such as query_id 'u3'"


def test_fields_that_are_missing_are_named(tmp_path):
    queries, events = written(tmp_path, "json")
    with pytest.raises(DataError, match=r"no field 'user_query'; the records have act"):
        read_log(events, events=events)
    with pytest.raises(DataError, match=r"no field 'event_attributes.object.object_id'; the rec"):
        read_log(queries, events=queries)
    with pytest.raises(SettingsError, match="actions is empty"):
        read_log(queries, events=events, actions=())
    with pytest.raises(SettingsError, match="events go with files of UBI queries"):
        read_log(queries, events=events, columns={"doc_id": "x"})
