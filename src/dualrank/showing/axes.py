"""What axes have in common, in pages and in notebooks: paper, type, titles, rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from dualrank.extras import require
from dualrank.showing.palette import DARK, LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


def axes_for(ax: Axes | None, *, width: float = SIZE[0], height: float = SIZE[1]) -> Axes:
    """The axes that were given, or those of a new figure, which a notebook shows; dressed."""
    require("charts", "matplotlib")
    if ax is None:
        # A figure that pyplot knows is one that notebooks and windows show by themselves.
        from matplotlib import pyplot

        _, ax = pyplot.subplots(figsize=(width, height), layout="constrained")
    dress(ax)
    return ax


def dress(ax: Axes) -> None:
    """Take away the frame, and leave faint lines to read values by."""
    colors = palette_of(ax)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(colors["line"])
    ax.tick_params(length=0, pad=5, colors=colors["muted"], labelsize=TEXT)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set(color=colors["muted"], fontsize=TEXT)
    ax.grid(axis="y", color=colors["line"], lw=0.8)
    ax.set_axisbelow(True)


def palette_of(ax: Axes) -> dict[str, str]:
    """The colours that are seen on the paper of a figure: on dark paper light ones."""
    face: Any = ax.figure.get_facecolor()
    red, green, blue, opacity = face
    is_dark = opacity > 0.5 and 0.3 * red + 0.6 * green + 0.1 * blue < 0.5
    return DARK if is_dark else LIGHT


def edge(ax: Axes) -> dict[str, Any]:
    """A rim in the colour of the paper, by which marks that overlap keep apart."""
    return {"mec": palette_of(ax)["paper"], "mew": 1}


def legend(ax: Axes, loc: str, **look: Any) -> None:
    """Say what the lines are."""
    drawn: Any = ax
    drawn.legend(loc=loc, **{**LEGEND, "labelcolor": palette_of(ax)["ink"], **look})


def title(ax: Axes, text: str, *, whole_figure: bool = False) -> None:
    """Write what is shown above it, at the left."""
    ink = palette_of(ax)["ink"]
    style: dict[str, Any] = {"color": ink, "fontsize": TEXT + 1, "fontweight": "bold"}
    if whole_figure:
        ax.figure.suptitle(plain(text), x=0.01, ha="left", **style)
    else:
        ax.set_title(plain(text), loc="left", pad=10, **style)


def name_rows(ax: Axes, labels: Sequence[str]) -> None:
    """Write what stands on the rows 0, 1, … of a figure whose values go from left to right."""
    colors = palette_of(ax)
    ax.set_yticks(range(len(labels)), [plain(label) for label in labels])
    ax.tick_params(axis="y", labelcolor=colors["ink"])
    ax.set_ylim(-0.6, len(labels) - 0.4)
    ax.margins(x=0.06)
    ax.grid(visible=False, axis="y")
    ax.grid(axis="x", color=colors["line"], lw=0.8)
    ax.spines["bottom"].set_visible(False)


def height_of_rows(count: int) -> float:
    """How high a figure of so many rows is."""
    return max(1.7, 0.9 + 0.34 * count)


def write_at_right(ax: Axes, y: float, text: str, *, bold: bool = False) -> None:
    """Write the value of a row at the right edge."""
    ax.annotate(
        plain(text),
        (1.0, y),
        xycoords=("axes fraction", "data"),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        color=palette_of(ax)["ink"],
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
