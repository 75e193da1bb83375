"""A sheet in a terminal: tables, verdict, points, examination curve, where the files are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualrank.sentences import counted
from dualrank.showing.visible import plain, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from dualrank.diagnostics.point import Point
    from dualrank.report.sheet import Sheet

# One line of a bar holds two: the upper half is learned, the lower half is true.
_BOTH, _LEARNED, _TRUE = "█", "▀", "▄"
_WIDEST_BAR = 60
_WIDEST = 100
# For terminals that know no Unicode; character by character, so that columns stay in line.
_PLAIN = str.maketrans("█▀▄⁺⁻−±≤’✓✗·→", "#^_+--~<'+x.>")
_COLORS = {"good": "green", "warning": "yellow", "failed": "red", "not measured": "dim"}


@dataclass(frozen=True, eq=False)
class Bars:
    """A learned examination curve against the true one where that is known, by position."""

    label: str
    learned: NDArray[np.float64]
    truth: NDArray[np.float64] | None = None

    def lines(self, width: int) -> list[Text]:
        """A bar per position; where the two differ, half as high, in the longer one's colour."""
        from rich.text import Text

        learned, truth = self.learned, self.truth
        if truth is not None and len(truth) < len(learned):
            truth = None
        title = "Examination by position"
        columns = f"{'learned':>9}" + (f"{'true':>7}" if truth is not None else "")
        room = max(4, min(_WIDEST_BAR, width - 3 - len(columns) - 2))
        highest = [1.0, float(learned.max()), *([] if truth is None else [float(truth.max())])]
        scale = room / max(highest)
        lines = [Text(f"{title:<{3 + room}}"[: 3 + room] + columns, style="bold")]
        for i, value in enumerate(learned):
            long = round(float(value) * scale)
            other = long if truth is None else round(float(truth[i]) * scale)
            line = Text(f"{i + 1:>2} ").append(_BOTH * min(long, other), "blue")
            line.append(_LEARNED * (long - other), "blue").append(_TRUE * (other - long), "yellow")
            line.append(" " * (room - max(long, other)) + f"{value:>9.2f}")
            if truth is not None:
                line.append(f"{truth[i]:>7.2f}", "dim")
            lines.append(line)
        if truth is not None:
            legend = Text(f"   {_LEARNED} ", "blue").append(
                f"learned ({visible(self.label)})   ", "dim"
            )
            lines.append(legend.append(f"{_TRUE} ", "yellow").append("true", "dim"))
        return lines


def show(sheet: Sheet, console: Console, files: Sequence[Path] = ()) -> None:
    """Print a sheet; see `Sheet.show`."""
    if not console.options.ascii_only:
        _show(sheet, console, files)
        return
    with console.capture() as capture:
        _show(sheet, console, files)
    text = capture.get().translate(_PLAIN)
    console.file.write(text.encode(console.encoding, "replace").decode(console.encoding))


def _show(sheet: Sheet, console: Console, files: Sequence[Path]) -> None:
    width = min(console.width, _WIDEST)
    tables = [section for section in sheet.sections if section.table is not None]
    for section in tables:
        assert section.table is not None
        if len(tables) > 1:
            console.print(plain(section.title, "bold"))
        console.print(section.table.rich(console.width))
        for text in (section.table.note, str(section.text)):
            if text:
                console.print(plain(text, "dim"), width=width)
        console.print()
    if sheet.verdict:
        first, *others = sheet.verdict
        rest = plain(" " + " ".join(others), "not bold")
        console.print(plain(first, "bold").append_text(rest), width=width)
        console.print()
    points = [point for section in sheet.sections for point in section.points]
    if points:
        console.print(_points_table(points, width))
        counts = [(status, sum(point.status == status for point in points)) for status in _COLORS]
        said = ", ".join(
            counted(count, "warnings") if status == "warning" else f"{count} {status}"
            for status, count in counts
            if count
        )
        console.print()
        console.print(plain(said, "dim"))
    if sheet.bars is not None:
        for line in sheet.bars.lines(width):
            console.print(line, no_wrap=True, overflow="ellipsis")
        console.print()
    if files:
        _print_files(files, console)


def _points_table(points: Sequence[Point], width: int) -> Table:
    from rich.table import Table

    from dualrank.report.sheet import MARKS

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0), width=width)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for point in points:
        words = plain(point.meaning)
        if point.advice:
            words.append("\n").append_text(plain(f"→ {point.advice}", "dim"))
        mark = plain(MARKS[point.status], _COLORS[point.status])
        table.add_row(mark, plain(point.name, "bold"), words)
    return table


def _print_files(files: Sequence[Path], console: Console) -> None:
    """Name the files, the page to open first; soft-wrapped, so that paths can be copied."""
    ordered = sorted(files, key=lambda path: path.suffix != ".html")
    first = os.path.relpath(ordered[0])
    shown = first if not first.startswith("..") else str(ordered[0].absolute())
    named = plain("Report: ", "bold").append_text(plain(shown, "not bold cyan"))
    console.print(named, soft_wrap=True)
    rest = ", ".join(path.name for path in ordered[1:])
    if rest:
        console.print(plain(f"Beside it: {rest}", "dim"))
