"""Wait for a condition instead of a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 240.0
"""Seconds after which a condition counts as failed: far more than a slow, busy machine needs."""


def wait_until(
    condition: Callable[[], T], describe: Callable[[], str] | None = None, pause: float = 0.02
) -> T:
    """Return the first true value of `condition`, called again and again.

    Args:
        condition: Called until it returns something true.
        describe: Returns what to say when that never happens, such as the log of a process.
        pause: Seconds between two calls.

    Raises:
        AssertionError: It was not true within `PATIENCE` seconds.
    """
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, describe() if describe else f"not within {PATIENCE} seconds"
        time.sleep(pause)
    return found
