"""A plan of swaps in a notebook: the designs as a card, precision against cost as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dualrank.propensity.swap_words import as_percent, in_days, rounded
from dualrank.showing.axes import TEXT, edge, legend, palette_of, title
from dualrank.showing.card import card, grid, said

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dualrank.propensity.swap_plan import DesignName, PlannedDesign, SwapPlan

_LOOKS: Mapping[DesignName, tuple[str, str]] = {
    "first with k": ("blue", "o"),
    "neighbours": ("green", "<"),
    "full shuffles": ("vermilion", "s"),
}
# How far the lines of the figure go, in multiples of the sessions planned.
_BEFORE, _BEYOND = 1 / 30, 4.0


def swap_plan_card(plan: SwapPlan) -> str:
    """What to do, and every design with what it takes."""
    timed = plan.sessions_per_day is not None
    rows = [_row(plan, design, timed) for design in plan.designs]
    best = [number for number, each in enumerate(plan.designs) if each is plan.recommended]
    lost = "clicks lost" + " (at most)" * plan.costs_at_most
    columns = ("design", "sessions", *["time"] * timed, lost, "read by")
    return card(
        "SwapPlan",
        (f"±{as_percent(plan.precision)}", f"{len(plan.curve)} positions"),
        said(plan.summary),
        grid(columns, rows, words=(0, len(columns) - 1), strong=best),
        said(plan.cut or "", aside=True),
    )


def drawn_designs(plan: SwapPlan) -> list[PlannedDesign]:
    """The designs of which precision against cost can be drawn: those that end, and cost."""
    return [design for design in plan.designs if design.ends and design.lost > 0]


def draw_precision(ax: Axes, plan: SwapPlan, drawn: Sequence[PlannedDesign]) -> None:
    """Precision of the worst position against clicks lost, a line for each of these designs."""
    from matplotlib.ticker import LogLocator

    colors = palette_of(ax)
    ax.axhline(plan.precision, color=colors["muted"], lw=1, ls=(0, (2, 3)), zorder=1)
    ax.annotate(
        f"wanted: ±{as_percent(plan.precision)}",
        (0.0, plan.precision),
        xycoords=("axes fraction", "data"),
        xytext=(2, 4),
        textcoords="offset points",
        color=colors["muted"],
        fontsize=TEXT - 0.5,
    )
    for design in drawn:
        color, marker = _LOOKS[design.name]
        sessions = design.sessions * np.geomspace(_BEFORE, _BEYOND, 60)
        reached = np.array([design.after(n) for n in sessions])
        seen = reached < 10 * plan.precision
        lost = sessions * design.lost / design.sessions
        ax.plot(lost[seen], reached[seen], color=colors[color], lw=1.8, zorder=2)
        label = f"{design.name}: {rounded(design.sessions)} sessions"
        at = [design.lost], [plan.precision]
        ax.plot(*at, marker, color=colors[color], ms=8, label=label, zorder=3, ls="", **edge(ax))
    for scale, axis in ((ax.set_xscale, ax.xaxis), (ax.set_yscale, ax.yaxis)):
        scale("log")
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.minorticks_off()
    ax.yaxis.set_major_formatter(lambda value, _: f"±{as_percent(value)}")
    ax.xaxis.set_major_locator(LogLocator())
    ax.xaxis.set_major_formatter(
        lambda value, _: f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}"
    )
    ax.set_xlabel("clicks lost in all" + " (at most)" * plan.costs_at_most)
    title(ax, "Precision of the curve at its worst position")
    legend(ax, "upper right", fontsize=TEXT - 0.5, handlelength=1.2)


def _row(plan: SwapPlan, design: PlannedDesign, timed: bool) -> tuple[str, ...]:
    name = f"{design.name} ←" if design is plan.recommended else design.name
    if not design.ends:
        return name, "no number is enough", *[""] * (timed + 1), design.method
    days = [] if design.days is None else [in_days(design.days)]
    return name, rounded(design.sessions), *days, rounded(design.lost), design.method
