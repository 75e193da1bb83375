"""Many who wait for one disk: what is waiting is written at once, by one thread.

While a group is being written the next one gathers, so that the more there is to write, the more
is written at a time. Whoever waits is told when its group is on disk, or that it is not.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from dualrank.errors import DualrankError, StorageError
from dualrank.online.records import Event, Impression, Outcome

MOST_IMPRESSIONS = 20_000
"""So many impressions may wait while nothing can be written; further ones are lost, and counted."""
MOST_EVENTS = 200_000
"""So many events may wait; further ones are refused at once."""
MOST_EVENTS_OF_GROUP = 20_000
GATHERED = 0.05
"""Seconds for which impressions wait for each other, while no event waits."""
MANY = 1_000
PAUSE = 0.1
"""Seconds between two attempts where nothing can be written."""
PATIENCE = 5.0
"""Seconds for which a writer that is to stop tries to write what is left."""

Commit = Callable[[Sequence[Impression], Sequence[Event]], list[Outcome]]
Result = TypeVar("Result")
_log = logging.getLogger(__name__)


class GroupCommit:
    """A thread that hands groups of impressions and events to `commit`.

    `commit` writes all or nothing, impressions first, and raises `StorageError` where it cannot:
    then the events of the group are refused, and its impressions wait for the next.
    """

    def __init__(self, commit: Commit, name: str) -> None:
        self._commit = commit
        self._impressions: deque[Impression] = deque()
        self._batches: deque[tuple[Sequence[Event], Future[list[Outcome]]]] = deque()
        self._jobs: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._events = 0
        self._changed = threading.Condition()
        self._stop_by: float | None = None
        self.dropped = 0
        """Impressions that were lost because nothing could be written for too long."""
        self.problem: str | None = None
        """Why nothing can be written just now."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Impressions and events that are not on disk yet."""
        return len(self._impressions) + self._events

    def show(self, impression: Impression) -> None:
        """Let an impression wait for the next group."""
        with self._changed:
            if self._stop_by is not None or len(self._impressions) >= MOST_IMPRESSIONS:
                self.dropped += 1
                return
            self._impressions.append(impression)
            if len(self._impressions) == 1:
                self._changed.notify()

    def record(self, events: Sequence[Event]) -> Future[list[Outcome]]:
        """Let events wait for the next group; the future knows what became of them."""
        future: Future[list[Outcome]] = Future()
        future.set_running_or_notify_cancel()  # Whoever no longer waits changes nothing.
        with self._changed:
            self._require_open()
            if self._events + len(events) > MOST_EVENTS:
                raise StorageError(
                    f"{self._events:,} events are waiting to be written; send these again later"
                )
            self._batches.append((events, future))
            self._events += len(events)
            self._changed.notify()
        return future

    def call(self, job: Callable[[], Result]) -> Future[Result]:
        """Let the thread do something between two groups."""
        future: Future[Result] = Future()
        future.set_running_or_notify_cancel()
        with self._changed:
            self._require_open()
            self._jobs.append((job, future))
            self._changed.notify()
        return future

    def close(self) -> None:
        """Write what is waiting, as far as that is possible, and end the thread."""
        with self._changed:
            if self._stop_by is None:
                self._stop_by = time.monotonic() + PATIENCE
            self._changed.notify()
        self._thread.join()

    def _require_open(self) -> None:
        if self._stop_by is not None:
            raise StorageError("events are no longer taken: the service is stopping")

    def _run(self) -> None:
        while True:
            with self._changed:
                while not (self._impressions or self._batches or self._jobs):
                    if self._stop_by is not None:
                        return
                    self._changed.wait()
                self._gather()
                if self._stop_by is not None and time.monotonic() > self._stop_by:
                    self._give_up()
                    return
                jobs, self._jobs = self._jobs, deque()
                group = self._take()
            for job, future in jobs:
                _answer(future, job)
            if not self._write(*group):
                # Nobody may hold the processor with attempts; a moment later there may be room.
                time.sleep(PAUSE)

    def _gather(self) -> None:
        """Impressions alone are in no hurry: one transaction for each would slow the answers."""
        until = time.monotonic() + GATHERED
        while not (self._batches or self._jobs) and self._stop_by is None:
            left = until - time.monotonic()
            if left <= 0 or len(self._impressions) >= MANY:
                return
            self._changed.wait(left)

    def _take(
        self,
    ) -> tuple[list[Impression], list[tuple[Sequence[Event], Future[list[Outcome]]]]]:
        """All impressions, since events of any of them may follow, and some batches of events."""
        impressions = list(self._impressions)
        self._impressions.clear()
        batches, events = list[tuple[Sequence[Event], Future[list[Outcome]]]](), 0
        while self._batches and events < MOST_EVENTS_OF_GROUP:
            batches.append(self._batches.popleft())
            events += len(batches[-1][0])
        self._events -= events
        return impressions, batches

    def _write(
        self,
        impressions: list[Impression],
        batches: list[tuple[Sequence[Event], Future[list[Outcome]]]],
    ) -> bool:
        """Write a group, and tell those who wait; whether it is written."""
        if not impressions and not batches:
            return True
        try:
            outcomes = self._commit(
                impressions, [event for events, _ in batches for event in events]
            )
        except DualrankError as error:
            if self.problem is None:
                _log.warning("nothing can be written: %s", error)
            self.problem = str(error)
            with self._changed:
                self._impressions.extendleft(reversed(impressions))
            for _, future in batches:
                future.set_exception(StorageError(self.problem))
            return False
        except Exception as error:
            # A mistake of ours: it must not come again with the same group for ever.
            _log.exception("a group of %d impressions is lost", len(impressions))
            self.dropped += len(impressions)
            for _, future in batches:
                future.set_exception(error)
            return True
        self.problem = None
        start = 0
        for events, future in batches:
            future.set_result(outcomes[start : start + len(events)])
            start += len(events)
        return True

    def _give_up(self) -> None:
        self.dropped += len(self._impressions)
        self._impressions.clear()
        error = StorageError(self.problem or "the service has stopped")
        for _, future in (*self._batches, *self._jobs):
            future.set_exception(error)
        self._batches.clear()
        self._jobs.clear()
        self._events = 0


def _answer(future: Future[Any], job: Callable[[], Any]) -> None:
    try:
        future.set_result(job())
    except Exception as error:
        future.set_exception(error)
