"""What survives when parts of a service fail, with real servers and clients over HTTP.

    python -m benchmarks.service_faults [--repetitions 20] [--faults server-killed,redis-gone]

Users search and click all the time, while a part is killed, filled, torn or poisoned, over and over
in the same folder. Every second time the fault waits until the learner has made another version, or
half a minute: so it comes soon after a swap, and the other times while things are still starting. A
request without an answer is sent again. In the end every event that was acknowledged is sought in
the click log (or among the late ones), and answers are compared with the scores of the version that
they name. A full disk is a small tmpfs, which needs root; Redis needs `redis-server`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.services_that_fail import (
    DOCUMENTS,
    FEATURES,
    Account,
    Client,
    Service,
    Shared,
    World,
    small_disk,
)
from dualrank.online import Collector, EventStore, Segments, Versions

LONGEST_WAIT = 30.0
"""Seconds that a fault waits for another version."""
FAULTS: dict[str, tuple[type[Service], Callable[[Any], None], str]] = {
    "server-killed": (Service, Service.server_killed, "`kill -9` of the server"),
    "learner-killed": (Service, Service.learner_killed, "`kill -9` of the learner"),
    "both-killed": (Service, Service.both_killed, "`kill -9` of both"),
    "full-disk": (Service, Service.full_disk, "full disk"),
    "torn-segment": (Service, Service.torn_segment, "killed, last segment torn"),
    "clock-set-back": (Service, Service.clock_set_back, "killed, clock set back by a day"),
    "poisoned": (Service, Service.poisoned, "poisoned requests, a client that clicks all"),
    "redis-gone": (Shared, Shared.redis_gone, "Redis killed and back"),
    "one-of-four": (Shared, Shared.one_killed, "one of 2 servers, learner, Redis killed"),
}


def settle(folder: Path, account: Account) -> tuple[int, int]:
    """How many acknowledged events are lost, and how many events are counted twice."""
    with EventStore(folder, wait=0.0) as store:
        collector = Collector(store, Segments(folder), every=0.0)
        while collector.collect():
            pass
        late = store.alone(
            lambda tables: tables.execute(
                "SELECT i.id, i.documents, e.position FROM events e JOIN impressions i "
                "ON e.impression = i.number JOIN kinds k ON k.number = e.kind "
                "WHERE e.late AND k.name = 'cart'"
            ).fetchall()
        )
    counted, displayed = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    segments = Segments(folder)
    for number in segments.closed():
        table = pq.read_table(segments.clicks(number))
        if "cart" not in table.column_names:
            table = table.append_column("cart", [np.zeros(table.num_rows)])
        names = ("session_id", "doc_id", "cart")
        for session, document, amount in zip(*(table[n].to_pylist() for n in names), strict=True):
            displayed[session, document] += 1
            counted[session, document] += round(amount)
    for session, documents, position in late:
        counted[session, json.loads(documents)[position - 1]] += 1
    lost = sum(counted[each] == 0 for each in account.acknowledged)
    twice = sum(count > 1 for count in (*counted.values(), *displayed.values()))
    return lost, twice


def without_model(service: Service, account: Account) -> int:
    """Answers that are no answer of a whole model, as far as its version is still there."""
    wrong = sum(n for key, n in account.statuses.items() if key.startswith("rank 5"))
    versions, scores = service.versions(), dict[int, Any]()
    rows = service.world.features.reshape(-1, FEATURES)
    for version, query, found in account.answers:
        if version not in scores:
            there = (versions.path(version) / "manifest.json").exists()
            scores[version] = versions.load(version).predict(rows) if there else None
        if scores[version] is not None:
            start = int(query[1:]) * DOCUMENTS
            wanted = {f"d{place}": scores[version][start + place] for place in range(DOCUMENTS)}
            wrong += any(abs(wanted[each] - score) > 1e-4 for each, score in found.items())
    return wrong


def wait_for_version(versions: Versions) -> None:
    """Until there is one more than now, as long as that may take."""
    before, began = max(versions.note().versions), time.monotonic()
    while max(versions.note().versions) == before and time.monotonic() - began < LONGEST_WAIT:
        time.sleep(0.1)


def try_fault(name: str, repetitions: int, world: World, base: Path, seed: int) -> str:
    """A row of the table."""
    kind, fault, title = FAULTS[name]
    chance = random.Random(seed)
    folder = base / name
    folder.mkdir()
    account = Account()
    with small_disk(folder / "events") if name == "full-disk" else nullcontext():
        service = kind(folder, world, chance)
        clients = [Client(world, service.ports, account, seed + n) for n in range(2)]
        try:
            for client in clients:
                client.start()
            for turn in range(repetitions):
                time.sleep(chance.uniform(0.3, 1.0))
                if turn % 2:
                    wait_for_version(service.versions())
                fault(service)
            time.sleep(1.0)
        finally:
            for client in clients:
                client.stopped.set()
            for client in clients:
                client.join(15)
            service.stop()
        wrong = without_model(service, account)
        lost, twice = settle(service.events, account)
        made = max(service.versions().note().versions)
    said = f"| {title} | {repetitions} | {len(account.acknowledged):,} | {lost} | {twice} "
    busy = account.statuses["events 503"]
    return said + f"| {len(account.answers):,} | {wrong} | {busy:,} | {made} |"


def main() -> None:
    """Try every fault, and print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repetitions", type=int, default=20)
    options.add_argument("--faults", default=",".join(FAULTS))
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    world = World()
    print(
        "| fault | repetitions | acknowledged | lost | twice | answers | by no or half a model "
        "| events refused (503) | versions |"
    )
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    base = Path(tempfile.mkdtemp(prefix="dualrank-faults-"))
    try:
        for name in given.faults.split(","):
            if name == "full-disk" and os.geteuid() != 0:
                print(f"| {FAULTS[name][2]} | needs root |")
            elif FAULTS[name][0] is Shared and shutil.which("redis-server") is None:
                print(f"| {FAULTS[name][2]} | needs redis-server |")
            else:
                print(try_fault(name, given.repetitions, world, base, given.seed), flush=True)
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()
