"""Figures, drawn with matplotlib's objects and no global state.

Every function returns None where the results do not hold what it would draw. Spread is one
standard deviation over seeds on both sides of the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dualrank.propensity.curve_drawing import draw_side_by_side
from dualrank.propensity.propensity import Propensity
from dualrank.report.curves import (
    Curve,
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
    few_ticks,
    label_ends,
    name_rows,
    new_figure,
    plain,
    title,
    write_at_right,
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
from dualrank.showing.palette import LIGHT

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
        log = weight and bool(ax.dataLim.y1 > 40)
        if log:
            log_scale(ax)
        else:
            ax.set_ylim(0, None)
        heading = "Inverse propensity weight" + " (log scale)" * log
        title(ax, heading if weight else "Examination, relative to position 1")
        ax.set_xlabel("position")
        ax.set_xticks(_positions(next(iter(curves.values()))[0]))
        ax.legend(loc="upper left" if weight else "upper right", **LEGEND)
    return figure


def metric_figure(results: Results) -> Figure | None:
    """Each method's metric: every seed a faint dot, the mean a strong one, best on top."""
    metric = main_metric(results)
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
        color, mean = LIGHT[look.color], seeds.mean()
        ax.plot(seeds, np.full(len(seeds), y), "o", color=color, ms=4, alpha=0.3, mew=0, zorder=2)
        if len(seeds) > 1:
            ends = [mean - seeds.std(ddof=1), mean + seeds.std(ddof=1)]
            ax.plot(ends, [y, y], color=color, lw=2, solid_capstyle="round", zorder=3)
        ax.plot([mean], [y], look.marker, color=color, ms=7.5, zorder=4, **EDGE)
        write_at_right(ax, y, f"{mean:.3f}", bold=name == "dla")
    name_rows(ax, [method(name).label for name in ranked])
    few_ticks(ax, "x")
    title(ax, f"{metric_label(metric)} on test queries", whole_figure=True)
    return figure


def learning_curve_figure(results: Results) -> Figure | None:
    """The metric on validation queries as training goes on, one line per method."""
    metric = main_metric(results)
    if metric is None or swept_setting(results) is not None:
        return None
    lines = {}
    for name in ordered_methods(results):
        if (curve := learning_curve(results.of(name), metric)) is not None:
            lines[name] = curve[0], over_seeds(curve[1])

    def axes(ax: Axes) -> None:
        few_ticks(ax, "x")
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")

    heading = f"{metric_label(metric)} on validation queries"
    return lines_figure(lines, heading, "training steps", axes, marks=False)


def sweep_figure(results: Results, x: str, metric: str) -> Figure | None:
    """A metric against a swept setting, one line per method.

    The metric `"mse"` is the error of the inverse propensity weights, on a logarithmic scale.
    """
    lines = {}
    for name in ordered_methods(results):
        if (line := sweep_curve(results.of(name), x, metric)) is not None:
            lines[name] = line

    def axes(ax: Axes) -> None:
        swept = sorted({at for places, _ in lines.values() for at in places})
        if metric == "mse":
            log_scale(ax)
        if swept[0] > 0 and swept[-1] >= _WIDE * swept[0]:
            ax.set_xscale("log")
            ax.minorticks_off()
        ax.set_xticks(swept)
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")

    error = "Squared error of the weights (log scale)"
    heading = error if metric == "mse" else metric_label(metric)
    return lines_figure(lines, heading, setting_label(x), axes)


def lines_figure(
    lines: Mapping[str, tuple[NDArray[Any], Curve]],
    heading: str,
    x_label: str,
    axes: Callable[[Axes], None],
    *,
    marks: bool = True,
) -> Figure | None:
    """One line per method over its places, with the band of its spread and its label at the end.

    `axes` sets scales and ticks once the lines are drawn. None where there are no lines.
    """
    if not lines:
        return None
    figure, (ax,) = new_figure(1)
    for name, (places, curve) in lines.items():
        method_line(ax, name, places, *curve, marks=marks)
    ax.set_xlabel(x_label)
    axes(ax)
    title(ax, heading)
    looks = {name: method(name) for name in lines}
    label_ends(
        figure,
        ax,
        {
            looks[name].label: (places[-1], curve[0][-1], looks[name].color)
            for name, (places, curve) in lines.items()
        },
    )
    return figure


def estimates_figure(estimates: Mapping[str, Propensity]) -> Figure:
    """Estimates of examination side by side, each with its intervals."""
    # Few of them have room in a panel that a phone can show.
    larger = 1.0 if len(estimates) <= FEW else 1.5
    figure, (ax,) = new_figure(1, height=1.25 * SIZE[1], width=larger * SIZE[0])
    draw_side_by_side(ax, estimates)
    return figure


FEW = 3


def method_line(
    ax: Axes,
    name: str,
    x: NDArray[Any],
    mean: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    label: str | None = None,
    *,
    marks: bool = True,
) -> None:
    """A method's line in its colour, with the band of its spread."""
    look = method(name)
    color, marker = LIGHT[look.color], look.marker if marks else None
    label = plain(label or look.label)
    ax.plot(x, mean, color=color, lw=1.8, marker=marker, ms=5.5, label=label, **EDGE)
    ax.fill_between(x, low, high, color=color, alpha=0.16, lw=0)


def log_scale(ax: Axes) -> None:
    """A logarithmic axis with plain numbers."""
    ax.set_yscale("log")
    ax.minorticks_off()
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")


def _positions(curve: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.arange(1, len(curve) + 1)
