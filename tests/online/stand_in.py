"""A stand-in for the service: the page's files, a state that tests set, and a stream of changes."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import dualrank.online

PAGE = Path(dualrank.online.__file__).parent / "page"
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
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
        self.number = 0
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
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def tell(self, **part):
        with self.changed:
            self.state.update(part)
            self.part = part
            self.number += 1
            self.changed.notify_all()

    def close(self):
        self.ending = True
        with self.changed:
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()

    def get(self, request):
        path = request.path.lstrip("/") or "index.html"
        if path == "status":
            return self.send(request, 200, json.dumps(self.state).encode(), "application/json")
        if path == "stream":
            return self.stream(request)
        file = PAGE / path
        if file.parent != PAGE or not file.exists():
            return self.send(request, 404, b"{}", "application/json")
        return self.send(request, 200, file.read_bytes(), KINDS[file.suffix])

    def post(self, request):
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        self.asked.append((request.path, body, request.headers.get("Authorization")))
        status, said = 200, {}
        if request.path == "/rollback":
            status, said = self.answer_to_rollback
            if request.headers.get("Authorization") != f"Bearer {TOKEN}":
                status, said = 401, {"error": "this needs the token that the server was started with"}
        self.send(request, status, json.dumps(said).encode(), "application/json")

    def send(self, request, status, body, kind):
        request.send_response(status)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(body)))
        request.send_header("Content-Security-Policy", "default-src 'self'")
        request.end_headers()
        request.wfile.write(body)

    def stream(self, request):
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.send_header("Cache-Control", "no-store")
        request.send_header("Connection", "close")
        request.end_headers()
        request.close_connection = True
        request.wfile.write(b": here\n\n")
        request.wfile.flush()
        seen = self.number
        while not self.ending:
            with self.changed:
                self.changed.wait_for(lambda: self.ending or self.number != seen, timeout=1)
                part = None if self.number == seen else self.part
                seen = self.number
            try:
                said = b": still\n\n" if part is None else f"data: {json.dumps(part)}\n\n".encode()
                request.wfile.write(said)
                request.wfile.flush()
            except OSError:
                return


def a_state(*, demo=True, minutes=4.0, now=None):
    """What a service in the middle of a demo would say."""
    import numpy as np

    rng = np.random.default_rng(0)
    now = time.time() if now is None else now
    start = now - 60 * minutes
    turn = start + 120
    rounds, quality, happened, versions = [], [], [], []
    believed = np.log(curve(0.6))
    number, live = 1, 1
    happened.append({"time": start, "version": 1, "what": "live", "why": "the model given at start"})
    versions.append(
        {"number": 1, "made": start, "state": "live", "why": "the model given at start", "sessions": 3000, "parent": None, "since": start}
    )
    for i, moment in enumerate(np.arange(start + 6, now, 6)):
        eta = 0.5 if moment < turn else 1.5
        believed += 0.25 * (np.log(curve(eta)) - believed) + rng.normal(0, 0.012, 10)
        believed[0] = 0
        wide = np.sqrt(np.arange(10)) * (0.03 + 0.05 * eta) / np.sqrt(1 + i / 8)
        rounds.append(
            {"time": moment, "sessions": 1800 * (i + 1), "clicks": int(1500 * (i + 1)), "delay": 5 + rng.random(), "version": live,
             "examination": list(np.exp(believed)), "low": list(np.exp(believed - wide)), "high": list(np.exp(believed + wide)),
             "worth": 2.1 + 0.3 * (1 - np.exp(-i / 12)) + rng.normal(0, 0.03), "worth_low": 2.0 + 0.3 * (1 - np.exp(-i / 12)), "worth_high": 2.2 + 0.3 * (1 - np.exp(-i / 12))}
        )
        if i % 2 == 1:
            number += 1
            what = "refused" if rng.random() < 0.25 else "live"
            why = (
                "held-out clicks find it no worse: +0.4% ± 0.6% over 2,310 sessions"
                if what == "live"
                else "held-out clicks find it worse than version "
                f"{live}: −1.2% ± 0.5% over 2,190 sessions"
            )
            if what == "live":
                versions[live - 1]["state"] = "replaced"
                live = number
            versions.append(
                {"number": number, "made": moment, "state": what, "why": why, "sessions": 1800 * (i + 1), "parent": live, "since": moment if what == "live" else None}
            )
            happened.append({"time": moment, "version": number, "what": what, "why": why})
    for moment in np.arange(start, now, 2):
        gone = (moment - start) / 60
        dip = 0.012 * np.exp(-((moment - turn - 20) / 15) ** 2) if moment > turn else 0
        shown = 0.61 + 0.06 * (1 - np.exp(-gone * 1.3)) - dip + rng.normal(0, 0.0008)
        quality.append({"time": moment, "shown": shown, "frozen": 0.612})
    state = {
        "time": now,
        "live": versions[live - 1],
        "versions": versions,
        "happened": happened,
        "rounds": rounds,
        "alarms": [{"time": turn + 11, "kind": "curve", "said": "the curve moved beyond its interval: position 10 is examined 0.12 as often as the first, and was 0.29 (0.26 to 0.33)"}],
        "counts": {"impressions": 75_312, "events": 61_870},
        "demo": None,
    }
    if demo:
        state["demo"] = {
            "knobs": {"eta": 1.5, "noise": 0.1, "rate": 300},
            "limits": {"eta": [0, 2, 0.1], "noise": [0, 0.4, 0.05], "rate": [0, 600, 20]},
            "examination": curve(1.5),
            "start": list(np.array(curve(0.25))),
            "truths": [
                {"time": start, "eta": 0.5, "noise": 0.1, "examination": curve(0.5)},
                {"time": turn, "eta": 1.5, "noise": 0.1, "examination": curve(1.5)},
            ],
            "next_change": None,
            "quality": quality,
        }
    return state
