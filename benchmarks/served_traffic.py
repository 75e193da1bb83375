"""Simulated users of a real service, which learns: `dualrank serve --learn` and its clients.

Users search for documents by their ids, are shown what the service answers, click, and post events,
as fast as one client can and without a pause; the learner follows as well as it can meanwhile.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np

import dualrank as dr
from benchmarks.live_traffic import Site
from benchmarks.service_load import service
from dualrank.online.demo.demo_habits import Habits
from dualrank.online.demo.demo_users import Crowd, SearchClient
from dualrank.online.demo.demo_world import DemoWorld
from dualrank.online.versions import Versions

AT_ONCE = 500
WAIT, EVERY = "2", "1"
"""Simulated users click at once: their lists need not wait for them."""
PATIENCE = 300.0
"""Seconds without a new round after which a learner is given up."""


@dataclass(frozen=True)
class Seen:
    """After some sessions: the curve that is believed, what is live, and what else was counted."""

    curve: Sequence[float]
    live: dr.Model
    counts: dict[str, float] = field(default_factory=dict)


def serve_sessions(
    site: Site, first: dr.Model, folder: Path, plan: Sequence[tuple[float, int]], seed: int
) -> Iterator[Seen]:
    """Users with this η, so many of them, one group after the other; what was seen after each.

    Everything is seen before the first of it is handed over: whoever evaluates it does not keep
    users waiting, nor give the learner time.
    """
    world = DemoWorld(site.data, seed)
    world.write_features(folder / "features.parquet")
    first.save(folder / "model")
    crowd = Crowd(world, np.zeros(len(site.data)).tolist(), seed)
    words = ["--learn", "--features", str(folder / "features.parquet"), "--seed", str(seed)]
    assert first.propensity is not None
    curve, seen, sent = first.propensity.examination.tolist(), [], 0
    with service(folder, "events", *words, "--wait", WAIT, "--every", EVERY) as port:
        address = f"http://127.0.0.1:{port}"
        client = SearchClient(address, "")
        versions = Versions(folder / "events" / "_versions")
        for number, (eta, size) in enumerate(plan):
            began, shown = time.monotonic(), []
            for start in range(0, size, AT_ONCE):
                count = min(AT_ONCE, size - start)
                shown.append(crowd.search(client, Habits(eta=eta), count))
            counts = {
                "displayed": float(np.concatenate(shown).mean()),
                "seconds": time.monotonic() - began,
            }
            sent += size
            last = number == len(plan) - 1
            status = _status(address, learned=sent if last else 0)
            counts["late"] = status["counts"]["late"]
            if status["rounds"]:
                curve = status["rounds"][-1]["examination"]
            seen.append(Seen(curve, versions.load(versions.live.number), counts))
    yield from seen


def _status(address: str, learned: int) -> dict[str, Any]:
    """What a service says of itself, once its learner has seen so many sessions."""
    before, end = -1, 0.0
    while True:
        with urlopen(f"{address}/status") as answer:
            status: dict[str, Any] = json.load(answer)
        now = status["rounds"][-1]["sessions"] if status["rounds"] else 0
        if now >= learned:
            return status
        if now > before:
            before, end = now, time.monotonic() + PATIENCE
        if time.monotonic() > end:
            raise RuntimeError(f"the learner has seen {now:,} of {learned:,} sessions")
        time.sleep(0.5)
