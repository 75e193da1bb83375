"""What figures have in common: paper, type, titles, labels that keep apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dualrank.extras import require
from dualrank.report.theme import LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (4.6, 3.1)
TEXT = 9.5

LEGEND: dict[str, Any] = {
    "frameon": False,
    "fontsize": TEXT,
    "labelcolor": LIGHT["ink"],
    "handlelength": 2.2,
    "borderaxespad": 0.2,
}
EDGE: dict[str, Any] = {"mec": LIGHT["paper"], "mew": 1}


def new_figure(
    columns: int, height: float = SIZE[1], width: float = SIZE[0]
) -> tuple[Figure, list[Axes]]:
    """Panels side by side, without frames, with faint lines to read values by."""
    require("charts", "matplotlib")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height), layout="constrained")
    axes = list(figure.subplots(1, columns, squeeze=False)[0])
    for ax in axes:
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)
        ax.spines["bottom"].set_color(LIGHT["line"])
        ax.tick_params(length=0, pad=5, colors=LIGHT["muted"], labelsize=TEXT)
        ax.xaxis.label.set(color=LIGHT["muted"], fontsize=TEXT)
        ax.grid(axis="y", color=LIGHT["line"], lw=0.8)
        ax.set_axisbelow(True)
    return figure, axes


def title(ax: Axes, text: str, *, whole_figure: bool = False) -> None:
    """Write what is shown above it, at the left."""
    style: dict[str, Any] = {"color": LIGHT["ink"], "fontsize": TEXT + 1, "fontweight": "bold"}
    if whole_figure:
        ax.figure.suptitle(plain(text), x=0.01, ha="left", **style)
    else:
        ax.set_title(plain(text), loc="left", pad=10, **style)


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


def name_rows(ax: Axes, labels: Sequence[str]) -> None:
    """Write what stands on the rows 0, 1, … of a figure whose values go from left to right."""
    ax.set_yticks(range(len(labels)), [plain(label) for label in labels])
    ax.tick_params(axis="y", labelcolor=LIGHT["ink"])
    ax.set_ylim(-0.6, len(labels) - 0.4)
    ax.margins(x=0.06)
    ax.grid(visible=False, axis="y")
    ax.grid(axis="x", color=LIGHT["line"], lw=0.8)
    ax.spines["bottom"].set_visible(False)


def write_at_right(ax: Axes, y: float, text: str, *, bold: bool = False) -> None:
    """Write the value of a row at the right edge."""
    ax.annotate(
        text,
        (1.0, y),
        xycoords=("axes fraction", "data"),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        color=LIGHT["ink"],
        fontsize=TEXT,
        fontweight="bold" if bold else "normal",
    )


def few_ticks(ax: Axes, axis: Literal["x", "y"]) -> None:
    """At most five."""
    ax.locator_params(axis=axis, nbins=5)


def plain(text: str) -> str:
    """Text that fits next to a figure and that matplotlib does not take for mathematics."""
    short = text if len(text) <= 44 else text[:40] + "…"
    return short.replace("$", r"\$")


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
