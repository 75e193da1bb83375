"""`dualrank serve` twice and `dualrank learn` on one Redis, as a user starts them, and killed."""

import random
import subprocess
import time
from importlib import import_module
from pathlib import Path

import pytest

from .redis_server import needs_redis

ROOT = Path(__file__).parents[2]
PATIENCE = 90.0
"""Seconds for what takes two or three where nobody else computes."""


@pytest.fixture
def benchmark(monkeypatch):
    """Imports the modules of a benchmark; none of the servers they start is left behind."""
    started = []

    class Noted(subprocess.Popen):
        def __init__(self, *given, **named):
            super().__init__(*given, **named)
            started.append(self)

    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setattr(subprocess, "Popen", Noted)
    yield lambda name: import_module(f"benchmarks.{name}")
    for process in started:
        process.kill()
        process.wait()


@needs_redis
def test_two_servers_and_a_learner_on_redis_are_killed_and_nothing_is_lost(tmp_path, benchmark):
    services, faults = benchmark("services_that_fail"), benchmark("service_faults")
    world, account = services.World(), services.Account()
    shared = services.Shared(tmp_path, world, random.Random(1))
    client = services.Client(world, shared.ports, account, seed=1, pause=0.1)

    def until(true):
        end = time.monotonic() + PATIENCE
        while not true():
            assert time.monotonic() < end, shared.log.read_text()[-3_000:]
            time.sleep(0.05)

    def until_there_is_more(than=20):
        enough = len(account.acknowledged) + than
        until(lambda: len(account.acknowledged) >= enough)

    def until_learned():
        latest = max(shared.versions().note().versions)
        until(lambda: max(shared.versions().note().versions) > latest)

    def version_at(port):
        return services.post(port, "/rank", world.query(0))[1]["version"]

    client.start()
    try:
        until_learned()
        for port in shared.ports:
            until(lambda port=port: version_at(port) == shared.versions().note().live)
        shared.servers[0].kill()
        shared.learner.kill()
        until_there_is_more()  # at the other server, and nobody copies it
        shared.learner = shared.start_learner()
        shared.redis_gone()
        until_there_is_more()
        until_learned()
    finally:
        client.stopped.set()
        client.join(15)
    shared.stop()
    assert len(account.acknowledged) > 100
    assert faults.without_model(shared, account) == 0
    assert faults.settle(shared.events, account) == (0, 0)
