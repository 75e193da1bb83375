"""A browser, and a stand-in for the service: a state that tests set, and a stream of changes."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import numpy as np
import pytest

from dualrank.online.service.page_files import FOLDER, HEADERS, KINDS

from ...waiting import PATIENCE

TOKEN = "a secret"
EYES = (0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06)


def curve(eta):
    return [(each / EYES[0]) ** eta for each in EYES]


class StandIn:
    """Serves a state; `tell` changes it and says so to those who follow."""

    def __init__(self, state):
        self.state = state
        self.asked = []
        self.answer_to_rollback = 200, {"live": 1}
        self.changed = threading.Condition()
        self.ending = False
        self.number = self.calls = 0
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                stand_in.get(self)

            def do_POST(self):
                stand_in.post(self)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def tell(self, **part):
        with self.changed:
            self.state.update(part)
            self.part = part
            self.number += 1
            self.changed.notify_all()

    def hang_up(self):
        with self.changed:
            self.calls += 1
            self.changed.notify_all()

    def close(self):
        self.ending = True
        self.hang_up()
        self.server.shutdown()
        self.server.server_close()

    def get(self, request):
        path = request.path.lstrip("/") or "index.html"
        if path == "status":
            return self.send(request, 200, json.dumps(self.state).encode(), "application/json")
        if path == "stream":
            return self.stream(request)
        file = FOLDER / path
        if file.parent != FOLDER or not file.exists():
            return self.send(request, 404, b"{}", "application/json")
        return self.send(request, 200, file.read_bytes(), KINDS[file.suffix])

    def post(self, request):
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        self.asked.append((request.path, body, request.headers.get("Authorization")))
        status, said = 200, {}
        if request.path == "/rollback":
            status, said = self.answer_to_rollback
            if request.headers.get("Authorization") != f"Bearer {TOKEN}":
                why = "this needs the token that the server was started with"
                status, said = 401, {"error": why}
        self.send(request, status, json.dumps(said).encode(), "application/json")

    def send(self, request, status, body, kind):
        request.send_response(status)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(body)))
        for name, value in HEADERS.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)

    def stream(self, request):
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.send_header("Cache-Control", "no-store")
        request.send_header("Connection", "close")
        request.end_headers()
        request.close_connection = True
        with self.changed:
            state, seen, calls = json.dumps(self.state), self.number, self.calls
        request.wfile.write(f"retry: 20\n\ndata: {state}\n\n".encode())
        request.wfile.flush()
        while not self.ending and self.calls == calls:
            with self.changed:
                if self.calls == calls and self.number == seen:
                    self.changed.wait(timeout=1)
                part = None if self.number == seen else self.part
                seen = self.number
            try:
                said = b": still\n\n" if part is None else f"data: {json.dumps(part)}\n\n".encode()
                request.wfile.write(said)
                request.wfile.flush()
            except OSError:
                return


def a_state():
    """What a service says four minutes after the start of a demo, two after users changed."""
    now = time.time()
    start, turn = now - 240, now - 120
    times = np.arange(start + 6, now, 6)
    rounds, versions, happened = [], [], []
    for i, moment in enumerate(times):
        believed = curve(0.5 if moment < turn else 1.5 - np.exp(-(moment - turn) / 20))
        rounds.append(
            {
                "time": moment,
                "sessions": 1800 * (i + 1),
                "clicks": 1500 * (i + 1),
                "delay": 5.5,
                "version": 1 + i // 2,
                "examination": believed,
                "low": [0.9 * each for each in believed],
                "high": [1.1 * each for each in believed],
                "worth": 2.1 + 0.01 * i,
                "worth_low": 2.0 + 0.01 * i,
                "worth_high": 2.2 + 0.01 * i,
            }
        )
    for number, moment in enumerate(times[::4], start=1):
        state = "refused" if number == 4 else "replaced"
        why = f"held-out clicks say so of {number}"
        version = {"number": number, "made": moment, "state": state, "why": why}
        versions.append({**version, "sessions": 1800, "parent": None, "since": moment})
        what = "refused" if number == 4 else "live"
        happened.append({"time": moment, "version": number, "what": what, "why": why})
    versions[-1]["state"] = "live"
    said = "the curve moved: position 10 is examined 0.12 as often as the first, and was 0.29"
    return {
        "time": now,
        "live": versions[-1],
        "versions": versions,
        "happened": happened,
        "rounds": rounds,
        "alarms": [{"time": turn + 11, "kind": "curve", "said": said}],
        "counts": {"impressions": 75_312, "events": 61_870},
        "demo": {
            "knobs": {"eta": 1.5, "noise": 0.1, "rate": 300},
            "limits": {"eta": [0, 2, 0.1], "noise": [0, 0.4, 0.05], "rate": [0, 600, 20]},
            "examination": curve(1.5),
            "start": curve(0.25),
            "truths": [
                {"time": start, "eta": 0.5, "noise": 0.1, "examination": curve(0.5)},
                {"time": turn, "eta": 1.5, "noise": 0.1, "examination": curve(1.5)},
            ],
            "next_change": None,
            "quality": [
                {"time": moment, "shown": 0.61 + i / 1000, "frozen": 0.61}
                for i, moment in enumerate(times)
            ],
        },
    }


@pytest.fixture
def service():
    """A stand-in that is in the middle of a demo."""
    stand_in = StandIn(a_state())
    yield stand_in
    stand_in.close()


class Watched:
    """A page with all that it asked for and complained about."""

    def __init__(self, page):
        self.page = page
        self.complaints, self.hosts = [], set()
        page.set_default_timeout(1_000 * PATIENCE)
        page.on("console", lambda said: self.complaints.append(said.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))


@pytest.fixture(scope="module")
def watched(browser):
    """One page for all tests of a module, because to open one takes longer than to load it."""
    pytest.importorskip("playwright.sync_api").expect.set_options(timeout=1_000 * PATIENCE)
    watched = Watched(browser.new_page())
    yield watched
    watched.page.close()


@pytest.fixture
def watch(watched):
    """Load an address, and wait until the page follows the service."""

    def watch(address):
        watched.page.context.set_offline(False)
        watched.page.goto("about:blank")
        watched.complaints.clear()
        watched.hosts.clear()
        # Whatever /status answers replaces what the stream has said before.
        with watched.page.expect_request_finished(lambda asked: asked.url.endswith("/status")):
            watched.page.goto(address)
        watched.page.get_by_text("following").wait_for()
        watched.page.evaluate("new Promise(requestAnimationFrame)")
        return watched

    return watch
