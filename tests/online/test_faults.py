"""What is acknowledged is there, once, whoever is killed; `benchmarks.service_faults` is longer."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dualrank.online.events.event_store import EventStore
from dualrank.online.events.redis_stream import RedisStream
from dualrank.online.events.segments import Segments

from .redis_server import RedisServer, needs_redis
from .stores import collector_of

_STARTED: list[subprocess.Popen] = []
WORKER = Path(__file__).with_name("fault_worker.py")


class Worker:
    """A process whose words are kept in a file, which it leaves when it is killed."""

    def __init__(self, said: Path, *arguments: object) -> None:
        self.said = said
        with said.open("ab") as out, said.with_suffix(".err").open("ab") as errors:
            command = [sys.executable, str(WORKER), *map(str, arguments)]
            self.process = subprocess.Popen(command, stdout=out, stderr=errors)
        _STARTED.append(self.process)

    def until(self, word: str, times: int = 1, seconds: float = 20.0) -> None:
        end = time.monotonic() + seconds
        while self.said.read_bytes().count(f'["{word}"'.encode()) < times:
            assert self.process.poll() is None, self.said.with_suffix(".err").read_text()
            assert time.monotonic() < end, f"no {word} in {seconds} seconds"
            time.sleep(0.02)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(autouse=True)
def _nobody_is_left():
    yield
    while _STARTED:
        process = _STARTED.pop()
        process.kill()
        process.wait()


def _lines(path: Path) -> list[list[str]]:
    # The last line may be torn: whoever was to read it has not heard of it.
    return [json.loads(line) for line in path.read_text().split("\n")[:-1] if line]


def _account(folder: Path, said: list[Path]) -> tuple[int, int, int]:
    """How many events were acknowledged, lost of these, and counted twice."""
    with EventStore(folder, wait=0.0) as store:
        collector_of(store).collect()
        late = store.alone(
            lambda tables: tables.execute(
                "SELECT i.id, e.position FROM events e JOIN impressions i "
                "ON e.impression = i.number WHERE e.late"
            ).fetchall()
        )
    counted = Counter[tuple[str, str]]()
    displayed = Counter[tuple[str, str]]()
    segments = Segments(folder)
    assert segments.closed() == list(range(1, len(segments.closed()) + 1))
    for number in segments.closed():
        table = pq.read_table(segments.clicks(number))
        amounts = table["cart"].to_pylist() if "cart" in table.column_names else [0] * len(table)
        for session, document, amount in zip(
            table["session_id"].to_pylist(), table["doc_id"].to_pylist(), amounts, strict=True
        ):
            displayed[session, document] += 1
            counted[session, document] += round(amount)
    for session, position in late:
        counted[session, f"d{position - 1}"] += 1
    lines = [line for path in said for line in _lines(path)]
    assert not [line for line in lines if line[0] == "wrong"]
    acknowledged = {(line[1], line[2]) for line in lines if line[0] == "acknowledged"}
    lost = sum(counted[each] == 0 for each in acknowledged)
    twice = sum(count > 1 for count in (*counted.values(), *displayed.values()))
    return len(acknowledged), lost, twice


def _tear(folder: Path) -> None:
    """Leave half of the last segment, as a disk does that lost power."""
    segments = Segments(folder)
    if found := segments.files():
        path = segments.clicks(max(found))
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("fault", ["killed", "torn", "clock"])
def test_a_store_that_is_killed_has_what_it_acknowledged_once(tmp_path, fault):
    chance = random.Random(fault)
    folder, said = tmp_path / "events", tmp_path / "said"
    for turn in range(3):
        back = 100_000 * turn if fault == "clock" else 0
        worker = Worker(said, "store", folder, f"round{turn}", back)
        worker.until("started", turn + 1)
        time.sleep(chance.uniform(0.2, 0.9))
        worker.kill()
        if fault == "torn":
            _tear(folder)
    acknowledged, lost, twice = _account(folder, [said])
    assert acknowledged > 100
    assert (lost, twice) == (0, 0)


@needs_redis
def test_two_servers_and_a_collector_killed_at_random_lose_nothing(tmp_path):
    chance = random.Random(1)
    folder = tmp_path / "events"
    said = [tmp_path / name for name in ("server0", "server1", "collector")]
    with RedisServer(tmp_path / "redis") as redis:
        starts = [0, 0, 0]

        def start(number):
            starts[number] += 1
            what = ["collector", folder, redis.url]
            if number < 2:
                what = ["server", redis.url, f"server{number}-{starts[number]}"]
            return Worker(said[number], *what)

        workers = [start(number) for number in range(3)]
        for worker in workers:
            worker.until("started")
        for turn in range(6):
            time.sleep(chance.uniform(0.2, 0.6))
            if turn == 3:
                redis.kill()
                time.sleep(0.3)
                redis.start()
                continue
            number = turn % 3
            workers[number].kill()
            workers[number] = start(number)
            workers[number].until("started", starts[number])
        time.sleep(0.5)
        for worker in workers:
            worker.kill()
        with EventStore(folder, wait=0.0) as store, RedisStream(redis.url) as stream:
            while stream.copy_into(store, wait=0.1):
                pass
    acknowledged, lost, twice = _account(folder, said)
    assert acknowledged > 100
    assert (lost, twice) == (0, 0)
