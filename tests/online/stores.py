"""Stores that wait for nobody, and what is put into them."""

from __future__ import annotations

import asyncio

import numpy as np

from dualrank.online.events.collector import Collector
from dualrank.online.events.event_store import EventStore
from dualrank.online.events.segments import Segments
from dualrank.online.records import Event, Impression


class Clock:
    """A clock that stands until it is set."""

    def __init__(self, time: float = 1_700_000_000.0) -> None:
        self.time = time

    def __call__(self) -> float:
        return self.time


def shown(number: int, documents: int = 3, *, query: str | None = None, **rest) -> Impression:
    """An impression of documents `d0` …"""
    docs = tuple(f"d{place}" for place in range(documents))
    return Impression(f"i{number}", 0.0, query or f"q{number % 4}", docs, 1, **rest)


def rows_of(values) -> bytes:
    return np.asarray(values, dtype="<f4").tobytes()


def clicked(number: int, place: int = 0, kind: str = "click", **rest) -> Event:
    """A click on a document of such an impression, with the id that a service makes."""
    rest.setdefault("event_id", f"{number}/{place}/{kind}")
    return Event(impression_id=f"i{number}", doc_id=f"d{place}", kind=kind, **rest)


def record(transport, *events: Event):
    return asyncio.run(transport.record(events))


def collector_of(store: EventStore, **settings) -> Collector:
    """A collector that closes what is ready whenever it is asked."""
    settings = {"every": 0.0, **settings}
    return Collector(store, Segments(store.folder), **settings)
