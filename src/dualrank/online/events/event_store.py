"""`EventStore`: impressions and events on the disk of one machine, in SQLite.

An event is acknowledged when the transaction that holds it, with its impression, has been synced to
the disk. One thread writes, whatever is waiting in one transaction (`group_commit.py`); one process
at a time holds the folder, and others may read.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from dualrank.online.events import event_tables as tables
from dualrank.online.events.event_kinds import MOST_KINDS, can_be_kind
from dualrank.online.events.group_commit import GroupCommit
from dualrank.online.events.steady_clock import SteadyClock
from dualrank.online.events.storable import require_storable, require_storable_event
from dualrank.online.records import Event, Impression, Outcome
from dualrank.storage import writing_alone

WAIT = 300.0
"""Seconds, between two wishes: to learn soon, and to wait for clicks. A cut before users have
clicked takes more clicks from where they read last, and bends the curve."""
_FREE_PAGES = 100
_PAGES_AT_ONCE = 1_000
Result = TypeVar("Result")


class EventStore:
    """Where a server puts what happened; a `Transport`.

    `wait` is how many seconds an impression waits for its events before it is written into a
    segment. `clock` tells the time, which never goes back here even if the clock does.
    """

    def __init__(
        self,
        folder: str | Path,
        wait: float = WAIT,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder = Path(folder)
        self.wait = wait
        self.path = self.folder / tables.NAME
        self.may_forget = True
        """Whether what is old may go; not while a stream could still bring it again."""
        with ExitStack() as stack:
            stack.enter_context(writing_alone(self.folder))
            self._connection = tables.open_tables(self.folder)
            stack.callback(self._connection.close)
            with tables.mendable(self.path):
                self._kinds = self._read_kinds()
                self._totals = self._read_totals()
                newest = self._only("SELECT max(number) FROM impressions") or 0
                self._next: int = max(newest, tables.closed_to(self._connection)) + 1
                since = self._only("SELECT max(arrived) FROM impressions") or 0.0
                written = self._only("SELECT max(written) FROM segments") or 0.0
            self.now = SteadyClock(clock, since=max(since, written))
            self._counting = threading.Lock()
            self._counts: Counter[str] = Counter()
            self._group = GroupCommit(self._commit_here, "dualrank events")
            self._held = stack.pop_all()

    def show(self, impression: Impression) -> None:
        """Hand an impression over; it is on disk before any event of it is acknowledged."""
        require_storable(impression)
        self._group.show(replace(impression, time=self.now()))

    async def record(self, events: Sequence[Event]) -> list[Outcome]:
        """Put events on disk, and say what became of each."""
        for event in events:
            require_storable_event(event)
        return await asyncio.wrap_future(self._group.record(events))

    def copy(self, impressions: Sequence[Impression], events: Sequence[Event]) -> list[Outcome]:
        """Put on disk what a stream brought, with its times, and return when it is there.

        What is there already is left alone. Events may come before their impression, and wait for
        it: they count when it comes.
        """
        return self._group.call(lambda: self._commit(impressions, events, early=True)).result()

    def alone(self, job: Callable[[sqlite3.Connection], Result]) -> Result:
        """Do something with the tables in a transaction of its own, between two groups."""

        def transact() -> Result:
            with tables.transaction(self._connection, self.path):
                return job(self._connection)

        with tables.mendable(self.path):
            return self._group.call(transact).result()

    def give_back(self) -> None:
        """Give empty pages of the file back to the system, where they are many."""

        def shrink() -> None:
            free = self._only("PRAGMA freelist_count")
            if free > _FREE_PAGES and free > self._only("PRAGMA page_count") / 4:
                # Of this statement `execute` makes one step, which frees one page.
                self._connection.executescript(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})")

        with tables.mendable(self.path):
            self._group.call(shrink).result()

    def close(self) -> None:
        """Write what was handed over, and let go."""
        self._group.close()
        self._held.close()

    def __enter__(self) -> EventStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def problem(self) -> str | None:
        """Why nothing can be written just now; None where all is well."""
        return self._group.problem

    def counts(self) -> dict[str, int]:
        """How much there was: `impressions`, `events` and `late` since the folder was made.

        Since the start of the process: events by outcome; impressions that were `dropped` because
        nothing could be written for too long; what is `waiting` to be written.
        """
        with self._counting:
            return {
                "impressions": self._totals["impressions"],
                "events": self._totals["events"],
                "late": self._totals["late"],
                **{key: count for key, count in self._counts.items() if key != "late"},
                "dropped": self._group.dropped,
                "waiting": self._group.waiting,
            }

    def _commit_here(
        self, impressions: Sequence[Impression], events: Sequence[Event]
    ) -> list[Outcome]:
        return self._commit(impressions, events)

    def _commit(
        self, impressions: Sequence[Impression], events: Sequence[Event], *, early: bool = False
    ) -> list[Outcome]:
        """Write a group in one transaction; `early` lets events wait for their impressions."""
        arrived = self.now()
        kinds = dict(self._kinds)
        added = Counter[str]()
        try:
            with tables.transaction(self._connection, self.path):
                rows = [
                    (
                        self._next + place,
                        each.impression_id,
                        arrived,
                        each.time,
                        each.query_id,
                        json.dumps(each.doc_ids),
                        each.version,
                        each.swapped,
                        each.client,
                        each.features,
                    )
                    for place, each in enumerate(impressions)
                ]
                before = self._connection.total_changes
                tables.insert(self._connection, "impressions", rows, how="OR IGNORE")
                added["impressions"] = self._connection.total_changes - before
                if early and impressions:
                    added.update(self._join_early([each.impression_id for each in impressions]))
                outcomes, stored = self._insert_events(events, arrived, early)
                added.update(stored)
                for name, count in added.items():
                    tables.add_to(self._connection, name, count)
        except BaseException:
            self._kinds = kinds
            raise
        with self._counting:
            self._next += len(impressions)
            self._totals += added
            self._counts.update(outcomes)
        return outcomes

    def _insert_events(
        self, events: Sequence[Event], arrived: float, early: bool
    ) -> tuple[list[Outcome], Counter[str]]:
        """What becomes of events, and how many of them are with their impressions."""
        if not events:
            return [], Counter()
        there = tables.find(self._connection, list({event.impression_id for event in events}))
        outcomes: list[Outcome] = []
        closed_to = tables.closed_to(self._connection)
        # What may be new, by its key: the place of its outcome, and its row.
        fresh = dict[tuple[int | str, str], tuple[int, tuple[object, ...]]]()
        waiting = dict[tuple[int | str, str], tuple[int, tuple[object, ...]]]()
        for place, event in enumerate(events):
            number, documents = there.get(event.impression_id, (None, []))
            rest = (float(event.amount), event.time if early else arrived)
            outcome: Outcome = "again"
            if number is None and not early:
                outcome = "unknown impression"
            elif number is not None and event.doc_id not in documents:
                outcome = "not displayed"
            elif (kind := self._kind(event.kind)) is None:
                outcome = "unknown kind"
            elif number is None:
                key = (event.impression_id, event.event_id)
                if key not in waiting:
                    outcome = "new"
                    waiting[key] = (place, (*key, event.doc_id, kind, *rest))
            elif (number, event.event_id) not in fresh:
                outcome = "late" if number <= closed_to else "new"
                position = documents.index(event.doc_id) + 1
                row = (number, event.event_id, position, kind, *rest, outcome == "late")
                fresh[number, event.event_id] = (place, row)
            outcomes.append(outcome)
        for table, found in (("events", fresh), ("early", waiting)):
            known = tables.known_events(self._connection, list(found), table)
            rows = []
            for index, (place, values) in enumerate(found.values()):
                if index in known:
                    outcomes[place] = "again"
                else:
                    rows.append(values)
            tables.insert(self._connection, table, rows)
        there_now = [outcomes[place] for place, _ in fresh.values()]
        late = there_now.count("late")
        return outcomes, Counter(events=there_now.count("new") + late, late=late)

    def _join_early(self, impression_ids: Sequence[str]) -> Counter[str]:
        """Put events that waited for these impressions where they belong."""
        if not self._only("SELECT EXISTS (SELECT 1 FROM early)"):
            return Counter()
        waited = tables.take_early(self._connection, impression_ids)
        there = tables.find(self._connection, list({each[0] for each in waited}))
        # An impression that comes only now is in no segment yet: none of them is late.
        rows = []
        for impression_id, event_id, document, *rest in waited:
            number, documents = there[impression_id]
            if document in documents:
                rows.append((number, event_id, documents.index(document) + 1, *rest, False))
        tables.insert(self._connection, "events", rows, how="OR IGNORE")
        return Counter(events=len(rows))

    def _kind(self, name: str) -> int | None:
        """The number of a kind of events; None for what cannot be one, or for one too many."""
        if name not in self._kinds:
            if not can_be_kind(name) or len(self._kinds) >= MOST_KINDS:
                return None
            number = len(self._kinds)
            tables.insert(self._connection, "kinds", [(number, name)])
            self._kinds[name] = number
        return self._kinds[name]

    def _read_totals(self) -> Counter[str]:
        values = dict(self._connection.execute("SELECT name, value FROM state"))
        counted = ("impressions", "events", "late")
        return Counter({name: int(values.get(name, 0)) for name in counted})

    def _read_kinds(self) -> dict[str, int]:
        return dict(self._connection.execute("SELECT name, number FROM kinds ORDER BY number"))

    def _only(self, question: str, *values: object) -> Any:
        return tables.only(self._connection, question, *values)
