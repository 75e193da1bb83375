"""What is acknowledged is there, once, whoever is killed; `benchmarks.service_faults` is longer."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dualrank.online.events.event_store import EventStore
from dualrank.online.events.redis_stream import RedisStream
from dualrank.online.events.segments import Segments

from ..forks import end_forks, start_fork
from ..waiting import wait_until
from .redis_server import RedisServer, needs_redis
from .stores import collector_of

PROGRAM = Path(__file__).with_name("fault_worker.py").read_text(encoding="utf-8")


class Worker:
    """A process whose output is kept in a file, also when it is killed."""

    def __init__(self, output: Path, *arguments: object) -> None:
        self.output, self.errors = output, output.with_suffix(".errors")
        self.process = start_fork(PROGRAM, *arguments, output=output, errors=self.errors)
        started = self.count("started")
        self.wait_for(lambda: self.count("started") > started)

    def count(self, kind: str) -> int:
        """Return how many lines of this kind its output has."""
        return self.output.read_bytes().count(f'["{kind}"'.encode()) if self.output.exists() else 0

    def wait_for(self, condition) -> None:
        """Wait for a condition while the process runs."""
        wait_until(lambda: condition() or not self.process.is_alive(), self.errors.read_text)
        assert self.process.is_alive(), self.errors.read_text()

    def wait_for_more(self, kind: str, lines: int = 40) -> None:
        """Wait until it has written so many more lines of this kind."""
        enough = self.count(kind) + lines
        self.wait_for(lambda: self.count(kind) >= enough)

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


@pytest.fixture(autouse=True)
def _end_workers():
    yield
    end_forks()


def _lines(path: Path) -> list[list[str]]:
    # The last line may be torn: whoever was to read it has not heard of it.
    return [json.loads(line) for line in path.read_text().split("\n")[:-1] if line]


def _count_events(folder: Path, outputs: list[Path]) -> tuple[int, int, int]:
    """Return how many events were acknowledged, lost of these, and counted twice."""
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
    lines = [line for path in outputs for line in _lines(path)]
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
    folder, output = tmp_path / "events", tmp_path / "output"
    for turn in range(3):
        last_segment = max(Segments(folder).files(), default=0)
        back = 100_000 * turn if fault == "clock" else 0
        worker = Worker(output, "store", folder, f"round{turn}", back)
        worker.wait_for_more("acknowledged")
        worker.wait_for(lambda last=last_segment: max(Segments(folder).files(), default=0) > last)
        time.sleep(chance.uniform(0, 0.1))
        worker.kill()
        if fault == "torn":
            _tear(folder)
    acknowledged, lost, twice = _count_events(folder, [output])
    assert acknowledged > 100
    assert (lost, twice) == (0, 0)


@needs_redis
def test_two_servers_and_a_collector_killed_at_random_lose_nothing(tmp_path):
    chance = random.Random(1)
    folder = tmp_path / "events"
    outputs = [tmp_path / name for name in ("server0", "server1", "collector")]
    with RedisServer(tmp_path / "redis") as redis:

        def start(number, turn=-1):
            words = ["collector", folder, redis.url]
            if number < 2:
                words = ["server", redis.url, f"server{number}-{turn}"]
            return Worker(outputs[number], *words)

        workers = [start(number) for number in range(3)]
        for turn, number in enumerate((0, 1, 2, None, 1, 2)):
            for server in workers[:2]:
                server.wait_for_more("acknowledged", 20)
            time.sleep(chance.uniform(0, 0.1))
            if number is None:
                redis.kill()
                workers[0].wait_for_more("refused", 1)
                redis.start()
            else:
                workers[number].kill()
                workers[number] = start(number, turn)
        workers[0].wait_for_more("acknowledged")
        for worker in workers:
            worker.kill()
        with EventStore(folder, wait=0.0) as store, RedisStream(redis.url) as stream:
            while stream.copy_into(store, wait=0.1):
                pass
    acknowledged, lost, twice = _count_events(folder, outputs)
    assert acknowledged > 100
    assert (lost, twice) == (0, 0)
