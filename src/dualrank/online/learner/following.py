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

logger = logging.getLogger(__name__)


def follow(
    learner: Learner,
    *,
    every: float = LOOK_EVERY,
    heard: Callable[[int, int], None] | None = None,
    until: Callable[[], bool] = lambda: False,
) -> None:
    """Learn from segments as they are closed.

    What cannot be read or written now, because the disk is full, is tried again: what was learned
    until then is on disk. `heard` is told how many segments have been learned, and how many there
    are; `until` ends it between two looks. A `StoppedError` that a signal raises ends it at once:
    the round is done again at the next start.
    """
    wait = every
    with suppress(StoppedError):
        while not until():
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


def catch_up(learner: Learner, heard: Callable[[int, int], None] | None = None) -> None:
    """Learn from all segments that are closed, and end."""
    follow(learner, every=0.0, heard=heard, until=lambda: not learner.has_more)
