"""Real servers, learners and clients over HTTP, and what can be done to them."""

from __future__ import annotations

import http.client
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import dualrank as dr
from dualrank.online import EventStore, RedisStream, Segments, Versions

DOCUMENTS, FEATURES, QUERIES, AT_ONCE = 6, 4, 200, 8
WAIT, EVERY = "1", "0.5"
START = (
    "import time; real = time.time; time.time = lambda: real() - {back}; "
    "from dualrank.online.service import learner_process; learner_process.LONGEST_PAUSE = 1.0; "
    "from dualrank.cli.app import main; main()"
)
"""`dualrank` with another clock. A learner that was killed is back after a second: the pause would
double each time, and there would soon be none to kill."""


class Process:
    """A command of dualrank, and its port if it serves."""

    def __init__(self, log: Path, words: list[str], *, back: float = 0.0) -> None:
        start = ["-c", START.format(back=back)]
        with log.open("ab") as errors:
            out = subprocess.PIPE if words[0] == "serve" else subprocess.DEVNULL
            self.process = subprocess.Popen(
                [sys.executable, *start, *words], stdout=out, stderr=errors, text=True
            )
        if words[0] == "serve":
            assert self.process.stdout is not None
            lines = [""]
            while lines[-1] != "}\n":
                lines.append(self.process.stdout.readline())
                if not lines[-1]:
                    raise RuntimeError(log.read_text()[-2_000:])

    def kill(self) -> None:
        """Kill -9."""
        self.process.kill()
        self.process.wait()

    def children(self) -> list[int]:
        """The processes that it started."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        found = {int(each) for each in path.read_text().split()}
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            with suppress(OSError):
                found |= {int(each) for each in (task / "children").read_text().split()}
        return sorted(found)

    def stop(self) -> None:
        """Ask it to end."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()


@dataclass
class Account:
    """What clients heard."""

    acknowledged: set[tuple[str, str]] = field(default_factory=set)
    answers: list[tuple[int, str, dict[str, float]]] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)


class World:
    """Documents with features, and a model that ranks them."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.features = rng.normal(size=(QUERIES, DOCUMENTS, FEATURES)).astype(np.float32).round(3)
        rows = self.features.reshape(-1, FEATURES)
        grades = np.digitize(rows[:, 0] + 0.5 * rows[:, 1], [0.0, 1.0])
        data = dr.Dataset.from_arrays(rows, np.repeat(np.arange(QUERIES), DOCUMENTS), grades)
        lists = dr.top_lists(data, rows[:, 1])
        log = dr.sample_log(data, lists, dr.PositionBasedUser(), 5_000, rng)
        self.model = dr.fit(log, data, ranker=dr.Linear(), settings=dr.TrainingSettings(steps=100))

    def query(self, number: int) -> dict[str, Any]:
        """The body of a search."""
        documents = [
            {"doc_id": f"d{place}", "features": row}
            for place, row in enumerate(self.features[number].tolist())
        ]
        return {"query_id": f"q{number}", "documents": documents, "client": f"c{number % 9}"}


class Client(threading.Thread):
    """Users who search and click, until they are stopped."""

    def __init__(
        self, world: World, ports: list[int], account: Account, seed: int, pause: float = 0.0
    ) -> None:
        super().__init__(daemon=True)
        self.world, self.ports, self.account, self.pause = world, ports, account, pause
        self.chance = random.Random(seed)
        self.stopped = threading.Event()

    def run(self) -> None:
        """Search and click."""
        while not self.stopped.is_set():
            queries = [self.world.query(self.chance.randrange(QUERIES)) for _ in range(AT_ONCE)]
            status, answer = post(self.chance.choice(self.ports), "/rank", {"queries": queries})
            with self.account.lock:
                self.account.statuses[f"rank {status}"] += 1
            if status != 200:
                time.sleep(0.05)
                continue
            events = []
            for query, ranking in zip(queries, answer["rankings"], strict=True):
                scores = {each["doc_id"]: each["score"] for each in ranking["results"]}
                with self.account.lock:
                    self.account.answers.append((ranking["version"], query["query_id"], scores))
                for result in ranking["results"]:
                    if self.chance.random() < 0.5 / result["position"]:
                        clicked = {
                            "impression_id": ranking["impression_id"],
                            "doc_id": result["doc_id"],
                        }
                        events += [clicked, {**clicked, "kind": "cart"}]
            self.send(events)
            time.sleep(self.pause)

    def send(self, events: list[dict[str, Any]]) -> None:
        """Send events until they are acknowledged, and some of them once more."""
        for turn in range(200):
            if self.stopped.is_set() or not events:
                return
            status, answer = post(self.chance.choice(self.ports), "/events", {"events": events})
            with self.account.lock:
                self.account.statuses[f"events {status}"] += 1
                if status == 200:
                    refused = {each["index"] for each in answer["refused"]}
                    self.account.acknowledged |= {
                        (event["impression_id"], event["doc_id"])
                        for index, event in enumerate(events)
                        if index not in refused and "kind" in event
                    }
            if status == 422 or (status == 200 and self.chance.random() < 0.7):
                return
            time.sleep(0.05 if turn else 0.0)


def post(port: int, path: str, body: Any) -> tuple[int, Any]:
    """The status and the answer; 0 where there is none."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        said = body if isinstance(body, bytes) else json.dumps(body)
        connection.request("POST", path, said, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError):
        return 0, None
    finally:
        connection.close()


class Service:
    """A server with its learner, in a folder of its own."""

    learn = True

    def __init__(self, folder: Path, world: World, chance: random.Random) -> None:
        self.folder, self.world, self.chance = folder, world, chance
        self.events, self.log = folder / "events", folder / "log"
        world.model.save(folder / "model")
        self.ports = [free_port()]
        self.server = self.start()

    def start(self, back: float = 0.0) -> Process:
        """A server on the same port and folder."""
        words = ["serve", str(self.folder / "model"), "--events", str(self.events), "--json"]
        words += ["--port", str(self.ports[0]), "--wait", WAIT, "--every", EVERY, "--learn"]
        return Process(self.log, words, back=back)

    def versions(self) -> Versions:
        """What the server ranks with."""
        return Versions(self.events / "_versions")

    def stop(self) -> None:
        """End all."""
        self.server.stop()

    def server_killed(self) -> None:
        """Kill -9 of the server."""
        self.server.kill()
        self.server = self.start()

    def learner_killed(self) -> None:
        """Kill -9 of the learner, as soon as there is one."""
        while not (learners := self.server.children()):
            time.sleep(0.05)
        for each in learners:
            with suppress(ProcessLookupError):
                os.kill(each, 9)

    def both_killed(self) -> None:
        """Kill -9 of both."""
        children = self.server.children()
        self.server.kill()
        for each in children:
            with suppress(ProcessLookupError):
                os.kill(each, 9)
        self.server = self.start()

    def torn_segment(self) -> None:
        """The server is killed, and half of the last segment is there."""
        self.server.kill()
        segments = Segments(self.events)
        if found := segments.files():
            path = segments.clicks(max(found))
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        self.server = self.start()

    def clock_set_back(self) -> None:
        """The server is killed, and starts an earlier day."""
        self.server.kill()
        self.back = getattr(self, "back", 0.0) + 100_000.0
        self.server = self.start(self.back)

    def full_disk(self) -> None:
        """No room for some time."""
        filler = self.events / "filler"
        with suppress(OSError), filler.open("wb") as file:
            while True:
                file.write(b"\0" * 65_536)
                file.flush()
        time.sleep(1.0)
        filler.unlink()

    def poisoned(self) -> None:
        """Requests that nobody should send, and a client that clicks everything."""
        port = self.ports[0]
        good = self.world.query(0)
        bad_features = json.dumps(good).replace(
            json.dumps(good["documents"][0]["features"]), "[NaN]"
        )
        wrong = [
            ("/rank", bad_features.encode()),
            ("/rank", {**good, "documents": [{"doc_id": "unknown"}]}),
            ("/rank", {**good, "documents": [{"doc_id": "d", "features": [1e999, 0, 0, 0]}]}),
            ("/rank", {**good, "documents": good["documents"][:1] * 2}),
            ("/rank", b"\xff\x00"),
            ("/events", {"impression_id": "A" * 32, "doc_id": "d0"}),
            ("/events", {"impression_id": "../../etc", "doc_id": "\x1b[31m"}),
        ]
        for path, body in wrong:
            status, _ = post(port, path, body)
            if not 400 <= status < 500:
                raise RuntimeError(f"{path} answered {status} to {str(body)[:80]}")
        for _ in range(30):
            _, ranking = post(port, "/rank", {**good, "client": "clicks everything"})
            if ranking is not None:
                made = {"impression_id": ranking["impression_id"]}
                events = [{**made, "doc_id": each["doc_id"]} for each in ranking["results"]]
                post(port, "/events", {"events": [*events, {**made, "doc_id": "elsewhere"}]})


class Shared(Service):
    """Two servers without state, a learner and a Redis."""

    def __init__(self, folder: Path, world: World, chance: random.Random) -> None:
        self.folder, self.world, self.chance = folder, world, chance
        self.events, self.log = folder / "events", folder / "log"
        self.models = folder / "models"
        Versions.create(self.models, world.model)
        self.ports = [free_port(), free_port()]
        self.redis_port = free_port()
        self.url = f"redis://127.0.0.1:{self.redis_port}"
        self.redis = self.start_redis()
        self.servers = [self.start_server(number) for number in range(2)]
        self.learner = self.start_learner()

    def versions(self) -> Versions:
        """What both servers rank with."""
        return Versions(self.models)

    def start_redis(self) -> subprocess.Popen[bytes]:
        """Redis on the data that are there."""
        place = self.folder / "redis"
        place.mkdir(exist_ok=True)
        settings = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        command = ["redis-server", "--port", str(self.redis_port), "--dir", str(place), *settings]
        redis = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while True:
            # Another connection may have the port for a moment: then Redis ends at once.
            if redis.poll() is not None:
                redis = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.redis_port)) as c:
                c.sendall(b"PING\r\n")
                if c.recv(9).startswith(b"+PONG"):
                    return redis
            time.sleep(0.02)

    def start_server(self, number: int) -> Process:
        """One of the servers."""
        words = ["serve", str(self.models), "--events", self.url, "--json"]
        return Process(self.log, [*words, "--port", str(self.ports[number])])

    def start_learner(self) -> Process:
        """The learner, which collects."""
        words = ["learn", str(self.models), "--events", str(self.events), "--from", self.url]
        return Process(self.log, [*words, "--wait", WAIT, "--every", EVERY])

    def redis_gone(self) -> None:
        """Kill -9 of Redis, which comes back."""
        self.redis.kill()
        self.redis.wait()
        time.sleep(self.chance.uniform(0.1, 1.0))
        self.redis = self.start_redis()

    def one_killed(self) -> None:
        """Kill -9 of any of them."""
        which = self.chance.randrange(4)
        if which < 2:
            self.servers[which].kill()
            self.servers[which] = self.start_server(which)
        elif which == 2:
            self.learner.kill()
            self.learner = self.start_learner()
        else:
            self.redis_gone()

    def stop(self) -> None:
        """End all, and copy what is left on the stream."""
        for server in self.servers:
            server.stop()
        self.learner.kill()
        with EventStore(self.events, wait=0.0) as store, RedisStream(self.url) as stream:
            while stream.copy_into(store, wait=0.2):
                pass
        self.redis.kill()
        self.redis.wait()


def free_port() -> int:
    """A port that nobody has."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A folder of 200 megabytes."""
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
