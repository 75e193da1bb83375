"""How many impressions and events a second an event store keeps: python -m benchmarks.event_store.

Impressions of ten documents with 33 features, two events each, handed over by an event loop in
requests of so many at a time, as a server does; every event is awaited until it is on disk. With
`--busy` another thread computes in Python meanwhile. `--redis URL` measures a stream instead.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import threading
import time
from typing import Any

import numpy as np

from dualrank.online import Collector, Event, EventStore, Impression, RedisStream, Segments

DOCUMENTS = tuple(f"document-{place}" for place in range(10))
FEATURES = np.zeros((10, 33), dtype="<f4").tobytes()


async def request(transport: Any, name: str, size: int) -> None:
    """Display so many lists, and click twice on each."""
    shown = [f"{name}-{number}" for number in range(size)]
    for each in shown:
        transport.show(Impression(each, 0.0, "query", DOCUMENTS, 1, features=FEATURES))
    events = [
        Event(f"{each}/{place}", each, DOCUMENTS[place]) for each in shown for place in range(2)
    ]
    for start in range(0, len(events), size):
        await transport.record(events[start : start + size])


async def traffic(transport: Any, size: int, clients: int, seconds: float) -> int:
    """Let so many clients send requests, each when its last one was answered."""
    end = time.monotonic() + seconds

    async def client(number: int) -> int:
        turns = 0
        while time.monotonic() < end:
            await request(transport, f"{size}-{number}-{turns}", size)
            turns += 1
        return turns

    return size * sum(await asyncio.gather(*(client(number) for number in range(clients))))


def compute(stop: threading.Event) -> None:
    """Hold the interpreter as requests do."""
    while not stop.is_set():
        sum(range(1_000))


def main() -> None:
    """Measure requests of one, ten and a hundred lists."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=5.0)
    options.add_argument("--clients", type=int, default=16)
    options.add_argument("--redis")
    options.add_argument("--busy", action="store_true")
    given = options.parse_args()
    print("| lists of a request | impressions a second | events a second |")
    print("|---|---|---|")
    stop = threading.Event()
    if given.busy:
        threading.Thread(target=compute, args=(stop,), daemon=True).start()
    for size in (1, 10, 100):
        with tempfile.TemporaryDirectory() as folder:
            start = time.monotonic()
            if given.redis:
                with RedisStream(given.redis, name=f"benchmark{size}") as stream:
                    done = asyncio.run(traffic(stream, size, given.clients, given.seconds))
            else:
                with (
                    EventStore(folder, wait=1.0) as store,
                    Collector(store, Segments(folder), every=1.0),
                ):
                    done = asyncio.run(traffic(store, size, given.clients, given.seconds))
            seconds = time.monotonic() - start
        print(f"| {size} | {done / seconds:,.0f} | {2 * done / seconds:,.0f} |", flush=True)
    stop.set()


if __name__ == "__main__":
    main()
