"""Progress where stderr is a file or a pipe: a line now and then, in the place of bars.

Nobody sees a bar there, and minutes of silence look like a process that hangs.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dualrank.pace import Heard, Pace
from dualrank.progress import show_progress
from dualrank.sentences import duration
from dualrank.showing.visible import visible

FIRST = 5.0
"""Seconds until the first line."""
EVERY = 30.0
"""Seconds between two lines."""
LEAST = 0.01
"""Seconds between two looks at the clock."""
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
        self.pace = Pace(clock)
        self.inside: tuple[str, Pace] | None = None
        self.next = FIRST

    def report(self, done: float, total: float) -> None:
        """Note how much of how much is done."""
        self.pace.report(done, total)
        self.speak()

    @contextmanager
    def within(self, work: str) -> Iterator[Heard]:
        """Work inside of this one, which tells how far it is where this one does not."""
        around, pace = self.inside, Pace(self.clock)
        self.inside = (visible(work), pace)

        def report(done: float, total: float) -> None:
            pace.report(done, total)
            self.speak()

        try:
            yield report
        finally:
            self.inside = around

    def speak(self) -> None:
        """Say a line, if the last one was long ago."""
        took, inside = self.pace.took, self.inside
        if took < self.next:
            return
        self.next = took + EVERY
        if self.pace.share is None and inside is not None and inside[1].share is not None:
            self.say(f"{self.work}, {inside[0]}: {inside[1].in_words()}")
        else:
            self.say(f"{self.work}: {self.pace.in_words()}")

    def end(self) -> None:
        """Say that all is done, if it took its time."""
        took = self.pace.took
        if took >= WORTH_A_WORD:
            self.say(f"{self.work}: done after {duration(took)}")


@contextmanager
def progress_lines(work: str) -> Iterator[Callable[[float, float], None]]:
    """Lines on stderr; what hears of the work. They also come where the work reports nothing."""
    lines = ProgressLines(work, _to_stderr)
    over = threading.Event()

    def watch() -> None:
        while not over.wait(max(lines.next - lines.pace.took, LEAST)):
            lines.speak()

    watching = threading.Thread(target=watch, daemon=True, name="progress")
    watching.start()
    try:
        with show_progress(lines.within):
            yield lines.report
        lines.end()
    finally:
        over.set()
        watching.join()


def _to_stderr(line: str) -> None:
    print(f"dualrank: {line}", file=sys.stderr, flush=True)  # noqa: T201 - progress is for people
