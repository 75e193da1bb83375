"""Figures, drawn with matplotlib's objects and no global state.

Every function returns None where the results do not hold what it would draw. Spread is one
standard deviation over seeds on both sides of the mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dualrank.propensity.propensity import Propensity
from dualrank.report.curves import (
    inverse,
    learning_curve,
    over_seeds,
    propensity_curves,
    sweep_curve,
    true_examination,
)
from dualrank.report.drawing import (
    EDGE,
    LEGEND,
    SIZE,
    TEXT,
    few_ticks,
    label_ends,
    new_figure,
    plain,
    title,
)
from dualrank.report.labels import (
    main_metric,
    method,
    metric_label,
    ordered_methods,
    setting_label,
    swept_setting,
)
from dualrank.report.results import Results
from dualrank.report.theme import LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Panel = Literal["examination", "weight"]

_WIDE = 30
"""A swept setting whose values differ by more than this factor is drawn on a logarithmic scale."""
_CURVE_LABELS = {"dla": "learned (DLA)", "randlist": "measured (RandList)"}


def propensity_figure(
    results: Results, panels: Sequence[Panel] = ("examination", "weight")
) -> Figure | None:
    """Examination per position, learned, measured and true, and the weights that follow.

    The inverse propensity weight of a click at position `i` is `P(1)/P(i)`.
    """
    curves = propensity_curves(results)
    truth = true_examination(results)
    if not curves:
        return None
    figure, axes = new_figure(len(panels))
    for panel, ax in zip(panels, axes, strict=True):
        weight = panel == "weight"
        if truth is not None:
            y = 1 / truth if weight else truth
            # Wide and pale below the others: where an estimate is right, it still shows.
            ax.plot(_positions(y), y, color=LIGHT["ink"], lw=7, alpha=0.27, label="true")
        for name, curve in curves.items():
            mean, low, high = inverse(curve) if weight else curve
            method_line(ax, name, _positions(mean), mean, low, high, _CURVE_LABELS.get(name))
        log = weight and ax.dataLim.y1 > 40
        if log:
            log_scale(ax)
        else:
            ax.set_ylim(0, None)
        title(
            ax,
            f"Inverse propensity weight{' (log scale)' if log else ''}"
            if weight
            else "Examination, relative to position 1",
        )
        ax.set_xlabel("position")
        ax.set_xticks(_positions(next(iter(curves.values()))[0]))
        ax.legend(loc="upper left" if weight else "upper right", **LEGEND)
    return figure


def metric_figure(results: Results, metric: str | None = None) -> Figure | None:
    """Each method's metric: every seed a faint dot, the mean a strong one, best on top."""
    metric = metric or main_metric(results)
    if metric is None or swept_setting(results) is not None:
        return None
    values = {
        name: np.array([run.metrics[metric] for run in results.of(name) if metric in run.metrics])
        for name in ordered_methods(results)
    }
    values = {name: seeds for name, seeds in values.items() if len(seeds)}
    if len(values) < 2:
        return None
    ranked = sorted(values, key=lambda name: values[name].mean())
    figure, (ax,) = new_figure(1, height=max(2.2, 0.7 + 0.38 * len(ranked)))
    if "dla" in values:
        ax.axvline(values["dla"].mean(), color=LIGHT["blue"], lw=0.8, ls=(0, (2, 3)), zorder=1)
    for y, name in enumerate(ranked):
        look, seeds = method(name), values[name]
        color = LIGHT[look.color]
        ax.plot(seeds, np.full(len(seeds), y), "o", color=color, ms=4, alpha=0.3, mew=0, zorder=2)
        if len(seeds) > 1:
            spread = seeds.std(ddof=1)
            ends = [seeds.mean() - spread, seeds.mean() + spread]
            ax.plot(ends, [y, y], color=color, lw=2, solid_capstyle="round", zorder=3)
        ax.plot([seeds.mean()], [y], look.marker, color=color, ms=7.5, zorder=4, **EDGE)
        ax.annotate(
            f"{seeds.mean():.3f}",
            (1.0, y),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            color=LIGHT["ink"],
            fontsize=TEXT,
            fontweight="bold" if name == "dla" else "normal",
        )
    ax.set_yticks(range(len(ranked)), [plain(method(name).label) for name in ranked])
    ax.tick_params(axis="y", labelcolor=LIGHT["ink"])
    ax.set_ylim(-0.6, len(ranked) - 0.4)
    ax.margins(x=0.06)
    ax.grid(visible=False, axis="y")
    ax.grid(axis="x", color=LIGHT["line"], lw=0.8)
    ax.spines["bottom"].set_visible(False)
    few_ticks(ax, "x")
    title(ax, f"{metric_label(metric)} on test queries", whole_figure=True)
    return figure


def learning_curve_figure(results: Results, metric: str | None = None) -> Figure | None:
    """The metric on validation queries as training goes on, one line per method."""
    metric = metric or main_metric(results)
    if metric is None or swept_setting(results) is not None:
        return None
    curves = {}
    for name in ordered_methods(results):
        if (curve := learning_curve(results.of(name), metric)) is not None:
            curves[name] = curve
    if not curves:
        return None
    figure, (ax,) = new_figure(1)
    for name, (steps, seeds) in curves.items():
        method_line(ax, name, steps, *over_seeds(seeds), marks=False)
    ends = {name: float(seeds[:, -1].mean()) for name, (_, seeds) in curves.items()}
    last = {name: float(steps[-1]) for name, (steps, _) in curves.items()}
    ax.set_xlabel("training steps")
    few_ticks(ax, "x")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    title(ax, f"{metric_label(metric)} on validation queries")
    label_ends(figure, ax, last, ends, method_labels(ends))
    return figure


def sweep_figure(results: Results, x: str = "eta", metric: str | None = None) -> Figure | None:
    """A metric against a swept setting, one line per method.

    The metric `"mse"` is the error of the inverse propensity weights, on a logarithmic scale.
    """
    metric = metric or main_metric(results)
    if metric is None:
        return None
    lines = {}
    for name in ordered_methods(results):
        if (line := sweep_curve(results.of(name), x, metric)) is not None:
            lines[name] = line
    if not lines:
        return None
    figure, (ax,) = new_figure(1)
    for name, (places, curve) in lines.items():
        method_line(ax, name, places, *curve)
    if metric == "mse":
        log_scale(ax)
    ax.set_xlabel(setting_label(x))
    swept = sorted({at for places, _ in lines.values() for at in places})
    if swept[0] > 0 and swept[-1] >= _WIDE * swept[0]:
        ax.set_xscale("log")
        ax.minorticks_off()
    ax.set_xticks(swept)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    title(
        ax,
        "Squared error of the weights (log scale)" if metric == "mse" else metric_label(metric),
    )
    last = {name: float(places[-1]) for name, (places, _) in lines.items()}
    ends = {name: float(curve[0][-1]) for name, (_, curve) in lines.items()}
    label_ends(figure, ax, last, ends, method_labels(ends))
    return figure


def estimates_figure(estimates: Mapping[str, Propensity]) -> Figure:
    """Estimates of examination side by side, each with its intervals."""
    from matplotlib.ticker import LogLocator

    figure, (ax,) = new_figure(1, height=1.25 * SIZE[1], width=1.5 * SIZE[0])
    room = 0.5 / max(len(estimates), 1)
    for number, (name, found) in enumerate(estimates.items()):
        color, marker = _ESTIMATOR_LOOKS.get(name, ("ink", "h"))
        # Beside each other, so that intervals do not hide one another.
        x = _positions(found.examination) + room * (number - (len(estimates) - 1) / 2)
        spread = None
        if found.low is not None and found.high is not None:
            # An interval without bounds goes to both edges of the figure.
            high = np.where(np.isfinite(found.high), found.high, 10 * found.examination)
            low = np.where(np.isfinite(found.high), found.low, found.examination / 10)
            spread = np.array([found.examination - low, high - found.examination])
        ax.errorbar(
            x,
            found.examination,
            spread,
            color=LIGHT[color],
            lw=1.2,
            elinewidth=1.2,
            marker=marker,
            ms=5,
            label=plain(name),
            **EDGE,
        )
    every = np.concatenate([p.examination for p in estimates.values()])
    ax.set_yscale("log")
    ax.set_ylim(every.min() / 1.5, max(1.0, every.max()) * 1.5)
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.minorticks_off()
    ax.set_xlabel("position")
    ax.set_xticks(_positions(max((p.examination for p in estimates.values()), key=len)))
    title(ax, "Relative examination (log scale)")
    ax.legend(loc="lower left", **LEGEND)
    return figure


_ESTIMATOR_LOOKS = {
    "click-through": ("gray", "v"),
    "randomisation": ("muted", "s"),
    "pair-swaps": ("orange", "P"),
    "harvest-pivot": ("sky", "^"),
    "harvest-adjacent": ("green", "<"),
    "harvest-all-pairs": ("blue", "D"),
    "pbm": ("purple", "d"),
    "regression-em": ("ink", "X"),
    "dla": ("vermilion", "o"),
}


def method_line(
    ax: Axes,
    name: str,
    x: NDArray[Any],
    mean: NDArray[np.float64],
    low: NDArray[np.float64] | None,
    high: NDArray[np.float64] | None,
    label: str | None = None,
    *,
    marks: bool = True,
) -> None:
    """A method's line in its colour, with the band of its spread."""
    look = method(name)
    color = LIGHT[look.color]
    ax.plot(
        x,
        mean,
        color=color,
        lw=1.8,
        marker=look.marker if marks else None,
        ms=5.5,
        label=plain(label or look.label),
        **EDGE,
    )
    if low is not None and high is not None:
        ax.fill_between(x, low, high, color=color, alpha=0.16, lw=0)


def method_labels(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """The label of each method, and the name of its colour."""
    return {name: (method(name).label, method(name).color) for name in names}


def log_scale(ax: Axes) -> None:
    """A logarithmic axis with plain numbers."""
    ax.set_yscale("log")
    ax.minorticks_off()
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")


def _positions(curve: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.arange(1, len(curve) + 1)
