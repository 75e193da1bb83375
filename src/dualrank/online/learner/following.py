"""A learner that follows a store of events until it is asked to stop."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress

from dualrank.errors import DataError, StoppedError, StorageError
from dualrank.online.learner.learner import Learner

LOOK_EVERY = 1.0
"""Seconds between two looks where there is nothing to do."""
LONGEST_WAIT = 60.0
LOOKS = 3
"""At a segment that cannot be used, where nobody wants to wait."""

logger = logging.getLogger(__name__)


def follow(
    learner: Learner,
    *,
    every: float = LOOK_EVERY,
    heard: Callable[[int, int], None] | None = None,
) -> None:
    """Learn from segments as they are closed.

    What cannot be read or written now, because the disk is full, is tried again: what was learned
    until then is on disk. `heard` is told how many segments have been learned, and how many there
    are. A `StoppedError` that a signal raises ends it at once: the round is done again at the next
    start.
    """
    wait = every
    with suppress(StoppedError):
        while True:
            try:
                busy = learner.step()
                wait = every
            except (OSError, StorageError, DataError) as error:
                logger.error("learning waits: %s", error)
                busy, wait = False, min(2 * wait, LONGEST_WAIT)
            if heard is not None:
                heard(learner.state.learned, max(learner.segments.closed(), default=0))
            if not busy:
                time.sleep(wait)


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
