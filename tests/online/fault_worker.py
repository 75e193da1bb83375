"""A small service that is killed: it displays, users click, and what it acknowledges it prints.

    fault_worker.py store FOLDER ROUND SECONDS-SET-BACK    a store and its collector
    fault_worker.py server REDIS ROUND                     a server without state
    fault_worker.py collector FOLDER REDIS                 copies the stream, and collects

Every event is sent twice, as by a client that heard no answer. A line is one acknowledged event:
impression, document, what became of it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from dualrank.errors import StorageError
from dualrank.online.events.collector import Collector
from dualrank.online.events.event_store import EventStore
from dualrank.online.events.redis_stream import RedisStream
from dualrank.online.events.segments import Segments
from dualrank.online.events.stream_copying import StreamCopying
from dualrank.online.records import Event, Impression

DOCUMENTS = tuple(f"d{place}" for place in range(5))
WAIT = 0.1


def say(*what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def click(transport, impression: str, place: int) -> None:
    event = Event(f"{impression}/{place}", impression, DOCUMENTS[place], "cart")
    try:
        first, again = await transport.record([event, event])
    except StorageError as error:
        say("refused", str(error))
        return
    if first in ("new", "again", "late"):
        say("acknowledged", impression, DOCUMENTS[place], first)
    else:
        say("wrong", impression, first, again)


async def users(transport, name: str) -> None:
    number = 0
    while True:
        shown = [f"{name}-{number + each}" for each in range(8)]
        number += 8
        for each in shown:
            transport.show(
                Impression(each, 0.0, f"q{number % 7}", DOCUMENTS, 1, 0, "c", b"0123" * 5)
            )
        await asyncio.gather(*(click(transport, each, len(each) % 5) for each in shown))
        await asyncio.sleep(0.002)


def collecting(store: EventStore) -> Collector:
    return Collector(store, Segments(store.folder), every=0.05, most=500)


def main(what: str, *rest: str) -> None:
    if what == "store":
        folder, name, back = rest
        clock = lambda: time.time() - float(back)  # noqa: E731
        with EventStore(folder, wait=WAIT, clock=clock) as store, collecting(store):
            say("started")
            asyncio.run(users(store, name))
    elif what == "server":
        url, name = rest
        with RedisStream(url) as stream:
            say("started")
            asyncio.run(users(stream, name))
    else:
        folder, url = rest
        with (
            EventStore(folder, wait=WAIT) as store,
            RedisStream(url) as stream,
            StreamCopying(stream, store),
            collecting(store),
        ):
            say("started")
            while True:
                time.sleep(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
