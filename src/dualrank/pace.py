"""How far a piece of work is, how fast it goes, and how long it will still take."""

from __future__ import annotations

import time
from collections.abc import Callable

from dualrank.sentences import duration

Heard = Callable[[float, float], None]
"""What is told how much is done, and how much there is."""


def rate_in_words(per_second: float) -> str:
    """So many a second, or a minute or an hour where that is less than one.

    >>> rate_in_words(1234.5), rate_in_words(2.52), rate_in_words(0.1), rate_in_words(0.01)
    ('1,234/s', '2.5/s', '6.0/min', '36/h')
    """
    unit, times = next(
        ((unit, times) for unit, times in (("s", 1), ("min", 60)) if per_second * times >= 1),
        ("h", 3600),
    )
    value = per_second * times
    return f"{value:,.0f}/{unit}" if value >= 10 else f"{value:.1f}/{unit}"


class Pace:
    """What a piece of work has reported, and what follows from it by the clock.

    Work that goes on where it was interrupted has much done at its first report: once there is a
    second one, speed is measured from the first.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.began = clock()
        self.done, self.total = 0.0, 0.0
        self._from: tuple[float, float] | None = None

    def report(self, done: float, total: float) -> None:
        """Note how much of how much is done."""
        if self._from is None or done < self.done or total != self.total:
            self._from = (self._clock(), done)
        self.done, self.total = done, total

    @property
    def took(self) -> float:
        """Seconds since it began."""
        return self._clock() - self.began

    @property
    def share(self) -> float | None:
        """The share that is done, where it is known."""
        return self.done / self.total if self.total else None

    @property
    def speed(self) -> float | None:
        """How much is done in a second, once something is."""
        since, before = self.began, 0.0
        if self._from is not None and self.done > self._from[1]:
            since, before = self._from
        seconds = self._clock() - since
        return (self.done - before) / seconds if self.done > before and seconds > 0 else None

    def in_words(self) -> str:
        """Share, rate, time so far and time left, as far as they are known."""
        so_far = f"{duration(self.took)} so far"
        if self.share is None:
            return so_far
        words = [f"{self.share:.0%} ({int(self.done):,} of {int(self.total):,})"]
        if self.speed is None:
            return ", ".join([*words, so_far])
        left = max(self.total - self.done, 0) / self.speed
        words += [rate_in_words(self.speed), so_far, f"about {duration(left)} left"]
        return ", ".join(words)
