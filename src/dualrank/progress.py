"""Who hears how far long work is.

A function that may take more than two seconds is marked with `shows_progress` and named there.
Where somebody watches, the mark opens a bar of that name and gives the function its `progress`;
where nobody does, or the caller has given a `progress` of its own, it does nothing. In a notebook
that a person works in, somebody watches; commands say that they do (`show_progress`); a program
that calls dualrank is told nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

from dualrank.notebook_bar import is_watched, notebook_place
from dualrank.pace import Heard

Bars = Callable[[str], AbstractContextManager[Heard]]
"""What makes a bar for a named piece of work, open as long as the work lasts."""
Given = ParamSpec("Given")
Result = TypeVar("Result")


@contextmanager
def no_bar(work: str) -> Iterator[Heard]:
    """The bar of work that nobody watches."""
    yield lambda done, total: None


@contextmanager
def _in_notebook(work: str) -> Iterator[Heard]:
    """A bar under the cell, in which work inside of this work is shown too."""
    with notebook_place() as part, show_progress(part), part(work) as heard:
        yield heard


_SHOWN: ContextVar[Bars | None] = ContextVar("dualrank_bars", default=None)


def current_bars() -> Bars:
    """What makes bars just now."""
    return _SHOWN.get() or (_in_notebook if is_watched() else no_bar)


@contextmanager
def show_progress(bars: Bars | None) -> Iterator[None]:
    """Within this block, long work is shown by these bars, or with `None` by none at all.

    `bars` is called with the name of a piece of work, and gives a context manager of what hears
    of it:

    >>> from contextlib import contextmanager
    >>> @contextmanager
    ... def printed(work):
    ...     yield lambda done, total: print(f"{work}: {done} of {total}")
    >>> @shows_progress("counting")
    ... def count(n, progress=None):
    ...     for i in range(n):
    ...         progress(i + 1, n)
    >>> with show_progress(printed):
    ...     count(2)
    counting: 1 of 2
    counting: 2 of 2
    """
    token = _SHOWN.set(bars or no_bar)
    try:
        yield
    finally:
        _SHOWN.reset(token)


def shows_progress(work: str) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Mark a function that may take long, and name what it does.

    If it has a `progress` that is not given, it gets that of the bar; of one that has none, the
    bar shows how long it has taken.
    """

    def marked(function: Callable[Given, Result]) -> Callable[Given, Result]:
        takes = "progress" in signature(function).parameters

        @wraps(function)
        def call(*given: Given.args, **named: Given.kwargs) -> Result:
            options: dict[str, Any] = named
            bars = current_bars()
            if bars is no_bar or options.get("progress") is not None:
                return function(*given, **named)
            with bars(work) as heard:
                if takes:
                    options["progress"] = heard
                return function(*given, **named)

        return call

    return marked
