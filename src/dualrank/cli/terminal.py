"""What commands share: options, progress on stderr, results on stdout."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualrank.cli.progress_lines import progress_lines
from dualrank.errors import StoppedError
from dualrank.pace import Heard, rate_in_words
from dualrank.progress import show_progress
from dualrank.showing.visible import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, Task, TaskID
    from rich.table import Table as RichTable

    from dualrank.data.click_log import ClickLog
    from dualrank.data.dataset import Dataset
    from dualrank.data.log.log_options import LogOptions
    from dualrank.learning.model import Model
    from dualrank.report import Table

Log = Annotated[
    str,
    typer.Argument(
        metavar="LOG",
        help="The click log: Parquet, CSV or JSON lines; a file, folder, pattern, or reduced log.",
    ),
]
PATIENCE = 2.0
"""Seconds after which work is shown that no command has named."""
Seed = Annotated[int, typer.Option("--seed", help="The seed of everything random.", min=0)]
MaxGrade = Annotated[
    float | None,
    typer.Option(help="The highest grade there can be; without it, the highest in the file."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]


def result_console() -> Console:
    """Where tables go."""
    from rich.console import Console

    return Console(highlight=False)


def print_json(content: Any) -> None:
    """The machine-readable result."""
    typer.echo(json.dumps(content, indent=1))


def answer(as_json: bool, content: Any, *shown: str | Table | None) -> None:
    """The result: `content` for machines, sentences and tables for people."""
    if as_json:
        print_json(content)
        return
    console = result_console()
    for each in shown:
        if isinstance(each, str):
            # A line feed at the start is ours, to leave a line empty; others come from the data.
            text = each.lstrip("\n")
            typer.echo("\n" * (len(each) - len(text)) + visible(text))
        elif each is not None:
            console.print(each.rich(console.width))


def typed_command() -> str:
    """The command as it was typed, to be repeated."""
    return shlex.join(["dualrank", *sys.argv[1:]])


def open_features(
    path: Path, model: Model | None = None, max_grade: float | None = None
) -> Dataset:
    """Read features, those that a model knows where there is one, with a bar."""
    from dualrank.data.features import read_features

    # LETOR text leaves out zeros, so that the model has to say how many features there are.
    count = None if model is None else model.scaler.input_count
    names = None if model is None else model.feature_names
    with one_bar(f"reading {path.name}") as report:
        return read_features(path, count=count, names=names, max_grade=max_grade, progress=report)


def open_log(log: str, dataset: Dataset | None, options: LogOptions) -> ClickLog:
    """Read a log as these options say, with a bar."""
    from dualrank.data.log.read_log import read_log

    with one_bar(f"reading {Path(log).name}") as report:
        return read_log(log, dataset, options=options, progress=report)


@contextmanager
def _progress_bars(console: Console) -> Iterator[Progress]:
    """Bars with rate and remaining time, removed at the end."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if not speed else rate_in_words(speed))

    class Bars(Progress):
        def make_tasks_table(self, tasks: Iterable[Task]) -> RichTable:
            return super().make_tasks_table([task for task in tasks if _is_due(task)])

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        Rate(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=console, transient=True) as progress:
        yield progress


def _is_due(task: Task) -> bool:
    """Whether a bar is shown at once, or has lasted long enough and says what the others do not."""
    lasts = not task.fields.get("waits") or (task.elapsed or 0.0) >= PATIENCE
    return lasts and (task.total is not None or not task.fields.get("below"))


def _error_console() -> Console:
    from rich.console import Console

    return Console(stderr=True)


def _is_silent() -> bool:
    """Of the workers of torchrun, the first one speaks."""
    return os.environ.get("RANK", "0") != "0"


@contextmanager
def one_bar(description: str, *, waits: bool = False, endless: bool = False) -> Iterator[Heard]:
    """A single bar, fed with what is done and how much there is; lines where stderr is a file.

    A bar that `waits` is seen after two seconds. So are those of long work inside, which come
    under this one; where stderr is a file, this one's lines tell of them if it has no count. Of
    `endless` work, which nobody waits for, a file gets no lines.
    """
    console = _error_console()
    if _is_silent() or (endless and not console.is_terminal):
        with show_progress(None):
            yield lambda done, total: None
    elif not console.is_terminal:
        with progress_lines(description) as heard:
            yield heard
    else:
        with _progress_bars(console) as progress, show_progress(partial(_bar_below, progress)):
            yield _add_bar(progress, description, waits=waits)[1]


@contextmanager
def _bar_below(progress: Progress, description: str) -> Iterator[Heard]:
    """The bar of long work inside of other work, seen after two seconds."""
    task, heard = _add_bar(progress, description, waits=True, below=True)
    try:
        yield heard
    finally:
        progress.remove_task(task)


def _add_bar(progress: Progress, description: str, **fields: bool) -> tuple[TaskID, Heard]:
    task = progress.add_task(visible(description), total=None, **fields)
    return task, lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def leaving_on_sigterm(
    report: Heard,
) -> Iterator[Heard]:
    """Progress that ends the work at its next report once the process is asked to terminate.

    Work that reports no more ends with the block, and asked a second time it ends at once.
    """
    asked = False

    def note(*_: object) -> None:
        nonlocal asked
        if asked:
            raise StoppedError("asked to stop twice; the same command goes on from the last save")
        asked = True

    def report_or_leave(done: float, total: float) -> None:
        report(done, total)
        if asked:
            raise StoppedError(f"asked to stop at {done} of {total}; the same command goes on")

    before = signal.signal(signal.SIGTERM, note)
    try:
        yield report_or_leave
        if asked:
            raise StoppedError("asked to stop; the same command goes on")
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def task_bars(
    names: Sequence[str],
) -> Iterator[tuple[Callable[[int, int, int], None], Callable[[], None]]]:
    """A bar over all tasks, and one for each that runs: what hears of steps, and of ends."""
    console = _error_console()
    if _is_silent() or not console.is_terminal:
        with one_bar(f"{len(names)} tasks") as heard:
            yield _added_up(heard, len(names))
        return
    with _progress_bars(console) as progress, show_progress(partial(_bar_below, progress)):
        whole = progress.add_task("all", total=len(names))
        bars: dict[int, Any] = {}

        def report(index: int, done: int, total: int) -> None:
            if index not in bars:
                bars[index] = progress.add_task(visible(f"  {names[index]}"), total=total)
            progress.update(bars[index], completed=done, total=total, visible=done < total)

        yield report, lambda: progress.advance(whole)


def _added_up(
    heard: Callable[[float, float], None], count: int
) -> tuple[Callable[[int, int, int], None], Callable[[], None]]:
    """One sum of tasks that are done and of the parts that others have done."""
    parts: dict[int, float] = {}
    ended = 0

    def tell() -> None:
        heard(ended + sum(part for part in parts.values() if part < 1), count)

    def report(index: int, done: int, total: int) -> None:
        parts[index] = done / total if total else 0.0
        tell()

    def finished() -> None:
        nonlocal ended
        ended += 1
        tell()

    return report, finished
