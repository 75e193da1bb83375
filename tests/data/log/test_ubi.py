"""User Behavior Insights: what was returned, joined with what was clicked."""

import copy
import gzip
import json
from collections import Counter

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
        "application": "shop",
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


MISFITS = [
    ([], [event("u3", "zz", 9)], "not_displayed", 3),
    ([], [event("u9", "a", 1)], "no_query", 3),
    ([], [event("u1", None, 1)], "no_object", 3),
    ([], [event("u1", "b", 2)], "repeated_click", 3),
    ([], [event("u1", "c", 4)], "other_position", 3),
    ([query("u4", "nothing", [])], [], "nothing_shown", 3),
    ([query("u3", "ram", ["007", "x"])], [], "same_position same_document other_position", 2),
    ([query("u3", "rom", ["x", "007"])], [], "which_list several_lists", 4),
    ([query("u3", "rom", ["y"])], [event("u3", "zz", 9)], "which_list several_lists", 4),
    ([query("u4", None, ["x"])], [], "missing_value", 3),
    ([query("u4", "odd", ["x", "x"])], [], "same_document", 3),
]


def apart(name, records):
    """The same records under ids of their own, in an application of their own."""
    return [
        {**record, "query_id": f"{name}/{record['query_id']}", "application": name}
        for record in records
    ]


def test_what_does_not_fit_is_counted(tmp_path):
    queries, events = [], []
    for number, (more_queries, more_events, *_) in enumerate(MISFITS):
        queries += apart(str(number), [*QUERIES, *more_queries])
        events += apart(str(number), [*EVENTS, *more_events])
    paths = written(tmp_path, "json", queries, events)
    log = read_log(paths[0], events=paths[1], max_bad_share=1.0)
    found = {problem.kind: problem.count for problem in log.reading.problems}
    assert found == Counter(" ".join(kinds for *_, kinds, _ in MISFITS).split())
    assert log.sessions == sum(kept for *_, kept in MISFITS)


def test_clicks_without_a_displayed_list_are_a_share_of_the_clicks(tmp_path):
    strays = [event(f"before {number}", "a", 1) for number in range(12)]
    paths = written(tmp_path, "json", QUERIES, [*EVENTS, *strays, event("u1", None, 1)])
    with pytest.raises(BadLogError, match=r"13 of 16 clicks are bad, a share of 0\.812 where none"):
        read_log(paths[0], events=paths[1])
    log = read_log(paths[0], events=paths[1], max_bad_share=1.0)
    assert happenings(log) == EXPECTED
    assert (log.reading.bad, log.reading.clicks) == (0, 16)
    assert log.reading.lost["clicks"] == (13, 16)


def test_clicks_add_up_to_the_events_of_the_file(tmp_path):
    """A click is counted once, wherever it ends; what is more is a repeated click."""
    events = [
        *3 * [event("u1", "b", 2)],
        *2 * [event("u3", "zz", 9)],
        *4 * [event("before", "a", 1)],
        *2 * [event("before", None, 1)],
        *2 * [event("u1", None, 1)],
        *3 * [event(None, "a", 1)],
        *2 * [event("u4", "y", 1)],
        *2 * [event("u4", "x", 1)],
    ]
    queries = [*QUERIES, query("u4", "one", ["x", "y"]), query("u4", "two", ["y"])]
    paths = written(tmp_path, "json", queries, events)
    reading = read_log(paths[0], events=paths[1], max_bad_share=1.0).reading
    found = {problem.kind: problem.count for problem in reading.problems}
    assert found["no_query"] == 1 + 3
    assert found["no_object"] == 2 + 2
    assert found["which_list"] == 1
    assert found["repeated_click"] == 2 + 1 + 3 + 1 + 1
    assert reading.clicks + found["repeated_click"] == len(events)
    assert reading.lost["clicks"] == (4 + 4 + 1, 3 + 4 + 4 + 1)


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


def searched(query_id, user_query, application="shop"):
    """A record as programs write it that log what was seen: no hits at all."""
    record = query(query_id, user_query, [], "c1")
    del record["query_response_hit_ids"]
    return {**record, "application": application}


def seen(query_id, documents, start=0, application="shop"):
    return [
        {**event(query_id, document, number, "impression"), "application": application}
        for number, document in enumerate(documents, start)
    ]


def bulk(path, queries, events):
    """One file of both, as engines load it: a line that says where to, then the record."""
    records = [("ubi_queries", q) for q in queries] + [("ubi_events", e) for e in events]
    return lines(
        path,
        [
            line
            for number, (index, record) in enumerate(records)
            for line in ({"index": {"_index": index, "_id": str(number)}}, record)
        ],
    )


@pytest.mark.parametrize("start", [0, 1])
def test_impressions_are_the_list_where_there_are_no_hits(tmp_path, start):
    queries = [QUERIES[0], searched("u2", "ram"), searched("u3", "ram")]
    events = [
        *seen("u2", ["x", "y"], start),
        *seen("u3", ["y", "x", "z"], start),
        event("u3", "x", start + 1),
        event("u1", "b", start + 1),
    ]
    paths = written(tmp_path, "json", queries, reversed(events))
    log = read_log(paths[0], events=paths[1])
    assert happenings(log) == {
        ("toner", ("a", "b", "c"), (False, True, False)): 1,
        ("ram", ("x", "y"), (False, False)): 1,
        ("ram", ("y", "x", "z"), (False, True, False)): 1,
    }
    (problem,) = log.reading.problems
    assert (problem.kind, problem.count) == ("from_impressions", 2)
    assert problem.example == f"such as query_id 'u2'; positions count from {start}"


def test_every_application_counts_from_where_its_own_events_begin(tmp_path):
    queries = [searched("u1", "ram", "old"), searched("u2", "ram", "new")]
    events = [*seen("u1", ["x", "y"], 1, "old"), *seen("u2", ["x", "y"], 0, "new")]
    paths = written(tmp_path, "json", queries, events)
    log = read_log(paths[0], events=paths[1])
    assert happenings(log) == {("ram", ("x", "y"), (False, False)): 2}
    assert log.reading.problems[0].example.endswith("count from 0 in 'new', from 1 in 'old'")


def test_where_positions_begin_can_be_told(tmp_path):
    paths = written(tmp_path, "json", [QUERIES[0], searched("u2", "ram")], seen("u2", ["x"], 1))
    log = read_log(paths[0], events=paths[1], first_position=0, max_bad_share=1.0)
    assert happenings(log) == {("toner", ("a", "b", "c"), (False, False, False)): 1}
    kinds = {problem.kind for problem in log.reading.problems}
    assert kinds == {"gap", "from_impressions", "no_action"}


MISFIT_IMPRESSIONS = [
    (seen("u4", ["x", "y"])[:1] + seen("u4", ["x", "y", "z"])[2:], "gap from_impressions", 3),
    ([*seen("u4", ["x"]), *seen("u4", ["y"])], "same_position from_impressions", 3),
    (seen("u4", ["x", "x"]), "same_document from_impressions", 3),
    (seen("u4", ["x", None]), "nameless_impression from_impressions", 4),
    ([event("u4", "x", None, "impression")], "missing_value from_impressions", 3),
    (seen("u9", ["x"]), "unknown_query nothing_shown", 3),
    (seen("u3", ["x", "007", "zz"]), "unlisted_impression nothing_shown", 3),
    ([], "nothing_shown", 3),
    ([*seen("u4", ["x", "y"]), *seen("u4", ["x", "y"])], "from_impressions", 4),
    ([*seen("u4", ["x", "y"]), event("u4", "x", 1)], "other_position from_impressions", 4),
]


def test_impressions_that_do_not_fit_are_counted(tmp_path):
    queries, events = [], []
    for number, (more, *_) in enumerate(MISFIT_IMPRESSIONS):
        queries += apart(str(number), [*QUERIES, searched("u4", "odd")])
        events += apart(str(number), [event("u1", "b", 1), *seen("u2", ["a"]), *more])
    paths = written(tmp_path, "json", queries, events)
    log = read_log(paths[0], events=paths[1], max_bad_share=1.0)
    found = {problem.kind: problem.count for problem in log.reading.problems}
    assert found == Counter(" ".join(kinds for _, kinds, _ in MISFIT_IMPRESSIONS).split())
    assert log.sessions == sum(kept for *_, kept in MISFIT_IMPRESSIONS)


def test_what_is_asked_again_while_someone_types_is_one_search(tmp_path):
    """Each keystroke writes a record under the same id; what was returned at last is the list."""
    typed = [query("u1", "ton", []), *QUERIES, query("u1", "toner", [])]
    paths = written(tmp_path, "json", typed, EVENTS)
    log = read_log(paths[0], events=paths[1])
    assert happenings(log) == EXPECTED
    assert log.reading.problems == ()
    # Clients and times are those of the queries.
    assert {client.name: client.clicks for client in log.reading.clients} == {"c1": 2, "c2": 1}


def typed(user_query, *events):
    return [{**record, "user_query": user_query} for record in events]


def test_lists_of_several_queries_under_one_id_are_a_session_each(tmp_path):
    """The document tells to which list an event belongs; where both have it, the query does."""
    asked = [
        *QUERIES,
        query("u4", "red", []),
        query("u4", "red mcase", ["a", "b"]),
        query("u4", "red case", ["c", "b", "d"]),
    ]
    events = [
        *EVENTS,
        *typed("red case", event("u4", "a", 1), event("u4", "b", 2)),
        *typed(None, event("u4", "d", 3)),
        *typed("red mcase", event("u4", "b", 2, "add_to_cart")),
    ]
    paths = written(tmp_path, "json", asked, events)
    log = read_log(paths[0], events=paths[1], event_kinds=["add_to_cart"])
    assert happenings(log) == {
        **EXPECTED,
        ("red mcase", ("a", "b"), (True, False)): 1,
        ("red case", ("c", "b", "d"), (False, True, True)): 1,
    }
    assert log.event("add_to_cart").sum() == 2
    assert log.reading.clicks == 6
    (problem,) = log.reading.problems
    assert (problem.kind, problem.count) == ("several_lists", 1)


def test_a_click_outside_several_lists_is_a_problem_of_the_list_whose_query_it_names(tmp_path):
    asked = [query("u4", "one", ["x"], "c1"), query("u4", "two", ["y"], "c2")]
    paths = written(tmp_path, "json", asked, typed("two", event("u4", "zz", 1)))
    log = read_log(paths[0], events=paths[1], max_bad_share=0.5)
    assert log.sessions == 2
    problem = log.reading.problems[0]
    assert problem.example == "session 'u4: two' has a click on 'zz', which it does not show"


def test_impressions_of_several_queries_under_one_id_are_a_session_each(tmp_path):
    asked = [searched("u1", "ram"), searched("u1", "rom"), searched("u1", "r")]
    seen_each = [*typed("ram", *seen("u1", ["x", "y"])), *typed("rom", *seen("u1", ["z", "x"]))]
    events = [*seen_each, event("u1", "z", 0), *typed("ram", event("u1", "x", 0))]
    paths = written(tmp_path, "json", asked, events)
    log = read_log(paths[0], events=paths[1])
    assert happenings(log) == {
        ("ram", ("x", "y"), (True, False)): 1,
        ("rom", ("z", "x"), (True, False)): 1,
    }


def test_impressions_that_name_none_of_several_queries_are_dropped(tmp_path):
    asked = [*QUERIES, searched("u4", "ram"), searched("u4", "rom")]
    paths = written(tmp_path, "json", asked, [*seen("u4", ["x", "y"], 1), event("u4", "x", 1)])
    log = read_log(paths[0], events=paths[1], max_bad_share=0.5)
    assert log.sessions == 3
    assert log.reading.problems[0].example == "session 'u4' holds queries 'ram' and 'rom'"


@pytest.mark.parametrize("name", ["both.ndjson", "both.json.gz"])
def test_one_bulk_file_may_hold_queries_and_events(tmp_path, name):
    path = bulk(tmp_path / "both.ndjson", QUERIES, EVENTS)
    if name.endswith("gz"):
        (tmp_path / name).write_bytes(gzip.compress(path.read_bytes()))
    log = read_log(tmp_path / name, events=tmp_path / name)
    assert happenings(log) == EXPECTED
    assert log.reading.problems == ()


def test_keys_that_appear_late_in_a_file_are_read(tmp_path):
    """A database guesses columns from the first 20,480 lines."""
    many = [searched(f"n{number}", "none") for number in range(21_000)]
    path = bulk(tmp_path / "both.ndjson", [*many, *QUERIES], EVENTS)
    assert happenings(read_log(path, events=path)) == EXPECTED


def test_further_actions_are_kept_as_events(tmp_path):
    events = [
        *copy.deepcopy(EVENTS),
        event("u3", "007", 2, "add_to_cart"),
        event("u3", "007", 2, "add_to_cart"),
        event("u3", "zz", 9, "add_to_cart"),
        event("u9", "x", 1, "add_to_cart"),
    ]
    for record, seconds in zip(events, (30.5, 2.25), strict=False):
        record["event_attributes"]["dwell_time"] = seconds
    paths = written(tmp_path, "json", QUERIES, events)
    log = read_log(
        paths[0],
        events=paths[1],
        event_kinds=["cart", "dwell_time", "click"],
        columns={"cart": "add_to_cart"},
    )
    assert happenings(log) == EXPECTED
    assert list(log.events) == ["cart", "dwell_time"]
    assert sorted(log.event("cart").sum(axis=0)) == [0, 1, 2]
    assert log.event("dwell_time").sum(axis=0).tolist() == [2.25, 30.5, 0]
    problems = {problem.kind: problem.count for problem in log.reading.problems}
    assert problems["stray_event"] == 2


def test_an_action_that_nobody_did_is_named_with_those_that_were(tmp_path):
    paths = written(tmp_path, "json")
    with pytest.raises(DataError, match="no event 'purchase'; the actions are click, add_to_cart"):
        read_log(paths[0], events=paths[1], event_kinds=["purchase"])
    with pytest.raises(DataError, match="no event with a dwell_time; the actions are"):
        read_log(paths[0], events=paths[1], event_kinds=["dwell_time"])


def test_a_time_below_zero_is_refused(tmp_path):
    wrong = event("u1", "b", 2)
    wrong["event_attributes"]["dwell_time"] = -4
    right = event("u1", "b", 2)
    right["event_attributes"]["dwell_time"] = 40
    paths = written(tmp_path, "json", QUERIES, [wrong, right])
    with pytest.raises(DataError, match=r"session 'u1' has '-4\.0' as the amount of the event"):
        read_log(paths[0], events=paths[1], event_kinds=["dwell_time"])


def test_an_export_that_shows_nothing_is_refused(tmp_path):
    paths = written(tmp_path, "json", [searched("u1", "ram")], [event("u1", "x", 1)])
    with pytest.raises(DataError, match="no query has query_response_hit_ids, and none an impress"):
        read_log(paths[0], events=paths[1])


@pytest.mark.parametrize("name", ["query_response_object_ids", "query_response_objects_ids"])
def test_the_names_of_older_versions_are_understood(tmp_path, name):
    """UBI 1.0 has positions as `ordinal.index`, and plugins of its time named hits otherwise."""
    queries, events = copy.deepcopy(QUERIES), copy.deepcopy(EVENTS)
    for record in queries:
        record[name] = record.pop("query_response_hit_ids")
    for record in events:
        position = record["event_attributes"]["position"]
        position["ordinal"] = {"index": position["ordinal"]}
    asked, done = written(tmp_path, "json", queries, events)
    log = read_log(asked, events=done)
    assert happenings(log) == EXPECTED
    assert log.reading.problems == ()
    log = read_log(asked, events=lines(done, [event("u1", "b", {"index": 3})]))
    assert [problem.kind for problem in log.reading.problems] == ["other_position"]


def test_impressions_with_gaps_are_read_where_lists_are_partial(tmp_path):
    queries = [searched("u1", "toner"), searched("u2", "toner")]
    events = [event("u1", "a", 1, "impression"), event("u2", "c", 3, "impression")]
    asked, done = written(tmp_path, "json", queries, [*events, event("u2", "c", 3)])
    log = read_log(asked, events=done, partial=True)
    assert log.clicks_per_list.sum(axis=0).tolist() == [0, 0, 1]


def test_where_no_event_is_a_click_the_actions_are_named(tmp_path):
    queries, events = written(tmp_path, "json")
    log = read_log(queries, events=events, actions=("item_click",))
    (found,) = [problem for problem in log.reading.problems if problem.kind == "no_action"]
    assert found.example.startswith("the actions are click, add_to_cart")
