"""Which impressions are in which segment: decided once, in the store, before a file is written.

A segment is a range of numbers of impressions, and those of their events that were there when it
was closed (the others are marked as late by the same writer). Whoever writes its files finds the
same rows again, however often he is killed.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from dualrank.online.events.event_store import EventStore
from dualrank.online.events.event_tables import closed_to, insert, only

_FORGOTTEN_AT_ONCE = 2_000
"""Impressions that are removed between two groups of writers, who do not wait for long."""


@dataclass(frozen=True)
class Files:
    """What the files of a segment must be: bytes and sha256; None for features without any."""

    clicks: tuple[int, str]
    features: tuple[int, str] | None


@dataclass(frozen=True)
class Assigned:
    """The impressions `first` to `last` and those of their events that were in time."""

    number: int
    first: int
    last: int
    kinds: tuple[str, ...]
    """Kinds of events that were known when it was closed."""
    files: Files | None
    """None until they are written."""


def close_segment(store: EventStore, *, least: int, most: int, after: int = 0) -> Assigned | None:
    """Assign impressions that have waited for long enough to the next segment.

    None where there are fewer than `least` of them; at most `most` go into one. From then on
    events of theirs are late. Its number is above `after`: files may lie there from before these
    tables were made.
    """

    def close(tables: sqlite3.Connection) -> int | None:
        ripe = only(
            tables,
            "SELECT number FROM impressions WHERE arrived <= ? "
            "ORDER BY arrived DESC, number DESC LIMIT 1",
            store.now() - store.wait,
        )
        before = closed_to(tables)
        last = min(ripe or 0, before + most)
        if last - before < max(least, 1):
            return None
        number = max(only(tables, "SELECT max(number) FROM segments") or 0, after) + 1
        kinds = only(tables, "SELECT count(*) FROM kinds")
        row = (number, before + 1, last, kinds)
        insert(tables, "segments (number, first, last, kinds)", [row])
        return number

    number = store.alone(close)
    return None if number is None else assigned(store, unwritten=True)[-1]


def assigned(store: EventStore, *, unwritten: bool = False) -> list[Assigned]:
    """All segments whose rows are there, so that their files can be written, or written again."""
    which = "written IS NULL" if unwritten else "NOT forgotten"

    def read(tables: sqlite3.Connection) -> list[Assigned]:
        names = [name for (name,) in tables.execute("SELECT name FROM kinds ORDER BY number")]
        rows = tables.execute(
            "SELECT number, first, last, kinds, written, clicks_bytes, clicks_sha256, "
            f"features_bytes, features_sha256 FROM segments WHERE {which} ORDER BY number"
        ).fetchall()
        return [
            Assigned(
                number,
                first,
                last,
                tuple(names[:kinds]),
                None
                if written is None
                else Files(
                    (clicks[0], clicks[1]), None if clicks[2] is None else (clicks[2], clicks[3])
                ),
            )
            for number, first, last, kinds, written, *clicks in rows
        ]

    return store.alone(read)


def mark_written(store: EventStore, number: int, files: Files) -> None:
    """Say that the files of a segment are on disk."""
    store.alone(
        lambda tables: tables.execute(
            "UPDATE segments SET written = coalesce(written, ?), clicks_bytes = ?, "
            "clicks_sha256 = ?, features_bytes = ?, features_sha256 = ? WHERE number = ?",
            (store.now(), *files.clicks, *(files.features or (None, None)), number),
        )
    )


def forget(store: EventStore, older_than: float) -> bool:
    """Remove some of the rows of segments that were written so many seconds ago.

    Gives whether there are more: others write in between.
    """
    if not store.may_forget:
        return False
    before = store.now() - older_than

    def remove(tables: sqlite3.Connection) -> bool:
        # Segments are written in their order: what follows one that is not written stays.
        last = only(
            tables,
            "SELECT max(last) FROM segments WHERE written <= ? AND NOT forgotten AND number < "
            "coalesce((SELECT min(number) FROM segments WHERE written IS NULL), 1 << 60)",
            before,
        )
        tables.execute("DELETE FROM early WHERE time < ?", (before - store.wait,))
        if last is None:
            return False
        first = only(tables, "SELECT min(number) FROM impressions") or last
        upto = min(last, first + _FORGOTTEN_AT_ONCE - 1)
        tables.execute("DELETE FROM events WHERE impression <= ?", (upto,))
        tables.execute("DELETE FROM impressions WHERE number <= ?", (upto,))
        tables.execute("UPDATE segments SET forgotten = 1 WHERE last <= ?", (upto,))
        # The last one stays: numbers of segments and of impressions go on from it.
        tables.execute(
            "DELETE FROM segments WHERE forgotten AND number < (SELECT max(number) FROM segments)"
        )
        return upto < last

    more = store.alone(remove)
    store.give_back()
    return more
