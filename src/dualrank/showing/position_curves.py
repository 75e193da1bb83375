"""Curves by position, each point with its interval where there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualrank.showing.axes import edge, legend, palette_of, plain, title
from dualrank.showing.visible import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

LOOKS = (
    ("blue", "o"),
    ("vermilion", "s"),
    ("green", "^"),
    ("purple", "d"),
    ("orange", "P"),
    ("sky", "D"),
    ("gray", "v"),
    ("ink", "X"),
)
"""Colours and marks of curves that have none of their own, in turn."""
MOST_TICKS = 15


def draw_curve(
    ax: Axes,
    values: Floats,
    low: Floats | None = None,
    high: Floats | None = None,
    *,
    label: str,
    look: tuple[str, str] | None = None,
    shift: float = 0.0,
    **style: Any,
) -> None:
    """A curve over the positions 1, 2, … with its intervals.

    Its look is the one given, or the next that no curve on these axes has; `shift` moves it aside,
    so that the intervals of several do not hide one another, and `style` is matplotlib's.
    """
    colors = palette_of(ax)
    color, marker = look or _next_look(ax, colors)
    x = np.arange(1, len(values) + 1) + shift
    style = {"color": colors[color], "marker": marker, "ms": 5, "lw": 1.6, **edge(ax), **style}
    (line,) = ax.plot(x, values, label=plain(visible(label)), **style)
    if low is not None and high is not None:
        bounded = np.isfinite(high)
        # An interval without bounds goes beyond the axes on both sides.
        low = np.where(bounded, low, values / 10)
        high = np.where(bounded, high, 10 * values)
        ax.vlines(x, low, high, color=line.get_color(), lw=2, zorder=line.get_zorder() - 0.1)


def finish_curves(ax: Axes, heading: str, *, loc: str = "upper right") -> None:
    """Positions below, what is drawn above, and what the lines are."""
    ax.set_xlabel("position")
    ends = [np.asarray(line.get_xdata(), dtype=float)[-1] for line in ax.lines]
    deepest = round(max(ends, default=1.0))
    if deepest <= MOST_TICKS:
        ax.set_xticks(range(1, deepest + 1))
    else:
        ax.locator_params(axis="x", integer=True, nbins=10)
    title(ax, heading)
    legend(ax, loc)


def from_zero(ax: Axes, values: Floats, high: Floats | None = None) -> None:
    """Let the axis go from 0 to where the curve is seen, with those that were drawn before it.

    Intervals that reach far beyond every curve leave the axes: the curve is what is looked at.
    """
    top = float(values.max())
    if high is not None:
        ends = high[np.isfinite(high)]
        top = max(top, min(float(ends.max(initial=0.0)), 1.6 * top))
    before = ax.get_ylim()[1] if len(ax.lines) > 1 else 0.0
    ax.set_ylim(0.0, max(1.05 * top, before))


def _next_look(ax: Axes, colors: dict[str, str]) -> tuple[str, str]:
    taken = [line.get_color() for line in ax.lines]
    free = [look for look in LOOKS if colors[look[0]] not in taken]
    return free[0] if free else LOOKS[len(taken) % len(LOOKS)]
