"""The results in a terminal: verdict, table, examination curve, where the files are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dualrank.report.curves import propensity_curves, true_examination
from dualrank.report.labels import method
from dualrank.report.result_table import ResultTable
from dualrank.report.results import Results
from dualrank.report.verdict import verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

# One line of a bar holds two: the upper half is learned, the lower half is true.
_BOTH, _LEARNED, _TRUE = "█", "▀", "▄"
_WIDEST = 60
# For terminals that know no Unicode; character by character, so that columns stay in line.
_PLAIN = str.maketrans("█▀▄⁺⁻−±≤’", "#^_+--~<'")


def print_report(results: Results, console: Console, files: Sequence[Path] = ()) -> None:
    """Print what a person wants to see at the end of an experiment."""
    if not console.options.ascii_only:
        _print(results, console, files)
        return
    with console.capture() as capture:
        _print(results, console, files)
    text = capture.get().translate(_PLAIN)
    console.file.write(text.encode(console.encoding, "replace").decode(console.encoding))


def _print(results: Results, console: Console, files: Sequence[Path]) -> None:
    from rich.text import Text

    table = ResultTable.from_results(results)
    if table.rows and table.metrics:
        console.print(table.rich(console.width))
        console.print(Text(table.note, style="dim"))
        console.print()
    if sentences := verdict(results):
        console.print(Text(sentences[0], style="bold").append(" " + " ".join(sentences[1:]), ""))
        console.print()
    bars = examination_bars(results, min(console.width, 100))
    for line in bars:
        console.print(line, no_wrap=True, overflow="ellipsis")
    if bars:
        console.print()
    if files:
        _print_files(files, console)


def examination_bars(results: Results, width: int) -> list[Text]:
    """The learned examination curve against the true one, a bar per position.

    Where the two differ, the bar is half as high and has the colour of the longer one.
    """
    from rich.text import Text

    curves = propensity_curves(results)
    if not curves:
        return []
    name = next(iter(curves))
    learned, truth = curves[name][0], true_examination(results)
    if truth is None or len(truth) < len(learned):
        truth = None
    title = "Examination by position"
    columns = f"{'learned':>9}" + (f"{'true':>7}" if truth is not None else "")
    room = max(4, min(_WIDEST, width - 3 - len(columns) - 2))
    scale = room / max(1.0, float(learned.max()), *([] if truth is None else [float(truth.max())]))
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
        legend = Text(f"   {_LEARNED} ", "blue").append(f"learned ({method(name).label})   ", "dim")
        lines.append(legend.append(f"{_TRUE} ", "yellow").append("true", "dim"))
    return lines


def _print_files(files: Sequence[Path], console: Console) -> None:
    """Name the files, the page to open first; soft-wrapped, so that paths can be copied."""
    from rich.text import Text

    ordered = sorted(files, key=lambda path: path.suffix != ".html")
    first = os.path.relpath(ordered[0])
    shown = first if not first.startswith("..") else str(ordered[0].absolute())
    console.print(Text("Report: ", "bold").append(shown, "not bold cyan"), soft_wrap=True)
    rest = ", ".join(path.name for path in ordered[1:])
    if rest:
        console.print(Text(f"Beside it: {rest}", style="dim"))
