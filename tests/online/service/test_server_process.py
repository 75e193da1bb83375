"""`dualrank serve` as a process: clients that are slow, odd or gone, and how it ends."""

import http.client
import inspect
import json
import os
import signal
import socket
import threading
import time

import pytest

from dualrank.cli.learn_command import learn
from dualrank.errors import SettingsError
from dualrank.online.events.event_store import WAIT, EventStore
from dualrank.online.service.service_settings import ServiceSettings
from dualrank.online.service.serving import serve

from ...forks import DUALRANK, end_forks, start_fork, wait_for_answer
from ...waiting import wait_until

PATIENCE = 2.0


class Server:
    """A server process with a learner, its answer and its log."""

    def __init__(self, folder, model):
        model.save(folder / "model")
        self.events, self.output, self.log = (folder / each for each in ("events", "out", "log"))
        words = ["serve", folder / "model", "--events", self.events, "--port", 0, "--json"]
        words += ["--learn", "--patience", PATIENCE]
        self.process = start_fork(DUALRANK, *words, output=self.output, errors=self.log)
        self.answer = wait_for_answer(self.process, self.output, self.log)
        self.port = int(self.answer["url"].rpartition(":")[2])

    def logged(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        try:
            kind = {"Content-Type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), kind)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def post(self, path, body):
        status, content = self.ask("POST", path, body)
        return status, json.loads(content)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port))


@pytest.fixture(scope="module")
def server(tmp_path_factory, model_numbered):
    yield Server(tmp_path_factory.mktemp("server"), model_numbered(1))
    end_forks()


QUERY = {
    "query_id": "q",
    "documents": [{"doc_id": f"d{i}", "features": [i, 0]} for i in range(3)],
}


def read_all(connection):
    """What comes until the other side closes."""
    parts = []
    try:
        while part := connection.recv(65_536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def test_it_says_where_it_is_and_answers(server):
    assert server.answer["version"] == 1
    assert server.answer["url"].startswith("http://127.0.0.1:")
    status, found = server.post("/rank", QUERY)
    assert (status, found["results"][0]["doc_id"]) == (200, "d2")
    event = {"impression_id": found["impression_id"], "doc_id": "d2"}
    assert server.post("/events", event) == (200, {"new": 1, "again": 0, "late": 0, "refused": []})
    assert server.post("/events", event)[1]["again"] == 1
    assert server.ask("GET", "/readyz")[0] == 200


def test_every_way_to_collect_waits_as_long():
    """Five minutes: servers, the learner that collects for many, and the store by itself."""
    learn_waits = inspect.signature(learn).parameters["wait"].default
    assert ServiceSettings().wait == learn_waits == WAIT == 300


def test_signed_ids_of_impressions_cannot_be_made_up(server):
    _, found = server.post("/rank", QUERY)
    real = found["impression_id"]
    forged = real[:-2] + ("AA" if real[-2:] != "AA" else "BB")
    status, answer = server.post("/events", {"impression_id": forged, "doc_id": "d2"})
    assert (status, answer["refused"][0]["why"]) == (422, "no such impression was displayed")


@pytest.mark.realtime
def test_a_request_that_does_not_come_is_not_waited_for(server):
    """Neither a head, nor the end of one, nor a body."""
    head = b"POST /rank HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    begun = time.monotonic()
    with server.connect() as silent, server.connect() as half_head, server.connect() as half_body:
        half_head.sendall(head)
        half_body.sendall(head + b"Content-Length: 100\r\n\r\n{")
        assert read_all(silent) == read_all(half_head) == b""
        answer = read_all(half_body)
    assert time.monotonic() - begun < 10 * PATIENCE
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"to arrive" in answer


def test_a_head_without_end_is_refused(server):
    with server.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        try:
            for _ in range(20):
                connection.sendall(b"X-More: " + b"x" * 10_000 + b"\r\n")
        except (ConnectionResetError, BrokenPipeError):
            pass
        assert read_all(connection)[:12] in (b"HTTP/1.1 400", b"")
    assert server.ask("GET", "/healthz")[0] == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
        b"GET\x00 / HTTP/1.1\r\n\r\n",
        b"POST /rank HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /rank HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /rank HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_no_http_is_refused(server, sent):
    with server.connect() as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        assert read_all(connection)[:10] in (b"HTTP/1.1 4", b"")
    assert server.ask("GET", "/healthz")[0] == 200


def test_a_path_that_climbs_is_refused_as_it_came(server):
    with server.connect() as connection:
        connection.sendall(
            b"GET /../../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        )
        assert read_all(connection).startswith(b"HTTP/1.1 404")


def test_two_servers_do_not_share_a_folder_of_events(server):
    with pytest.raises(SettingsError, match=f"process {server.process.pid} is writing here"):
        serve(server.events.parent / "model", server.events, ServiceSettings(port=0))


def test_a_port_that_is_taken_is_said(server, tmp_path):
    settings = ServiceSettings(port=server.port)
    with pytest.raises(SettingsError, match=f"127.0.0.1:{server.port}: cannot listen there"):
        serve(server.events.parent / "model", tmp_path / "events", settings)
    assert not (tmp_path / "events").exists()


@pytest.mark.realtime
def test_asked_to_stop_it_answers_what_is_under_way_and_keeps_all(server):
    """The last test: requests go on, a page watches, and the process is asked to stop.

    The request under way must be complete within `PATIENCE`; 0.1 s is usual. Every line of the log
    is JSON, although there is a learner.
    """
    wait_until((server.events / "_versions" / "learner-state.json").exists, server.log.read_text)
    watching = server.connect()
    watching.sendall(b"GET /stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert watching.recv(10) == b"HTTP/1.1 2"
    acknowledged = []

    def click():
        try:
            while True:
                _, found = server.post("/rank", QUERY)
                event = {"impression_id": found["impression_id"], "doc_id": "d1"}
                if server.post("/events", event)[1]["new"] == 1:
                    acknowledged.append(found["impression_id"])
        except (OSError, http.client.HTTPException):
            return

    threads = [threading.Thread(target=click) for _ in range(4)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(acknowledged) > 40)
    body = json.dumps(QUERY).encode()
    late = server.connect()
    late.sendall(
        b"POST /rank HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body) + body[:10]
    )
    server.ask("GET", "/healthz")  # came later: when it is answered, the server has read the other
    os.kill(server.process.pid, signal.SIGTERM)
    wait_until(lambda: '"stopping"' in server.log.read_text())
    late.sendall(body[10:])
    assert read_all(late).startswith(b"HTTP/1.1 200")
    read_all(watching)
    server.process.join()
    assert server.process.exitcode == 0
    for thread in threads:
        thread.join()
    messages = [each["message"] for each in server.logged()]
    assert messages[-1] == "stopped"
    assert any(each.startswith("the learner is process") for each in messages)
    assert {each["level"] for each in server.logged()} <= {"info", "warning"}
    assert json.loads(server.output.read_text()) == server.answer  # nothing of the learner
    with EventStore(server.events) as store:
        asked = "SELECT i.id FROM impressions i JOIN events e ON e.impression = i.number"
        kept = store.alone(lambda tables: [name for (name,) in tables.execute(asked)])
    assert set(acknowledged) <= set(kept)
    assert len(kept) == len(set(kept))
    assert os.path.exists(server.events / "_versions" / "versions.json")
