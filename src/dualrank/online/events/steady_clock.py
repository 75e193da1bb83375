"""Time that never goes back and never stands still, whatever happens to the clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class SteadyClock:
    """Seconds since 1970: those of the clock, unless it was set back.

    Then time goes on from what was seen last, as fast as time passes. `since` is what was seen
    before, perhaps by another process.

    >>> wall, passed = iter([100.0, 50.0, 200.0]), iter([0.0, 3.0, 4.0])
    >>> clock = SteadyClock(lambda: next(wall), passed=lambda: next(passed))
    >>> clock(), clock()
    (103.0, 200.0)
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        *,
        since: float = 0.0,
        passed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._passed = passed
        self._lock = threading.Lock()
        self._asked = passed()
        self._last = max(since, clock())

    def __call__(self) -> float:
        """What time it is."""
        with self._lock:
            asked = self._passed()
            self._last = max(self._clock(), self._last + (asked - self._asked))
            self._asked = asked
            return self._last
