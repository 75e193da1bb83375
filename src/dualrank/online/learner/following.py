"""A learner that follows a store of events until it is asked to stop."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress

from dualrank.errors import DataError, StoppedError, StorageError
from dualrank.online.learner.learner import Learner
from dualrank.sentences import duration

LOOK_EVERY = 1.0
"""Seconds between two looks where there is nothing to do."""
LONGEST_WAIT = 60.0
LONG_STANDSTILL = 60.0
"""Seconds without new events for a reason, after which that is an alarm."""
LOOKS = 3
"""At a segment that cannot be used, where nobody wants to wait."""

logger = logging.getLogger(__name__)


def follow(
    learner: Learner,
    *,
    every: float = LOOK_EVERY,
    heard: Callable[[int, int], None] | None = None,
    problem: Callable[[], str | None] = lambda: None,
) -> None:
    """Learn from segments as they are closed.

    What cannot be read or written now, because the disk is full, is tried again: what was learned
    until then is on disk. `heard` is told how many segments have been learned, and how many there
    are. `problem` says why no events come in: for a minute, that is an alarm. A `StoppedError` that
    a signal raises ends it at once: the round is done again at the next start.
    """
    wait, standstill = every, _Standstill(learner, problem)
    with suppress(StoppedError):
        while True:
            try:
                standstill.look()
                busy = learner.step()
                wait = every
            except (OSError, StorageError, DataError) as error:
                logger.error("learning waits: %s", error)
                busy, wait = False, min(2 * wait, LONGEST_WAIT)
            if heard is not None:
                heard(learner.state.learned, max(learner.segments.closed(), default=0))
            if not busy:
                time.sleep(wait)


class _Standstill:
    """Whether events come in; an alarm where they have not for a while, and said once."""

    def __init__(self, learner: Learner, problem: Callable[[], str | None]) -> None:
        self._learner, self._problem = learner, problem
        self._since: float | None = None
        self._said = False

    def look(self) -> None:
        found = self._problem()
        if found is None:
            self._since, self._said = None, False
            return
        now = time.monotonic()
        if self._since is None:
            self._since = now
        lasts = now - self._since
        if lasts >= LONG_STANDSTILL and not self._said:
            self._learner.say("events", f"no events have come in for {duration(lasts)}: {found}")
            self._said = True


def catch_up(
    learner: Learner,
    heard: Callable[[int, int], None] | None = None,
    *,
    every: float = LOOK_EVERY,
) -> None:
    """Learn from all segments that are closed, and end.

    A segment that cannot be used is looked at again after a pause, and then is an error: no
    segment is left out, and what was learned until then is on disk.
    """
    looks = 0
    with suppress(StoppedError):
        while learner.has_more:
            busy = learner.step()
            last = max(learner.segments.closed(), default=0)
            if heard is not None:
                heard(learner.state.learned, last)
            looks = 0 if busy else looks + 1
            if looks == LOOKS:
                raise DataError(
                    f"{learner.waits_for}; learned up to segment {learner.state.learned} of "
                    f"{last}; put it back or mend it, or let `dualrank learn` follow, which goes "
                    "on without it after a while"
                )
            if not busy:
                time.sleep(every)
