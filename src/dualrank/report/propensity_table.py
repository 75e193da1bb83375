"""Estimates of examination side by side: a table, a figure, and a file for each."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from dualrank.learning.estimates import Estimates
from dualrank.propensity.curve_words import half_widths, short
from dualrank.report.figures import estimates_figure
from dualrank.report.sheet import Exhibit, write_exhibits
from dualrank.report.table import Row, Table

POSITIONS = 10


def estimates_table(estimates: Estimates) -> Table:
    """One estimator per row, its relative interval below, and its weakest support at the end."""
    shown = min(max(p.depth for p in estimates.found.values()), POSITIONS)
    rows = []
    for method, found in estimates.found.items():
        values = [short(e) for e in found.examination[:shown]]
        fewest = "" if found.support is None else f"{found.support.min():,}"
        rows.append(Row(method, (*values, *["–"] * (shown - len(values)), fewest)))
        if found.low is not None and found.high is not None:
            widths = half_widths(found)[:shown]
            rows.append(Row("", (*widths, *[""] * (shown + 1 - len(widths))), dim=True))
    columns = (*(str(position) for position in range(1, shown + 1)), "support")
    return Table(columns, tuple(rows), corner="estimator")


def estimates_notes(estimates: Estimates, depth: int) -> list[str]:
    """What must be known of the numbers: the intervals, where curves end, what is missing."""
    notes = ["support: the fewest observations behind a position."]
    bounded = [p for p in estimates.found.values() if p.high is not None]
    over = {p.details.get("intervals_over") for p in bounded}
    if "queries" in over:
        notes.append("±: 95% intervals, had other queries been asked; ×2: up to twice or half.")
    if "sessions" in over:
        notes.append(
            "±: 95% intervals, had other people asked the same queries; they do not say how other "
            "queries would differ. ×2: up to twice or half."
        )
    if "dla" in estimates.found and estimates.found["dla"].high is None:
        notes.append("dla has no interval: refits=5 trains it again on resampled queries.")
    ends = {
        method: f"{method} ends at position {found.depth}: {found.details['ends']}."
        for method, found in estimates.found.items()
        if "ends" in found.details
    }
    notes += ends.values()
    notes += [
        f"{method}: {found.details['looked_at']}."
        for method, found in estimates.found.items()
        if "looked_at" in found.details
    ]
    notes += [f"{method}: not estimated, {why}." for method, why in estimates.refused.items()]
    if depth > POSITIONS:
        notes.append(f"Positions {POSITIONS + 1} to {depth} are in the files and the JSON.")
    return notes


def write_estimates(estimates: Estimates, directory: Path) -> list[Path]:
    """One propensity file for each estimator, and the figure."""
    written = []
    for method, found in estimates.found.items():
        written.append(directory / f"{method}.json")
        found.write(written[-1])
    draw = partial(estimates_figure, estimates.found)
    return written + write_exhibits([Exhibit("estimates", draw, "Relative examination")], directory)
