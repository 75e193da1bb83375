"""What many servers put on a stream goes into the store of events of one machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dualrank.online.collector import Collector
from dualrank.online.event_store import EventStore
from dualrank.online.redis_stream import RedisStream
from dualrank.online.segments import Segments
from dualrank.online.stream_copying import StreamCopying


@contextmanager
def collecting(url: str, events: Path, *, wait: float, every: float) -> Iterator[None]:
    """Meanwhile copy a stream into a store, and make segments of what the store holds."""
    with (
        EventStore(events, wait=wait) as store,
        RedisStream(url) as stream,
        StreamCopying(stream, store),
        Collector(store, Segments(events), every),
    ):
        yield
