"""The comparison of click models, as a table and as a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualrank.certainty import level_errors
from dualrank.clicks.models.comparison import Score
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

_LEAVES = (
    "Users read from the top and leave: train with method stopping, or auto; weights by position "
    "(dla, ipw, likelihood) are wrong for them."
)
_NOTHING = (
    "No model of a habit can be fitted here: too few sessions saw the same document at several "
    "positions. Believe no relevance that a click model extracts from this log; what users do "
    "shows in diagnose, which takes all documents together."
)
_MEANS = {
    "random-ctr": _NOTHING,
    "rank-ctr": _NOTHING,
    "document-ctr": _NOTHING,
    "pbm": "A position is seen or not whatever was clicked above: weights by position are right; "
    "train with method likelihood, or auto.",
    "pbm-trust": "Users click the top beyond seeing it, relevant or not: train with method affine, "
    "which corrects for trust, or auto.",
    "cascade": _LEAVES,
    "dcm": _LEAVES,
    "dcm-em": _LEAVES,
    "ccm": _LEAVES,
    "sdbn": _LEAVES,
    "sdbn-em": _LEAVES,
    "dbn": _LEAVES,
    "ubm": "Where users look depends on where they last clicked, which no weight by position "
    "corrects: train with method click-model and this model, or auto, and read an examination "
    "curve as the average over these users.",
}
"""What a model's lead says of the users, and which method is made for them."""
_SIMPLEST_FIRST = tuple(_MEANS)

_MORE_TRUST = 0.02
"""By how much more, of the clicks on relevant documents there, to be taken for trust."""

_FAR = 1.5
"""Beyond so many times the spread of the better half a point is drawn at the edge."""


def comparison_table(scores: Sequence[Score]) -> Table:
    """Log-likelihood per session and perplexity, the best of each column in bold."""
    columns = ("log-likelihood", "perplexity", "perplexity given clicks above")
    rows = []
    for score in scores:
        values = (score.log_likelihood, score.perplexity, score.perplexity_given_clicks)
        rows.append(Row(score.model, tuple(Cell(value, decimals=4) for value in values)))
    return Table(columns, with_best(rows, lowest=(1, 2)), corner="model")


def comparison_verdict(scores: Sequence[Score]) -> list[str]:
    """Which model predicts best, how sure that is, and what to learn with; in sentences."""
    ranked = sorted(scores, key=lambda score: -score.log_likelihood)
    if len(ranked) < 2:
        return []
    best, needed = ranked[0], level_errors(len(ranked) - 1)
    level = [each for each in ranked[1:] if each.behind <= needed * each.behind_error]
    second = ranked[1]
    ahead = f"{second.behind:.4f} in log-likelihood per session"
    if not level:
        told = f", {second.behind / second.behind_error:.1f} standard errors" * (
            second.behind_error > 0
        )
        said = (
            f"{best.model} predicts held-out sessions best: it is ahead of {second.model}, the "
            f"next, by {ahead}{told}, where {needed:.1f} would be clear."
        )
        return [said, _meaning(best)]
    names = [each.model for each in level]
    listed = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    order = [name for name in _SIMPLEST_FIRST if name in (best.model, *names)]
    plainest = order[0] if order else best.model
    said = (
        f"{best.model} comes first, but {listed} {'is' if len(names) == 1 else 'are'} not clearly "
        f"behind (less than {needed:.1f} standard errors): this log does not tell them apart."
    )
    if plainest == best.model:
        return [said, "It is also the simplest of them.", _meaning(best)]
    simple = next(score for score in ranked if score.model == plainest)
    return [said, f"The simplest of them is {plainest}.", _meaning(simple)]


def _meaning(score: Score) -> str:
    """What it says of the users that this model predicts them best."""
    if score.model != "pbm-trust" or _trusts(score):
        return _MEANS.get(score.model, "")
    return (
        "But as it was fitted, it has no more trust in the top than below, and differs from pbm by "
        "what it presumes of documents seen seldom. " + _MEANS["pbm"]
    )


def _trusts(score: Score) -> bool:
    """Whether irrelevant documents are clicked a larger share of times at the top than below."""
    relevant, irrelevant = (np.array(score.shared.get(k, [])) for k in ("relevant", "irrelevant"))
    if len(relevant) < 2:
        return True
    share = irrelevant / np.maximum(relevant, 1e-9)
    return bool(share[0] > share[1:].mean() + _MORE_TRUST)


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
    values = np.array([score.log_likelihood for score in ranked])
    half = values[len(values) // 2 :]
    edge = half.min() - _FAR * max(half.max() - half.min(), 1e-3)
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
