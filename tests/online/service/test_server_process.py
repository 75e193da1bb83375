"""`dualrank serve` as a process: clients that are slow, odd or gone, and how it ends."""

import http.client
import inspect
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from dualrank.cli.learn_command import learn
from dualrank.errors import SettingsError
from dualrank.online.events.event_store import WAIT
from dualrank.online.service.service_settings import ServiceSettings
from dualrank.online.service.serving import serve

PATIENCE = 1.0


class Server:
    """A server process, and what it said."""

    def __init__(self, folder, model, *words):
        model.save(folder / "model")
        self.events = folder / "events"
        self.log = folder / "log"
        command = [sys.executable, "-m", "dualrank", "serve", str(folder / "model")]
        command += ["--events", str(self.events), "--port", "0", "--json", *words]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        lines = []
        while not lines or lines[-1] != "}\n":
            lines.append(self.process.stdout.readline())
            assert lines[-1], self.log.read_text()
        self.said = json.loads("".join(lines))
        self.port = int(self.said["url"].rpartition(":")[2])

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
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
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)


@pytest.fixture(scope="module")
def server(tmp_path_factory, model_numbered):
    made = Server(tmp_path_factory.mktemp("server"), model_numbered(1), "--patience", str(PATIENCE))
    yield made
    made.process.kill()
    made.process.wait()


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
    assert server.said["version"] == 1
    assert server.said["url"].startswith("http://127.0.0.1:")
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


@pytest.mark.parametrize("start", [b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "])
def test_a_head_that_does_not_come_is_not_waited_for(server, start):
    with server.connect() as connection:
        connection.sendall(start)
        begun = time.monotonic()
        assert read_all(connection) == b""
        assert time.monotonic() - begun < PATIENCE + 3


def test_a_body_that_does_not_come_is_not_waited_for(server):
    with server.connect() as connection:
        connection.sendall(
            b"POST /rank HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100\r\n\r\n{"
        )
        answer = read_all(connection)
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


def test_with_a_learner_every_line_of_the_log_is_json_too(tmp_path, model_numbered):
    """The learner lives as long as it takes to say how far it is, and is asked to stop."""
    server = Server(tmp_path, model_numbered(1), "--learn")
    try:
        end = time.monotonic() + 60
        while not (server.events / "_versions" / "learning").exists():
            assert time.monotonic() < end, server.log.read_text()
            time.sleep(0.1)
        time.sleep(6)  # a command says after five seconds how far it is
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(20) == 0
    finally:
        server.process.kill()
        server.process.wait()
    said = [json.loads(line) for line in server.log.read_text().splitlines()]
    assert [each["message"] for each in said][-1] == "stopped"
    assert any(each["message"].startswith("the learner is process") for each in said)
    assert server.process.stdout.read() == ""


def test_two_servers_do_not_share_a_folder_of_events(server):
    with pytest.raises(SettingsError, match=f"process {server.process.pid} is writing here"):
        serve(server.events.parent / "model", server.events, ServiceSettings(port=0))


def test_a_port_that_is_taken_is_said(server, tmp_path):
    settings = ServiceSettings(port=server.port)
    with pytest.raises(SettingsError, match=f"127.0.0.1:{server.port}: cannot listen there"):
        serve(server.events.parent / "model", tmp_path / "events", settings)
    assert not (tmp_path / "events").exists()


def test_asked_to_stop_it_answers_what_is_under_way_and_keeps_all(server):
    """The last test: requests go on, a page watches, and the process is asked to stop."""
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
    time.sleep(0.7)
    body = json.dumps(QUERY).encode()
    late = server.connect()
    late.sendall(
        b"POST /rank HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body) + body[:10]
    )
    time.sleep(0.5)  # the server has read this much of it, on a busy machine too
    asked = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    late.sendall(body[10:])
    assert read_all(late).startswith(b"HTTP/1.1 200")
    read_all(watching)
    assert server.process.wait(10) == 0
    assert time.monotonic() - asked < 10
    for thread in threads:
        thread.join()
    said = [json.loads(line) for line in server.log.read_text().splitlines()]
    assert [each["message"] for each in said][-2:] == ["stopping", "stopped"]
    assert {each["level"] for each in said} <= {"info", "warning"}

    from dualrank.online.events.event_store import EventStore

    with EventStore(server.events) as store:
        kept = store.alone(
            lambda tables: [
                name
                for (name,) in tables.execute(
                    "SELECT impressions.id FROM impressions JOIN events "
                    "ON events.impression = impressions.number"
                )
            ]
        )
    assert len(acknowledged) > 10
    assert set(acknowledged) <= set(kept)
    assert len(kept) == len(set(kept))
    assert os.path.exists(server.events / "_versions" / "versions.json")
