"""/events: what became of each, and that nobody can make one up."""

import asyncio

from dualrank.errors import StorageError
from dualrank.online.records import Impression
from dualrank.online.service.service_settings import ServiceSettings
from dualrank.online.service.serving import open_transport

from ...waiting import wait_until


def shown(asking, query, **more):
    return asking.post("/rank", query(3, 2, 1, **more)).json()["impression_id"]


def test_an_event_is_new_once(asking, query):
    event = {"impression_id": shown(asking, query), "doc_id": "d1"}
    first = asking.post("/events", event)
    assert first.status_code == 200
    assert first.json() == {"new": 1, "again": 0, "late": 0, "refused": []}
    again = asking.post("/events", event)
    assert (again.status_code, again.json()["again"]) == (200, 1)
    (kept,) = asking.transport.events.values()
    assert (kept.doc_id, kept.kind, kept.amount) == ("d1", "click", 1.0)


def test_events_with_ids_of_their_own_count_each(asking, query):
    event = {"impression_id": shown(asking, query), "doc_id": "d1", "kind": "dwell", "amount": 2.5}
    events = [*(event | {"event_id": name} for name in "aba"), event]
    found = asking.post("/events", {"events": events}).json()
    assert (found["new"], found["again"]) == (3, 1)
    assert {each.amount for each in asking.transport.events.values()} == {2.5}


def test_forged_and_misplaced_events_are_refused_one_by_one(asking, query):
    real = shown(asking, query, displayed=2)
    events = [
        {"impression_id": "made-up", "doc_id": "d1"},
        {"impression_id": real, "doc_id": "d1"},
        {"impression_id": real, "doc_id": "d2"},
        {"impression_id": real, "doc_id": "d1", "kind": "query_id"},
        {"impression_id": real, "doc_id": "../../secret"},
    ]
    answer = asking.post("/events", {"events": events})
    assert answer.status_code == 200
    assert answer.json()["new"] == 1
    why = {each["index"]: each["why"] for each in answer.json()["refused"]}
    assert why.keys() == {0, 2, 3, 4}
    assert why[0] == "no such impression was displayed"
    assert why[2] == why[4] == "this document was not displayed in that impression"
    assert "events of this kind are not taken" in why[3]


def test_where_all_are_refused_the_answer_says_so(asking):
    answer = asking.post("/events", {"impression_id": "made-up", "doc_id": "d1"})
    assert answer.status_code == 422
    assert answer.json()["refused"] == [{"index": 0, "why": "no such impression was displayed"}]


def test_nobody_can_take_the_id_of_an_event_that_has_none(asking, query):
    """Without an id of its own an event has one that no client can send."""
    event = {"impression_id": shown(asking, query), "doc_id": "d1"}
    assert asking.post("/events", event | {"event_id": "d1 click"}).json()["new"] == 1
    assert asking.post("/events", event).json()["new"] == 1


def test_a_kind_may_be_as_long_as_a_column(asking, query):
    event = {"impression_id": shown(asking, query), "doc_id": "d1"}
    assert asking.post("/events", event | {"kind": "k" * 40}).json()["new"] == 1
    answer = asking.post("/events", event | {"kind": "k" * 41})
    assert (answer.status_code, "kind: " in answer.json()["error"]) == (422, True)


def test_an_id_belongs_to_a_document_and_a_kind(asking, query):
    event = {"impression_id": shown(asking, query), "doc_id": "d1", "event_id": "1"}
    for other in ({}, {"doc_id": "d2"}, {"kind": "purchase"}):
        assert asking.post("/events", event | other).json()["new"] == 1
        assert asking.post("/events", event | other).json()["again"] == 1
    assert len(asking.transport.events) == 3


def test_what_cannot_be_written_is_not_acknowledged(asking, query):
    event = {"impression_id": shown(asking, query), "doc_id": "d1"}
    asking.transport.problem = "the disk is full"
    answer = asking.post("/events", event)
    assert answer.status_code == 503
    assert answer.json() == {"error": "the disk is full"}
    assert int(answer.headers["retry-after"]) > 0
    assert asking.get("/readyz").status_code == 503
    asking.transport.problem = None
    assert asking.post("/events", event).json()["new"] == 1
    assert asking.get("/readyz").status_code == 200


def test_a_service_whose_log_cannot_be_written_is_not_ready(tmp_path, monkeypatch, serving):
    def full(*args):
        raise StorageError("the disk of the log is full")

    monkeypatch.setattr("dualrank.online.events.collector.write_segment", full)
    asking = serving()
    transport = open_transport(str(tmp_path / "events"), ServiceSettings(wait=0.0, every=0.1))
    try:
        asking.service.transport = transport
        assert asking.get("/readyz").status_code == 200
        transport.show(Impression("i", 0.0, "q", ("d",), 1, 0, "", b""))
        wait_until(lambda: transport.problem)
        answer = asking.get("/readyz")
        assert (answer.status_code, "the disk of the log is full" in answer.text) == (503, True)
        monkeypatch.undo()
        wait_until(lambda: transport.problem is None)
        assert asking.get("/readyz").status_code == 200
    finally:
        transport.close()


def test_a_disk_that_hangs_is_said(asking, query, monkeypatch):
    async def never(events):
        await asyncio.Event().wait()

    event = {"impression_id": shown(asking, query), "doc_id": "d1"}
    monkeypatch.setattr(asking.transport, "record", never)
    monkeypatch.setattr("dualrank.online.service.service.LONGEST_COMMIT", 0.05)
    answer = asking.post("/events", event)
    assert answer.status_code == 503
    assert "send them again: each counts once" in answer.json()["error"]
