"""The comparison of click models, as a table and as a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.models.comparison import Score
from dualrank.clicks.models.comparison_card import edge_of
from dualrank.report.drawing import (
    EDGE,
    few_ticks,
    label_ends,
    name_rows,
    new_figure,
    title,
    write_at_right,
)
from dualrank.report.table import Cell, Row, Table, with_best
from dualrank.showing.palette import LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLORS = {
    "pbm": "blue",
    "pbm-trust": "sky",
    "ubm": "green",
    "ccm": "orange",
    "dbn": "vermilion",
    "document-ctr": "muted",
}
"""The models whose ranks are drawn; the other ones would hide them."""

_PARAMETERS = {
    "examination": "examination",
    "rate": "click-through",
    "relevant": "click on a relevant document",
    "irrelevant": "click on an irrelevant document",
    "continuation": "reading on after a click",
    "after_skip": "reading on without a click",
    "after_irrelevant_click": "reading on after a click on an irrelevant document",
    "after_relevant_click": "reading on after a click on a relevant document",
}
"""What the parameters that all documents share are the probability of."""


def comparison_table(scores: Sequence[Score]) -> Table:
    """Log-likelihood per session and perplexity, the best of each column in bold."""
    columns = ("log-likelihood", "perplexity", "perplexity given clicks above")
    rows = []
    for score in scores:
        values = (score.log_likelihood, score.perplexity, score.perplexity_given_clicks)
        rows.append(Row(score.model, tuple(Cell(value, decimals=4) for value in values)))
    return Table(columns, with_best(rows, lowest=(1, 2)), corner="model")


def rank_table(scores: Sequence[Score], *, given_clicks: bool) -> Table:
    """Perplexity at every rank."""
    rows = [
        Row(score.model, tuple(map(Cell, _per_rank(score, given_clicks=given_clicks))))
        for score in scores
    ]
    ranks = range(len(rows[0].cells))
    columns = tuple(f"@{rank + 1}" for rank in ranks)
    return Table(columns, with_best(rows, lowest=ranks), corner="model")


def parameter_tables(shared: Mapping[str, NDArray[np.float64]]) -> list[str | Table]:
    """The parameters that all documents share, with what rows and columns are.

    Those that there are once stand in one table, those by position in another, and one by position
    and last click in a table of its own.
    """
    once = {name: values for name, values in shared.items() if values.size == 1}
    ranked = {name: v for name, v in shared.items() if v.ndim == 1 and v.size > 1}
    tables: list[str | Table] = []
    if once:
        rows = tuple(Row(_called(n), (Cell(float(v.ravel()[0])),)) for n, v in once.items())
        tables.append(Table(("probability",), rows, corner="parameter"))
    if ranked:
        depth = max(len(values) for values in ranked.values())
        rows = tuple(
            Row(
                f"{k + 1}",
                tuple(Cell(float(v[k])) if k < len(v) else None for v in ranked.values()),
            )
            for k in range(depth)
        )
        tables.append(Table(tuple(map(_called, ranked)), rows, corner="position"))
    for name, values in shared.items():
        if values.ndim == 2:
            depth, columns = len(values), ("none", *(str(k + 1) for k in range(len(values) - 1)))
            # By position and last click there are as many values as positions above, and none.
            rows = tuple(
                Row(
                    f"{k + 1}",
                    (*(Cell(float(x)) for x in values[k, : k + 1]), *[None] * (depth - k - 1)),
                )
                for k in range(depth)
            )
            what = f"{_called(name)} at a position (rows), by the last click above it (columns)"
            tables += [what, Table(columns, rows, corner="position")]
    return tables


def _called(name: str) -> str:
    return _PARAMETERS.get(name, name.replace("_", " "))


def comparison_figure(scores: Sequence[Score]) -> Figure:
    """Held-out log-likelihood of all models, and perplexity rank by rank of some.

    A model far below the others (the cascade, to which a second click is impossible) is drawn at
    the edge, with its value.
    """
    figure, (left, right) = new_figure(2, height=max(3.1, 0.9 + 0.26 * len(scores)))
    ranked = sorted(scores, key=lambda score: score.log_likelihood)
    edge = edge_of([score.log_likelihood for score in reversed(ranked)])
    for y, score in enumerate(ranked):
        color = LIGHT[_COLORS.get(score.model, "gray")]
        far = score.log_likelihood < edge
        marker = "<" if far else "o"
        left.plot([max(score.log_likelihood, edge)], [y], marker, color=color, ms=7, **EDGE)
        write_at_right(left, y, f"{score.log_likelihood:.3f}".replace("-", "−"))
    name_rows(left, [score.model for score in ranked])
    few_ticks(left, "x")
    title(left, "Log-likelihood per session, held out")
    _draw_ranks(figure, right, scores)
    return figure


def _draw_ranks(figure: Figure, ax: Axes, scores: Sequence[Score]) -> None:
    """Perplexity given the clicks above, as gain (p_rank − p) / (p_rank − 1) over `rank-ctr`."""
    by_name = {score.model: score for score in scores}
    drawn = [name for name in _COLORS if name in by_name] or list(by_name)
    colors = {name: _COLORS.get(name, "gray") for name in drawn}
    curves = {name: _per_rank(by_name[name], given_clicks=True) for name in drawn}
    base = by_name.get("rank-ctr")
    if base is not None:
        surprise = _per_rank(base, given_clicks=True)
        curves = {name: (surprise - p) / (surprise - 1) for name, p in curves.items()}
        ax.axhline(0, color=LIGHT["gray"], lw=1)
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    for name, curve in curves.items():
        ranks = np.arange(1, len(curve) + 1)
        ax.plot(ranks, curve, color=LIGHT[colors[name]], lw=1.8, marker="o", ms=4)
    ax.set_xticks(ranks)
    title(ax, "Perplexity" if base is None else "Perplexity gain over rank-ctr")
    ax.set_xlabel("rank (each click predicted from those above)")
    ends = {name: (ranks[-1], curve[-1], colors[name]) for name, curve in curves.items()}
    label_ends(figure, ax, ends)


def _per_rank(score: Score, *, given_clicks: bool) -> NDArray[np.float64]:
    values = score.perplexity_given_clicks_per_rank if given_clicks else score.perplexity_per_rank
    return np.array([np.nan if p is None else p for p in values])
