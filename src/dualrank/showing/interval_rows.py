"""Differences under each other, each a point with its interval, and a line where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dualrank.showing.axes import (
    axes_for,
    edge,
    height_of_rows,
    name_rows,
    palette_of,
    write_at_right,
)
from dualrank.showing.visible import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes


WIDTH = 6.2
"""Labels stand at the left and values at the right of what is drawn."""


@dataclass(frozen=True)
class Interval:
    """A difference under its label, from `low` to `high`; without numbers it stands as refused."""

    label: str
    value: float | None = None
    low: float = 0.0
    high: float = 0.0
    strong: bool = False
    says: str = ""
    """What stands at the right, if not the difference itself."""

    @property
    def look(self) -> tuple[str, str]:
        """Colour and marker: what lies surely above zero, surely below, or on both sides."""
        if self.low > 0:
            return "green", "^"
        return ("vermilion", "v") if self.high < 0 else ("gray", "o")


def draw_intervals(ax: Axes, intervals: Sequence[Interval], decimals: int = 4) -> None:
    """The intervals in their order from above."""
    colors = palette_of(ax)
    ax.axvline(0.0, color=colors["ink"], lw=1, zorder=1)
    upwards = list(reversed(intervals))
    for y, each in enumerate(upwards):
        if each.value is None:
            write_at_right(ax, y, "refused")
            continue
        color, marker = each.look
        width = 3.2 if each.strong else 2
        ends = ([each.low, each.high], [y, y])
        ax.plot(*ends, lw=width, zorder=3, color=colors[color], solid_capstyle="round")
        size = 9.5 if each.strong else 7
        ax.plot([each.value], [y], marker, color=colors[color], ms=size, zorder=4, **edge(ax))
        write_at_right(ax, y, each.says or signed(each.value, decimals), bold=each.strong)
    name_rows(ax, [visible(each.label) for each in upwards])
    for label, each in zip(ax.get_yticklabels(), upwards, strict=True):
        label.set_fontweight("bold" if each.strong else "normal")
        if each.value is None:
            label.set_color(colors["muted"])
    ax.locator_params(axis="x", nbins=4)
    ax.xaxis.set_major_formatter(lambda value, _: _tick(value))


def axes_of_rows(ax: Axes | None, count: int) -> Axes:
    """The axes that were given, or new ones with room for so many rows."""
    return axes_for(ax, width=WIDTH, height=height_of_rows(count))


def _tick(value: float) -> str:
    return "0" if value == 0 else f"{value:+g}".replace("-", "−")


def signed(value: float, decimals: int = 4) -> str:
    """A difference as people write it.

    >>> signed(0.25), signed(-0.00051, 3), signed(0.0)
    ('+0.2500', '−0.001', '0.0000')
    """
    text = f"{value:+.{decimals}f}".replace("-", "−")
    return text if any(digit in "123456789" for digit in text) else text[1:]
