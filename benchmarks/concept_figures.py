"""The figures of docs/concepts, from simulated logs: `python -m benchmarks.concept_figures`.

Writes docs/images/concept-*.svg (or into `--out`), the same bytes every time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.concept_worlds import (
    POSITIONS,
    TRUTH,
    Confounded,
    attraction_by_grade,
    clicks_by_grade,
    known_of_documents,
    profile_of_severity,
    quality_of_sorting,
    two_click_throughs,
)
from dualrank.report.drawing import (
    EDGE,
    LEGEND,
    TEXT,
    few_ticks,
    name_rows,
    new_figure,
    title,
    write_at_right,
)
from dualrank.report.theme import LIGHT, svg_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

IMAGES = Path(__file__).parents[1] / "docs" / "images"
WIDTH = 5.2


def one_panel(heading: str, *, height: float = 3.1) -> tuple[Figure, Axes]:
    """A panel that a phone can show."""
    figure, (ax,) = new_figure(1, height=height, width=WIDTH)
    title(ax, heading)
    return figure, ax


def line(ax: Axes, x: ArrayLike, y: ArrayLike, color: str, marker: str, **more: Any) -> None:
    """A line with marks."""
    ax.plot(x, y, color=LIGHT[color], lw=1.8, marker=marker, ms=5.5, **EDGE, **more)


def truth(ax: Axes, y: ArrayLike, label: str = "true") -> None:
    """Wide and pale below the others: where an estimate is right, it still shows."""
    ax.plot(POSITIONS, y, color=LIGHT["ink"], lw=7, alpha=0.27, label=label)


def by_position(ax: Axes) -> None:
    """Positions from left to right, values from 0."""
    ax.set_xlabel("position")
    ax.set_xticks(POSITIONS)
    ax.set_ylim(0, None)


def clicks_figure() -> Figure:
    """Click-through by position of documents that are equally good."""
    figure, ax = one_panel("Clicks per display, by grade of the document")
    grades = (4, 3, 1)
    for grade, color, marker, rates in zip(
        grades, ("blue", "green", "vermilion"), "osD", clicks_by_grade(grades), strict=True
    ):
        line(ax, POSITIONS, rates, color, marker, label=f"grade {grade}")
    by_position(ax)
    ax.legend(loc="upper right", **LEGEND)
    return figure


def sorting_figure() -> Figure:
    """What the order is worth that clicks would make."""
    quality = quality_of_sorting()
    figure, (ax,) = new_figure(1, height=2.2, width=WIDTH)
    title(ax, "nDCG@10 of what was displayed, sorted …", whole_figure=True)
    rows = list(reversed(quality))
    for y, name in enumerate(rows):
        color = {"by clicks": "vermilion", "by clicks over examination": "blue"}.get(name, "gray")
        ax.plot([quality[name]], [y], "o", color=LIGHT[color], ms=8, **EDGE)
        write_at_right(ax, y, f"{quality[name]:.3f}", bold=color == "blue")
    name_rows(ax, rows)
    few_ticks(ax, "x")
    return figure


def examination_figure() -> Figure:
    """Click-through is examination where lists are shuffled, and only there."""
    found = two_click_throughs()
    figure, ax = one_panel("Clicks, relative to position 1")
    truth(ax, TRUTH, "true examination")
    for (name, curve), color, marker in zip(
        found.items(), ("vermilion", "blue"), "Do", strict=True
    ):
        line(ax, POSITIONS, curve.examination, color, marker, label=name)
    by_position(ax)
    ax.legend(loc="upper right", **LEGEND)
    return figure


def weights_figure() -> Figure:
    """What a click counts, and what its noise counts."""
    figure, ax = one_panel("What one click counts: 1/examination")
    ax.bar(POSITIONS, 1 / TRUTH, color=LIGHT["blue"], width=0.62)
    for x, weight in zip(POSITIONS, 1 / TRUTH, strict=True):
        ax.annotate(
            f"{weight:.1f}",
            (x, weight),
            xytext=(0, 4),
            textcoords="offset points",
            ha="center",
            color=LIGHT["ink"],
            fontsize=TEXT,
        )
    by_position(ax)
    return figure


def stories_figure() -> Figure:
    """Two explanations of the same clicks."""
    clicks = 0.4 * TRUTH**0.9
    figure, ax = one_panel("One list, always in this order: two stories", height=3.4)
    truth(ax, clicks, "clicks per display, in both stories")
    steep, flat = clicks / clicks[0], clicks / clicks[0] * 0 + clicks[0]
    line(ax, POSITIONS, steep, "blue", "o", label="A: examination")
    line(ax, POSITIONS, flat, "blue", "o", ls=(0, (4, 2)), label="A: relevance")
    line(ax, POSITIONS, np.ones(10) * 0.97, "vermilion", "D", label="B: examination")
    line(ax, POSITIONS, clicks / 0.97, "vermilion", "D", ls=(0, (4, 2)), label="B: relevance")
    by_position(ax)
    ax.set_ylim(0, 1.04)
    ax.legend(loc="upper right", bbox_to_anchor=(1, 0.9), **LEGEND)
    return figure


def severity_figure() -> Figure:
    """What clicks say of position, by how much lists vary."""
    severities = np.linspace(0.7, 1.3, 61)
    figure, ax = one_panel("How well each severity η explains the clicks")
    shares = {
        0.0: ("vermilion", 0.72, 0.6, "lists never vary"),
        0.01: ("green", 1.14, -5.0, "1% of sessions\nsee another order"),
        0.1: ("blue", 1.075, -13.0, "10%"),
    }
    for share, (color, x, y, label) in shares.items():
        found = profile_of_severity(share, severities)
        ax.plot(severities[found > -20], found[found > -20], color=LIGHT[color], lw=1.8)
        ax.text(x, y, label, color=LIGHT[color], fontsize=TEXT, va="center")
    ax.axvline(1.0, color=LIGHT["ink"], lw=7, alpha=0.12)
    ax.set_ylim(-16, 1.6)
    ax.set_xlim(0.7, 1.3)
    ax.set_xlabel("η, which is 1 in truth (log-likelihood, the best is 0)")
    few_ticks(ax, "x")
    return figure


def confounded_figure() -> Figure:
    """Curves under a logging ranker that knows what features do not tell."""
    world = Confounded(luck=0.2)
    figure, ax = one_panel("Examination, from a strong ranker's log")
    truth(ax, TRUTH)
    kinds: dict[tuple[str, ...], tuple[str, str, str]] = {
        ("seen",): ("vermilion", "D", "half of the features hidden"),
        ("seen", "score"): ("green", "s", "… and the ranker's score given"),
        ("seen", "hidden"): ("blue", "o", "all features"),
    }
    for known, (color, marker, label) in kinds.items():
        line(ax, POSITIONS, world.curve(*known), color, marker, label=label)
    by_position(ax)
    ax.legend(loc="upper right", **LEGEND)
    return figure


def known_figure() -> Figure:
    """What a log says of a document, by how often it was displayed."""
    sessions = (0, 1, 10, 100, 1_000, 10_000)
    values, low, high = known_of_documents(sessions)
    figure, ax = one_panel("Relevance of a document, with 95% interval")
    x = np.arange(len(sessions))
    ax.axhline(0.3, color=LIGHT["ink"], lw=7, alpha=0.27)
    ax.vlines(x, low, high, color=LIGHT["blue"], lw=2.4)
    ax.plot(x[1:], values[1:], "o", color=LIGHT["blue"], ms=7, **EDGE)
    ax.plot(x[:1], values[:1], "o", color=LIGHT["gray"], ms=7, **EDGE)
    ax.set_xticks(x, ["never", *(f"{n:,}" for n in sessions[1:])])
    ax.set_xlabel("sessions that displayed it (the band: its true relevance)")
    ax.set_ylim(0, 1.02)
    return figure


def bait_figure() -> Figure:
    """What attracts is not what is good."""
    plain, bait = attraction_by_grade()
    figure, ax = one_panel("What clicks say of documents, by their grade")
    line(ax, range(5), bait, "vermilion", "D")
    line(ax, range(5), plain, "blue", "o")
    ax.set_xticks(range(5))
    ax.set_xlabel("grade that a judge would give")
    ax.set_ylim(0, 1.02)
    ax.legend(["a headline that promises more", "other documents"], loc="upper left", **LEGEND)
    return figure


BOXES = {
    "logging ranker": (0.0, 2.0),
    "position": (2.35, 2.0),
    "examination": (4.7, 2.0),
    "relevance": (0.0, 0.0),
    "click": (4.7, 0.0),
    "satisfaction": (7.0, 0.0),
}
ARROWS = (
    ("logging ranker", "position", "sorts"),
    ("position", "examination", "position bias"),
    ("examination", "click", "times"),
    ("relevance", "click", "what is wanted"),
    ("relevance", "logging ranker", "confounding"),
    ("click", "satisfaction", "unknown"),
)
BACK_DOOR = {"confounding", "sorts", "position bias", "times"}


def map_figure(path: frozenset[str] = frozenset()) -> Figure:
    """Where a click comes from; the arrows of `path` stand out."""
    heading = "Two ways from relevance to a click" if path else "Where a click comes from"
    figure, ax = one_panel(heading, height=2.7)
    ax.set_axis_off()
    ax.set_xlim(-1.05, 7.85)
    ax.set_ylim(-0.5, 2.5)
    for begin, end, label in ARROWS:
        unsure = label in ("confounding", "unknown")
        color = "vermilion" if label in path or (not path and unsure) else "muted"
        (x, y), (to_x, to_y) = BOXES[begin], BOXES[end]
        style = {
            "arrowstyle": "-|>",
            "color": LIGHT[color],
            "lw": 2.4 if label in path else 1.4,
            "ls": (0, (3, 2)) if label == "unknown" else "-",
            "shrinkA": 15 if x == to_x else 12 + 2.4 * len(begin),
            "shrinkB": 15 if x == to_x else 12 + 2.4 * len(end),
        }
        ax.annotate("", (to_x, to_y), (x, y), arrowprops=style)
        upright = x == to_x
        ax.annotate(
            label,
            ((x + to_x) / 2, (y + to_y) / 2),
            xytext=(6, 0) if upright else (0, -16),
            textcoords="offset points",
            ha="left" if upright else "center",
            va="center",
            color=LIGHT[color],
            fontsize=TEXT - 1,
        )
    for name, (x, y) in BOXES.items():
        hidden = name in ("relevance", "examination", "satisfaction")
        ax.text(
            x,
            y,
            name,
            ha="center",
            va="center",
            color=LIGHT["ink"],
            fontsize=TEXT,
            fontweight="normal" if hidden else "bold",
            bbox={
                "boxstyle": "round,pad=0.45",
                "facecolor": LIGHT["paper"],
                "edgecolor": LIGHT["gray" if hidden else "ink"],
                "ls": (0, (3, 2)) if hidden else "-",
            },
        )
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "concept-map": map_figure,
    "concept-clicks-by-grade": clicks_figure,
    "concept-sorted-by-clicks": sorting_figure,
    "concept-examination": examination_figure,
    "concept-weights": weights_figure,
    "concept-two-stories": stories_figure,
    "concept-severity": severity_figure,
    "concept-back-door": lambda: map_figure(frozenset(BACK_DOOR)),
    "concept-confounded": confounded_figure,
    "concept-never-displayed": known_figure,
    "concept-attraction": bait_figure,
}


def main() -> int:
    """Draw all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=IMAGES)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for name, draw in FIGURES.items():
        path = out / f"{name}.svg"
        path.write_text(svg_file(draw()), encoding="utf-8")
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
