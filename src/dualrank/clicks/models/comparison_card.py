"""A comparison of click models in a notebook: the table as a card, the leads as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dualrank.certainty import level_errors
from dualrank.sentences import counted, start_of
from dualrank.showing.axes import edge, palette_of, title
from dualrank.showing.card import card, grid, said
from dualrank.showing.interval_rows import Interval, draw_intervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dualrank.clicks.models.comparison import ClickModelComparison, Score

COLUMNS = ("model", "log-likelihood", "behind", "perplexity", "given clicks above")
FAR = 1.5
"""Beyond so many times the spread of the better half a model is drawn at the edge."""


def comparison_card(found: ClickModelComparison) -> str:
    """The verdict in sentences, and every model's scores, best first."""
    rows = [
        (
            start_of(score.model),
            f"{score.log_likelihood:.4f}".replace("-", "−"),
            f"{score.behind:.4f} ± {score.behind_error:.4f}" if score.behind > 0 else "",
            f"{score.perplexity:.4f}",
            f"{score.perplexity_given_clicks:.4f}",
        )
        for score in found.ranked
    ]
    return card(
        "Click models",
        (f"fitted on {counted(found.fitted_on, 'sessions')}", f"judged on {found.judged_on:,}"),
        said(*found.verdict),
        grid(COLUMNS, rows, strong=(0,)),
        said(
            "Log-likelihood per held-out session; ±: one standard error of what a model is behind "
            "the best.",
            aside=True,
        ),
    )


def draw_scores(ax: Axes, ranked: Sequence[Score]) -> None:
    """What each model is behind the first, against it, with intervals that hold together."""
    needed = level_errors(len(ranked) - 1)
    rows = [
        Interval(
            score.model,
            -score.behind,
            -score.behind - needed * score.behind_error,
            -score.behind + needed * score.behind_error,
            strong=number == 0,
            says="" if number else "best",
        )
        for number, score in enumerate(ranked)
    ]
    draw_intervals(ax, rows)
    lowest = edge_of([-score.behind for score in ranked])
    far = [y for y, score in enumerate(reversed(ranked)) if -score.behind < lowest]
    if far:
        look = {"color": palette_of(ax)["vermilion"], "ms": 7, "clip_on": False, **edge(ax)}
        ax.plot([lowest] * len(far), far, "<", **look)
        ax.set_xlim(left=lowest)
    title(ax, "Behind the best model, held out")
    ax.set_xlabel("log-likelihood per session, intervals that hold together")


def edge_of(descending: Sequence[float]) -> float:
    """Where a picture of these values ends, so that one that is far off does not hide the others.

    >>> edge_of([0.0, -1.0, -2.0, -40.0])
    -2.5
    """
    half = descending[: (len(descending) + 1) // 2]
    return half[-1] - FAR * max(half[0] - half[-1], 1e-3)
