"""A click log in a notebook: how much it holds, and how often each position was clicked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualrank.sentences import counted, listed, start_of
from dualrank.showing.card import card, facts, grid, said
from dualrank.showing.position_curves import draw_curve, finish_curves, from_zero

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dualrank.data.click_log import ClickLog

SHOWN = 10


def clicks_and_displays(log: ClickLog) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """By position, how often a document there was clicked, and how often there was one."""
    clicks = [log.counts[on].sum() for on in log.clicks.T]
    sessions = log.sessions_per_list
    displays = [sessions[shown].sum() for shown in log.lists.mask.T]
    return np.array(clicks, np.int64), np.array(displays, np.int64)


def click_log_card(log: ClickLog) -> str:
    """What the log holds, and clicks by position."""
    clicks, displays = clicks_and_displays(log)
    rates = clicks / np.maximum(displays, 1)
    shown = range(min(len(clicks), SHOWN))
    rows = [
        ("displayed", *(f"{displays[k]:,}" for k in shown)),
        ("clicked", *(f"{clicks[k]:,}" for k in shown)),
        ("click-through", *(f"{rates[k]:.2%}" for k in shown)),
    ]
    about = (
        counted(log.sessions, "sessions"),
        counted(int(clicks.sum()), "clicks"),
        counted(len(np.unique(log.lists.queries)), "queries"),
        counted(len(log.lists), "distinct lists"),
    )
    known = {
        start_of(name): f"{counted(len(column.names), 'values')}: {listed(column.names)}"
        for name, column in log.columns.items()
    }
    known |= {f"event {start_of(kind)}": f"{a.sum():,.6g} in all" for kind, a in log.events.items()}
    notes = []
    if len(clicks) > SHOWN:
        notes.append(f"Positions {SHOWN + 1} to {len(clicks)} are not shown.")
    if log.reading is not None:
        left = log.reading.sessions - log.reading.kept
        read = f"Read from {start_of(log.reading.source)}: {log.reading.rows:,} rows"
        notes.append(f"{read}, {counted(left, 'sessions')} left out." if left else f"{read}.")
    table = grid(("position", *(str(k + 1) for k in shown)), rows)
    return card("ClickLog", about, table, facts(known), said(*notes, aside=True))


def draw_click_through(ax: Axes, log: ClickLog, label: str, **style: Any) -> None:
    """The share of displays that were clicked, by position; nothing where none was displayed."""
    clicks, displays = clicks_and_displays(log)
    rates = np.where(displays > 0, clicks / np.maximum(displays, 1), np.nan)
    draw_curve(ax, rates, label=label, **style)
    from_zero(ax, np.nan_to_num(rates))
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    finish_curves(ax, "Click-through by position")
