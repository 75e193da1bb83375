"""What many servers put on a stream goes into the store of events of one machine."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dualrank.errors import DualrankError
from dualrank.online.collector import Collector
from dualrank.online.event_store import EventStore
from dualrank.online.redis_stream import RedisStream
from dualrank.online.segments import Segments

PAUSE = 1.0
"""Seconds until a stream or a disk that failed is tried again."""

logger = logging.getLogger(__name__)


@contextmanager
def collecting(url: str, events: Path, *, wait: float, every: float) -> Iterator[None]:
    """Meanwhile copy a stream into a store, and make segments of what the store holds."""
    stop = threading.Event()
    with ExitStack() as held:
        store = EventStore(events, wait=wait)
        held.callback(store.close)
        stream = RedisStream(url)
        held.callback(stream.close)
        held.enter_context(Collector(store, Segments(events), every))
        thread = threading.Thread(
            target=_copy, args=(stream, store, stop), name="dualrank stream", daemon=True
        )
        thread.start()
        held.callback(thread.join)
        held.callback(stop.set)
        yield


def _copy(stream: RedisStream, store: EventStore, stop: threading.Event) -> None:
    """Copy until asked to stop; what cannot be copied now is still on the stream."""
    failed = ""
    while not stop.is_set():
        try:
            stream.copy_into(store)
            failed = ""
        except (OSError, DualrankError) as error:
            if str(error) != failed:
                logger.error("collecting waits: %s", error)
            failed = str(error)
            stop.wait(PAUSE)
