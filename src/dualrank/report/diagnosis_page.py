"""A diagnosis for people: in the terminal, and as a page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from dualrank.diagnostics.diagnosis import Diagnosis
from dualrank.diagnostics.point import Status
from dualrank.propensity.propensity import Propensity
from dualrank.report.figures import estimates_figure
from dualrank.report.page import Drawing, render
from dualrank.report.theme import svg_inline
from dualrank.storage import write_text

if TYPE_CHECKING:
    from rich.console import Console

_MARKS: dict[Status, tuple[str, str]] = {
    "good": ("✓", "green"),
    "warning": ("!", "yellow"),
    "failed": ("✗", "red"),
    "not measured": ("·", "dim"),
}
_WIDEST = 100
# The names under which the curves are known to the figure of estimates.
_CURVES = {"raw": "click-through", "harvested": "harvest-all-pairs", "learned": "dla"}


def print_diagnosis(diagnosis: Diagnosis, console: Console, files: Sequence[Path] = ()) -> None:
    """The verdict with its reasons, then a paragraph for every point."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    width = min(console.width, _WIDEST)
    verdict = f"{diagnosis.verdict[0].upper()}{diagnosis.verdict[1:]}."
    said = Text(verdict, style="bold").append(" " + " ".join(diagnosis.reasons), "not bold")
    console.print(said, width=width)
    console.print()
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0), width=width)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for point in diagnosis.points:
        mark, color = _MARKS[point.status]
        plain = mark if not console.options.ascii_only else point.status[0]
        words = Text(point.meaning)
        if point.advice:
            words.append(f"\n→ {point.advice}" if plain == mark else f"\n{point.advice}", "dim")
        table.add_row(Text(plain, color), Text(point.name, "bold"), words)
    console.print(table)
    counts = [
        f"{sum(point.status == status for point in diagnosis.points)} {status}"
        for status in _MARKS
        if any(point.status == status for point in diagnosis.points)
    ]
    console.print(Padding(Text(", ".join(counts), "dim"), (1, 0, 0, 0)))
    if files:
        console.print(
            f"{files[0].parent}: {', '.join(path.name for path in files)}", soft_wrap=True
        )


def write_diagnosis(diagnosis: Diagnosis, directory: Path, title: str) -> list[Path]:
    """`diagnosis.json` and `diagnosis.html`."""
    written = [directory / "diagnosis.html", directory / "diagnosis.json"]
    write_text(written[0], render_diagnosis(diagnosis, title))
    write_text(written[1], diagnosis.to_json())
    return written


def render_diagnosis(diagnosis: Diagnosis, title: str) -> str:
    """The page."""
    drawing = curves_drawing(diagnosis)
    return render("diagnosis.html", title=title, drawing=drawing, **in_words(diagnosis))


def in_words(diagnosis: Diagnosis) -> dict[str, Any]:
    """What a page tells of a diagnosis: the verdict, its reasons and every point."""
    return {
        "verdict": f"{diagnosis.verdict[0].upper()}{diagnosis.verdict[1:]}.",
        "reasons": " ".join(diagnosis.reasons),
        "points": [(point, numbers_in_words(point.numbers)) for point in diagnosis.points],
        "marks": {status: mark for status, (mark, _) in _MARKS.items()},
    }


def curves_drawing(diagnosis: Diagnosis) -> Drawing | None:
    """Examination by every method that the log allows."""
    curves = _curves(diagnosis)
    if not curves:
        return None
    caption = (
        "How likely each position is examined, relative to the first: as raw click-through has "
        "it, and as the log allows to estimate it. Bars are 95% intervals."
    )
    return Drawing(Markup(svg_inline(estimates_figure(curves), "curves", caption)), caption)


def numbers_in_words(numbers: Any) -> list[tuple[str, str]]:
    """The single numbers of a point with their names; curves and tables stay in the JSON.

    >>> numbers_in_words({"share_of_pairs": 0.25, "curve": [1.0, 0.5], "first": {"ratio": 1.5}})
    [('share of pairs', '0.25'), ('first: ratio', '1.5')]
    """
    found = []
    for key, value in numbers.items():
        name = str(key).replace("_", " ")
        if isinstance(value, dict):
            found += [(f"{name}: {inner}", text) for inner, text in numbers_in_words(value)]
        elif isinstance(value, bool | np.bool_):
            found.append((name, "yes" if value else "no"))
        elif isinstance(value, int | np.integer):
            found.append((name, f"{value:,}"))
        elif isinstance(value, float | np.floating):
            found.append((name, f"{value:.4g}" if np.isfinite(value) else "unknown"))
        elif isinstance(value, str):
            found.append((name, value))
    return found


def _curves(diagnosis: Diagnosis) -> dict[str, Propensity]:
    """The curves of the diagnosis, under the names of their estimators."""
    numbers = diagnosis["curves"].numbers
    return {
        method: Propensity(
            numbers[name]["examination"],
            method,
            low=numbers[name]["low"],
            high=numbers[name]["high"],
        )
        for name, method in _CURVES.items()
        if name in numbers
    }
