"""A comparison of interleaved arms in a notebook: its card, and the preferences drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualrank.sentences import counted, start_of
from dualrank.showing.axes import title
from dualrank.showing.card import card, grid, said
from dualrank.showing.interval_rows import Interval, draw_intervals, signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dualrank.decisions.preference import Comparison, Preference


def comparison_card(found: Comparison) -> str:
    """The verdict in sentences, and the preference of every pair with its interval."""
    rows = [
        (_pair(pair), signed(pair.mean), _interval(pair), f"{pair.sessions:,}")
        for pair in found.pairs
    ]
    columns = ("pair", f"{found.unit} a session", "interval", "sessions")
    notes = (f"{note[0].upper()}{note[1:]}." for note in found.notes if note)
    return card(
        "Comparison",
        (counted(found.sessions, "sessions"), counted(found.queries, "queries")),
        said(*found.verdict),
        grid(columns, rows),
        said(*notes, aside=True),
    )


def draw_preferences(ax: Axes, found: Comparison) -> None:
    """Every preference with its interval against zero, or as refused while there is none."""
    rows = [
        Interval(_pair(pair))
        if pair.low is None or pair.high is None
        else Interval(_pair(pair), pair.mean, pair.low, pair.high)
        for pair in found.pairs
    ]
    draw_intervals(ax, rows)
    title(ax, f"Preference in {found.unit} a session")


def _pair(pair: Preference) -> str:
    return f"{start_of(pair.first)} – {start_of(pair.second)}"


def _interval(pair: Preference) -> str:
    if pair.low is None or pair.high is None:
        return "–"
    return f"{signed(pair.low)} to {signed(pair.high)}"
