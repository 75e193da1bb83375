"""What the figures of pages have in common: panels, and labels that keep apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualrank.extras import require
from dualrank.showing.axes import EDGE as EDGE
from dualrank.showing.axes import LEGEND as LEGEND
from dualrank.showing.axes import SIZE as SIZE
from dualrank.showing.axes import TEXT as TEXT
from dualrank.showing.axes import dress
from dualrank.showing.axes import few_ticks as few_ticks
from dualrank.showing.axes import name_rows as name_rows
from dualrank.showing.axes import plain as plain
from dualrank.showing.axes import title as title
from dualrank.showing.axes import write_at_right as write_at_right
from dualrank.showing.palette import LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_figure(
    columns: int, height: float = SIZE[1], width: float = SIZE[0]
) -> tuple[Figure, list[Axes]]:
    """Panels side by side, without frames, with faint lines to read values by."""
    require("charts", "matplotlib")
    from matplotlib.figure import Figure

    figure = Figure(
        figsize=(width * columns, height), layout="constrained", facecolor=LIGHT["paper"]
    )
    axes = list(figure.subplots(1, columns, squeeze=False)[0])
    for ax in axes:
        dress(ax)
    return figure, axes


def label_ends(figure: Figure, ax: Axes, ends: Mapping[str, tuple[float, float, str]]) -> None:
    """Write each line's label where it ends, moved apart where two would overlap.

    An end is x, y and the name of a colour.
    """
    # Overlap is measured in pixels, which are known once limits and layout have settled.
    figure.draw_without_rendering()
    ascending = sorted(ends.items(), key=lambda item: item[1][1])
    heights = np.array([ax.transData.transform((x, y))[1] for _, (x, y, _) in ascending])
    places = _apart(heights, gap=1.25 * TEXT * figure.dpi / 72)
    right = max(x for x, _, _ in ends.values())
    for (label, (_, y, color)), height, place in zip(ascending, heights, places, strict=True):
        ax.annotate(
            plain(label),
            (right, y),
            xytext=(7, (place - height) * 72 / figure.dpi),
            textcoords="offset points",
            va="center",
            color=LIGHT[color],
            fontsize=TEXT,
            annotation_clip=False,
        )


def _apart(places: NDArray[np.float64], gap: float) -> NDArray[np.float64]:
    """Ascending places with at least `gap` between them, moved as little as is needed.

    >>> _apart(np.array([0.0, 1.0, 9.0]), 3.0)
    array([-1.,  2.,  9.])
    """
    # Least squares under ordering: isotonic regression of what remains when the gaps are taken
    # out, by pooling neighbours that are out of order.
    pools: list[list[float]] = []
    for target in places - gap * np.arange(len(places)):
        pools.append([float(target)])
        while len(pools) > 1 and np.mean(pools[-2]) > np.mean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    flat = [float(np.mean(pool)) for pool in pools for _ in pool]
    return np.array(flat) + gap * np.arange(len(places))
