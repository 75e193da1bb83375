"""What a service says of itself: status, stream, metrics, documents, pages."""

import asyncio
import json
import re

import pytest

from dualrank.errors import DataError
from dualrank.online.learner_record import Alarm, LearnerRecord, Round
from dualrank.online.service.page_files import page_files
from dualrank.online.service.service_app import make_app


def a_round(**more):
    return Round(
        time=10.0, sessions=120, clicks=30, delay=1.5, version=1,
        examination=[1.0, 0.5], low=[1.0, 0.4], high=[1.0, 0.6], **more,
    )  # fmt: skip


def test_status_has_what_the_page_shows(asking, versions, query):
    alarm = Alarm(11.0, "curve", "<b>the curve moved</b>")
    LearnerRecord([a_round()], [alarm]).write(versions.folder)
    asking.post("/rank", query(1, 2))
    found = asking.get("/status").json()
    assert found["live"]["number"] == found["answers"] == 1
    assert found["versions"][0]["state"] == "live"
    assert found["happened"][0]["what"] == "live"
    assert found["rounds"][0]["examination"] == [1.0, 0.5]
    assert found["rounds"][0]["worth"] is None
    assert found["alarms"] == [{"time": 11.0, "kind": "curve", "said": "<b>the curve moved</b>"}]
    assert found["counts"]["impressions"] == 1
    assert found["demo"] is None


def test_a_damaged_record_of_the_learner_does_not_end_the_status(asking, versions):
    (versions.folder / "learner.json").write_text('{"rounds": [{"a": 1}], "alarms": []}')
    assert asking.get("/status").json()["rounds"] == []


def test_the_stream_tells_everything_once_and_then_what_changed(asking, query, monkeypatch):
    monkeypatch.setattr("dualrank.online.service.service_status.EVERY", 0.02)
    monkeypatch.setattr("dualrank.online.service.service_status.FRESH", 0.0)
    service = asking.service

    async def listen():
        stopping, heard = asyncio.Event(), []
        async for part in service.board.stream(stopping):
            if part.startswith(b"data:"):
                heard.append(json.loads(part.removeprefix(b"data:")))
            if len(heard) == 1:
                body = json.dumps(query(1, 2)).encode()
                await service.rank(body)
            if len(heard) == 2:
                stopping.set()
        return heard

    first, second = asyncio.run(listen())
    assert {"live", "versions", "happened", "rounds", "alarms", "counts", "demo"} <= first.keys()
    assert second.keys() == {"time", "counts"}
    assert second["counts"]["impressions"] == 1


def test_streams_have_an_end_and_a_limit(serving, monkeypatch):
    monkeypatch.setattr("dualrank.online.service.service_status.EVERY", 0.02)
    asking = serving(max_streams=1)

    async def two():
        asking.service.stopping = asyncio.Event()
        async with asking.client() as client:
            both = [asyncio.ensure_future(client.get("/stream")) for _ in range(2)]
            (other,), (one,) = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            asking.service.stopping.set()
            return await one, await other

    one, other = asyncio.run(two())
    assert one.headers["content-type"].startswith("text/event-stream")
    assert one.text.startswith("retry:")
    assert other.status_code == 503
    assert "1 pages are watching already" in other.json()["error"]


def test_metrics_count_what_happened(asking, versions, query):
    LearnerRecord(
        [a_round(worth=0.7)], [Alarm(1.0, "client", "x"), Alarm(2.0, "client", "y")]
    ).write(versions.folder)
    found = asking.post("/rank", query(1, 2)).json()
    event = {"impression_id": found["impression_id"], "doc_id": "d0"}
    asking.post("/events", event)
    asking.post("/events", event)
    asking.post("/events", {"impression_id": "x", "doc_id": "d0"})
    asking.get("/no/such/path")
    text = asking.get("/metrics").text
    for line in (
        'dualrank_requests_total{route="/rank",status="200"} 1.0',
        'dualrank_requests_total{route="/events",status="422"} 1.0',
        'dualrank_requests_total{route="other",status="404"} 1.0',
        'dualrank_request_seconds_count{route="/rank"} 1.0',
        "dualrank_impressions_total 1.0",
        'dualrank_events_total{outcome="new"} 1.0',
        'dualrank_events_total{outcome="again"} 1.0',
        'dualrank_events_total{outcome="refused"} 1.0',
        "dualrank_waiting_for_commit 0.0",
        "dualrank_live_version 1.0",
        "dualrank_ready 1.0",
        'dualrank_versions{state="live"} 1.0',
        'dualrank_alarms{kind="client"} 2.0',
        "dualrank_learner_delay_seconds 1.5",
        "dualrank_learner_rounds 1.0",
        "dualrank_learner_sessions_total 120.0",
        'dualrank_examination{position="2"} 0.5',
        'dualrank_examination_high{position="2"} 0.6',
        "dualrank_corrected_clicks 0.7",
    ):
        assert line in text.splitlines(), line


def test_metrics_are_what_prometheus_reads(asking, query):
    from prometheus_client.parser import text_string_to_metric_families

    asking.post("/rank", query(1, 2))
    names = {each.name for each in text_string_to_metric_families(asking.get("/metrics").text)}
    assert {"dualrank_requests", "dualrank_request_seconds", "dualrank_live_version"} <= names


def test_routes_that_nobody_has_do_not_fill_the_metrics(asking):
    for i in range(20):
        asking.get(f"/made/up/{i}")
    text = asking.get("/metrics").text
    assert 'dualrank_requests_total{route="other",status="404"} 20.0' in text
    assert "/made" not in text


def test_a_service_that_stops_is_not_ready(asking):
    assert asking.get("/readyz").json() == {"status": "ok"}
    asking.service.stopping.set()
    answer = asking.get("/readyz")
    assert (answer.status_code, answer.json()["error"]) == (503, "the service is stopping")
    assert asking.get("/healthz").status_code == 200


@pytest.mark.parametrize("path", sorted([*page_files(), "/docs"]))
def test_pages_load_nothing_from_elsewhere(asking, path):
    answer = asking.get(path)
    assert answer.status_code == 200
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    links = re.findall(r"""(?:src|href|url|from)\s*[=(]?\s*["'](https?:)?//""", answer.text)
    assert links == []


def test_the_document_says_the_limits_and_every_route(serving, token, tmp_path):
    asking = serving(max_documents=7, max_events=9)
    document = asking.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    assert schemas["Query"]["properties"]["documents"]["maxItems"] == 7
    assert schemas["Events"]["properties"]["events"]["maxItems"] == 9
    assert document["paths"]["/rank"]["post"]["security"] == []
    assert document["paths"]["/rollback"]["post"]["security"] == [{"token": []}]
    page = asking.get("/docs").text
    for path in document["paths"]:
        assert f" {path}</code>" in page


class Demo:
    def __init__(self):
        self.values = {"eta": 1.0}

    def status(self):
        return self.values

    def change(self, values):
        if not isinstance(values, dict) or values.keys() - self.values.keys():
            raise DataError("there is no such knob")
        self.values |= values
        return self.values


def test_a_demo_has_knobs_for_our_own_page(serving, token):
    """Simulated users are turned without a token, by a page of this service alone."""
    asking = serving(token=token)
    assert asking.post("/demo", {"eta": 2}).status_code == 404
    asking.service.demo = Demo()
    asking.app = make_app(asking.service)
    assert asking.post("/demo", {"eta": 2}).json() == {"eta": 2}
    assert asking.get("/status").json()["demo"] == {"eta": 2}
    for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}):
        assert asking.post("/demo", {"eta": 3}, headers=headers).status_code == 403
    for body in (b"[]", b"{", b'{"x":1}', b'{"eta":NaN}'):
        assert asking.post("/demo", body).status_code == 422
