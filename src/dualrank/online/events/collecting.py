"""What many servers put on a stream goes into the store of events of one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dualrank.online.events.collector import Collector
from dualrank.online.events.event_store import EventStore
from dualrank.online.events.redis_stream import RedisStream
from dualrank.online.events.segments import Segments
from dualrank.online.events.stream_copying import StreamCopying


@contextmanager
def collecting(
    url: str, events: Path, *, wait: float, every: float
) -> Iterator[Callable[[], str | None]]:
    """Meanwhile copy a stream into a store, and make segments of what the store holds.

    What it gives says why that cannot be done just now; None where all is well.
    """
    with ExitStack() as held:
        store = EventStore(events, wait=wait)
        held.callback(store.close)
        stream = held.enter_context(RedisStream(url))
        copying = held.enter_context(StreamCopying(stream, store))
        collector = held.enter_context(Collector(store, Segments(events), every))
        yield lambda: copying.problem or collector.problem
