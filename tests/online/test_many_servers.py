"""`dualrank serve` twice and `dualrank learn` on one Redis, as a user starts them, and killed."""

import random
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

from ..forks import end_forks, start_fork, wait_for_answer
from ..waiting import wait_until
from .redis_server import needs_redis

ROOT = Path(__file__).parents[2]


class ForkedCommand:
    """A command of dualrank in a fork, instead of in a Python of its own."""

    def __init__(self, log, words):
        program = import_module("benchmarks.services_that_fail").START.format(back=0)
        output = log.with_name(f"{words[0]}-{random.random()}")
        self.process = start_fork(program, *words, output=output, errors=log)
        if words[0] == "serve":
            wait_for_answer(self.process, output, log)

    def kill(self):
        self.process.kill()
        self.process.join()

    def stop(self):
        self.process.terminate()
        self.process.join()


@pytest.fixture
def benchmark(monkeypatch):
    """Import modules of the benchmarks; no server that they start is left behind."""
    started = []

    class NotedPopen(subprocess.Popen):
        def __init__(self, *given, **named):
            super().__init__(*given, **named)
            started.append(self)

    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setattr(subprocess, "Popen", NotedPopen)
    for name, value in {"Process": ForkedCommand, "WAIT": "0.2", "EVERY": "0.2"}.items():
        monkeypatch.setattr(f"benchmarks.services_that_fail.{name}", value)
    yield lambda name: import_module(f"benchmarks.{name}")
    end_forks()
    for process in started:
        process.kill()
        process.wait()


@needs_redis
def test_two_servers_and_a_learner_on_redis_are_killed_and_nothing_is_lost(tmp_path, benchmark):
    from redis import Redis

    services, faults = benchmark("services_that_fail"), benchmark("service_faults")
    world, account = services.World(), services.Account()
    shared = services.Shared(tmp_path, world, random.Random(1))
    redis = Redis(port=shared.redis_port)
    client = services.Client(world, shared.ports, account, seed=1, pause=0.1)

    def wait(condition):
        wait_until(condition, lambda: shared.log.read_text()[-3_000:], pause=0.05)

    def wait_for_more_events(count=20):
        enough = len(account.acknowledged) + count
        wait(lambda: len(account.acknowledged) >= enough)

    def wait_for_a_version():
        latest = max(shared.versions().note().versions)
        wait(lambda: max(shared.versions().note().versions) > latest)

    def version_at(port):
        answer = services.post(port, "/rank", world.query(0))[1]
        return answer and answer["version"]

    client.start()
    try:
        wait_for_a_version()
        for port in shared.ports:
            wait(lambda port=port: version_at(port) == shared.versions().note().live)
        shared.servers[0].kill()
        shared.learner.kill()
        wait_for_more_events()  # at the other server, and nobody copies it
        waiting = redis.xlen("dualrank:events")
        shared.learner = shared.start_learner()
        wait(lambda: redis.xlen("dualrank:events") < waiting)
        shared.redis_gone()
        wait_for_more_events()
        wait_for_a_version()
    finally:
        client.stopped.set()
        client.join()
    shared.stop()
    assert len(account.acknowledged) > 100
    assert faults.without_model(shared, account) == 0
    assert faults.settle(shared.events, account) == (0, 0)
