"""Progress where stderr is a file or a pipe: a line now and then, in the place of bars.

Nobody sees a bar there, and minutes of silence look like a process that hangs.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dualrank.showing.visible import visible

EVERY = 30.0
"""Seconds between two lines."""
WORTH_A_WORD = 10.0
"""Work that took so many seconds is told to be done."""


class ProgressLines:
    """What is said of one piece of work, by what it reports and what the clock says."""

    def __init__(
        self,
        work: str,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.work, self.say, self.clock = visible(work), say, clock
        self.began = self.said = clock()
        self.done, self.total = 0.0, 0.0

    def report(self, done: float, total: float) -> None:
        """Note how much of how much is done."""
        self.done, self.total = done, total
        self.speak()

    def speak(self) -> None:
        """Say a line, if the last one was long ago."""
        now = self.clock()
        if now - self.said >= EVERY:
            self.said = now
            self.say(f"{self.work}: {self._state(now - self.began)}")

    def end(self) -> None:
        """Say that all is done, if it took its time."""
        took = self.clock() - self.began
        if took >= WORTH_A_WORD:
            self.say(f"{self.work}: done after {_in_words(took)}")

    def _state(self, took: float) -> str:
        if not self.total:
            return f"{_in_words(took)} so far"
        share = self.done / self.total
        counted = (
            f"{share:.0%} ({int(self.done):,} of {int(self.total):,}), {_in_words(took)} so far"
        )
        return counted + (f", about {_in_words(took / share - took)} left" if share else "")


@contextmanager
def progress_lines(work: str) -> Iterator[Callable[[float, float], None]]:
    """Lines on stderr; what hears of the work. They also come where the work reports nothing."""
    lines = ProgressLines(work, _to_stderr)
    over = threading.Event()

    def watch() -> None:
        while not over.wait(EVERY):
            lines.speak()

    watching = threading.Thread(target=watch, daemon=True, name="progress")
    watching.start()
    try:
        yield lines.report
        lines.end()
    finally:
        over.set()
        watching.join()


def _in_words(seconds: float) -> str:
    from dualrank.report.in_words import duration

    return duration(seconds)


def _to_stderr(line: str) -> None:
    print(f"dualrank: {line}", file=sys.stderr, flush=True)  # noqa: T201 - progress is for people
