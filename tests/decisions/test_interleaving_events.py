"""What OpenSearch writes: events that say which search configuration a result is from."""

import json

import pytest

from dualrank.decisions.interleaving_log import read_interleaved
from dualrank.errors import DataError


def event(action, session, document, arm, place, query="laptop", **more):
    return {
        "action_name": action,
        "query_id": session,
        "user_query": query,
        "timestamp": "2026-07-01T10:00:00Z",
        "event_attributes": {
            "object": {"object_id": document, "search_config": arm},
            "position": {"ordinal": place},
            **more,
        },
    }


def write(path, events):
    path.write_text("\n".join(map(json.dumps, events)))
    return path


def totals(found):
    credit = (found.credits * found.counts[:, None]).sum(axis=0)
    return dict(zip(found.arms, credit.tolist(), strict=True)), found.sessions


@pytest.fixture
def events():
    """Three searches: two results of each team; clicks for teamA, teamB and teamA, and none."""
    rows = []
    for number in range(3):
        for place, (document, arm) in enumerate(
            [("d1", "teamA"), ("d2", "teamB"), ("d3", "teamB"), ("d4", "teamA")]
        ):
            rows.append(event("impression", f"s{number}", document, arm, place))
    rows.append(event("click", "s0", "d1", "teamA", 0))
    rows.append(event("click", "s1", "d2", "teamB", 1))
    rows.append(event("click", "s1", "d4", "teamA", 3))
    rows.append(event("add_to_cart", "s1", "d4", "teamA", 3))
    return rows


def test_events_of_the_proof_of_concept_are_read(events, tmp_path):
    found = read_interleaved(write(tmp_path / "ubi_events.ndjson", events))
    assert totals(found) == ({"teamA": 2.0, "teamB": 1.0}, 3)
    assert found.queries.tolist() == ["laptop"]


def test_exports_that_wrap_records_are_read(events, tmp_path):
    wrapped = [{"_id": str(i), "_source": each} for i, each in enumerate(events)]
    found = read_interleaved(write(tmp_path / "ubi_events.ndjson", wrapped))
    assert totals(found) == ({"teamA": 2.0, "teamB": 1.0}, 3)


def test_events_of_the_workbench_have_an_id_and_a_uuid(events, tmp_path):
    for each in events:
        about = each["event_attributes"]
        about["object"] = {
            "id": about["object"]["object_id"],
            "search_configuration_uuid": f"uuid-{about['object']['search_config']}",
        }
        about["ab_test_id"] = "bm25-vs-semantic"
    found = read_interleaved(write(tmp_path / "events.ndjson", events))
    assert totals(found) == ({"uuid-teamA": 2.0, "uuid-teamB": 1.0}, 3)
    events[0]["event_attributes"]["ab_test_id"] = "another"
    with pytest.raises(DataError, match=r"several tests \(another, bm25-vs-semantic\); give those"):
        read_interleaved(write(tmp_path / "events.ndjson", events))


def test_clicks_without_searches_are_sessions_of_their_own(events, tmp_path):
    clicks = [each for each in events if each["action_name"] == "click"]
    for each in clicks:
        del each["query_id"], each["user_query"]
    found = read_interleaved(write(tmp_path / "clicks.ndjson", clicks))
    assert totals(found) == ({"teamA": 2.0, "teamB": 1.0}, 3)
    assert found.notes == ("no event has a query_id: every click is taken for a session",)


def test_what_events_lack_is_said(events, tmp_path):
    for each in events:
        del each["event_attributes"]["object"]["search_config"]
    with pytest.raises(DataError, match="no event says which arm its document is of; expected"):
        read_interleaved(write(tmp_path / "a.ndjson", events))
    for each in events:
        each["event_attributes"]["object"] = {"search_config": "teamA"}
    with pytest.raises(DataError, match=r"no event has event_attributes\.object\.object_id"):
        read_interleaved(write(tmp_path / "b.ndjson", events))
    for each in events:
        each["action_name"] = "search"
    with pytest.raises(DataError, match="no event is a click or an impression"):
        read_interleaved(write(tmp_path / "c.ndjson", events))
