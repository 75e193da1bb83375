"""A bar under the cell of a notebook, while something takes longer than two seconds.

It is one display that is updated and at the end emptied, whether the work ended well or not, so
that stored notebooks keep no bar. Work inside of work is shown in the same place.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from html import escape
from typing import Any

from dualrank.pace import Heard, Pace

PATIENCE = 2.0
"""Seconds after which work is shown."""
EVERY = 0.5
"""Seconds between two looks of the bar."""


def is_watched() -> bool:
    """Whether this runs in a notebook in which somebody works.

    Programs that execute notebooks (nbclient, Jupyter Book, papermill) say that nobody is there to
    be asked; what they store holds no bar.
    """
    try:
        shell = get_ipython()  # type: ignore[name-defined]
    except NameError:
        # Only IPython has this name, among the names that are built in.
        return False
    return bool(getattr(getattr(shell, "kernel", None), "_allow_stdin", False))


@contextmanager
def notebook_place() -> Iterator[Callable[[str], AbstractContextManager[Heard]]]:
    """A place under the cell that runs now, and what makes bars there."""
    bar = NotebookBar(_display())
    watching = threading.Thread(target=bar.watch, daemon=True, name="progress")
    watching.start()
    try:
        yield bar.part
    finally:
        bar.over.set()
        watching.join()
        bar.clear()


class NotebookBar:
    """What is shown of work and the work inside of it: the innermost that lasts and is counted.

    `display` is called with an HTML text and a plain one: the first time it makes a place, and
    after that it changes what stands there.
    """

    def __init__(
        self, display: Callable[[str, str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._display, self._clock = display, clock
        self._parts: list[tuple[str, Pace]] = []
        self._is_shown = False
        self.over = threading.Event()

    @contextmanager
    def part(self, work: str) -> Iterator[Heard]:
        """A piece of work, which ends before the one around it."""
        pace = Pace(self._clock)
        self._parts.append((work, pace))
        try:
            yield pace.report
        finally:
            self._parts.pop()

    def watch(self) -> None:
        """Show what lasts, until it is over."""
        while not self.over.wait(EVERY):
            # A bar that cannot be shown must not end the work.
            with suppress(Exception):
                self.look()

    def look(self) -> None:
        """Show how far it is, if it has taken long enough."""
        lasting = [part for part in list(self._parts) if part[1].took >= PATIENCE]
        if lasting:
            counted = [part for part in lasting if part[1].share is not None]
            work, pace = (counted or lasting[:1])[-1]
            self._is_shown = True
            self._display(_as_html(work, pace), f"{work}: {pace.in_words()}")

    def clear(self) -> None:
        """Leave nothing to be seen."""
        if self._is_shown:
            with suppress(Exception):
                self._display("", "")


def _as_html(work: str, pace: Pace) -> str:
    value = "" if pace.share is None else f' value="{min(pace.share, 1.0):.4f}"'
    bar = f'<progress max="1"{value} style="vertical-align: middle"></progress>'
    return f"<div>{escape(work)} {bar} {escape(pace.in_words())}</div>"


def _display() -> Callable[[str, str], None]:
    """A place under the cell that runs now."""
    import IPython.display

    display: Any = IPython.display.display
    handle: Any = None

    def show(html: str, plain: str) -> None:
        nonlocal handle
        content = {"text/html": html, "text/plain": plain}
        if handle is None:
            handle = display(content, raw=True, display_id=True)
        else:
            handle.update(content, raw=True)

    return show
