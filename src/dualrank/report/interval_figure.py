"""Differences with their intervals, as a figure of a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dualrank.report.drawing import new_figure, title
from dualrank.showing.axes import height_of_rows
from dualrank.showing.interval_rows import Interval, draw_intervals

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def interval_figure(intervals: Sequence[Interval], heading: str) -> Figure | None:
    """The intervals in their order from above; None where there are none."""
    if not any(each.value is not None for each in intervals):
        return None
    figure, (ax,) = new_figure(1, height=height_of_rows(len(intervals)))
    draw_intervals(ax, intervals)
    title(ax, heading, whole_figure=True)
    return figure
