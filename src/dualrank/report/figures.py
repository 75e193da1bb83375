"""Figures, drawn with matplotlib's objects and no global state.

Every function returns None where the results do not hold what it would draw. Spread is one
standard deviation over seeds on both sides of the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dualrank.experiments.results import Results
from dualrank.propensity.propensity import Propensity
from dualrank.report.curves import (
    inverse,
    learning_curve,
    over_seeds,
    propensity_curves,
    sweep_curve,
    true_examination,
)
from dualrank.report.names import (
    main_metric,
    method,
    metric_label,
    ordered_methods,
    setting_label,
    swept_setting,
)
from dualrank.report.theme import LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Panel = Literal["examination", "weight"]

_SIZE = (4.6, 3.1)
_TEXT = 9.5
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
    figure, axes = _new_figure(len(panels))
    for panel, ax in zip(panels, axes, strict=True):
        weight = panel == "weight"
        if truth is not None:
            y = 1 / truth if weight else truth
            # Wide and pale below the others: where an estimate is right, it still shows.
            ax.plot(_positions(y), y, color=LIGHT["ink"], lw=7, alpha=0.27, label="true")
        for name, curve in curves.items():
            mean, low, high = inverse(curve) if weight else curve
            _line(ax, name, _positions(mean), mean, low, high, _CURVE_LABELS.get(name))
        log = weight and ax.dataLim.y1 > 40
        if log:
            _log_scale(ax)
        else:
            ax.set_ylim(0, None)
        _title(
            ax,
            f"Inverse propensity weight{' (log scale)' if log else ''}"
            if weight
            else "Examination, relative to position 1",
        )
        ax.set_xlabel("position")
        ax.set_xticks(_positions(next(iter(curves.values()))[0]))
        ax.legend(loc="upper left" if weight else "upper right", **_LEGEND)
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
    figure, (ax,) = _new_figure(1, height=max(2.2, 0.7 + 0.38 * len(ranked)))
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
        ax.plot([seeds.mean()], [y], look.marker, color=color, ms=7.5, zorder=4, **_EDGE)
        ax.annotate(
            f"{seeds.mean():.3f}",
            (1.0, y),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            color=LIGHT["ink"],
            fontsize=_TEXT,
            fontweight="bold" if name == "dla" else "normal",
        )
    ax.set_yticks(range(len(ranked)), [_plain(method(name).label) for name in ranked])
    ax.tick_params(axis="y", labelcolor=LIGHT["ink"])
    ax.set_ylim(-0.6, len(ranked) - 0.4)
    ax.margins(x=0.06)
    ax.grid(visible=False, axis="y")
    ax.grid(axis="x", color=LIGHT["line"], lw=0.8)
    ax.spines["bottom"].set_visible(False)
    _few_ticks(ax, "x")
    _title(ax, f"{metric_label(metric)} on test queries", whole_figure=True)
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
    figure, (ax,) = _new_figure(1)
    for name, (steps, seeds) in curves.items():
        _line(ax, name, steps, *over_seeds(seeds), marks=False)
    ends = {name: float(seeds[:, -1].mean()) for name, (_, seeds) in curves.items()}
    last = {name: float(steps[-1]) for name, (steps, _) in curves.items()}
    ax.set_xlabel("training steps")
    _few_ticks(ax, "x")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    _title(ax, f"{metric_label(metric)} on validation queries")
    _label_ends(figure, ax, last, ends)
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
    figure, (ax,) = _new_figure(1)
    for name, (places, curve) in lines.items():
        _line(ax, name, places, *curve)
    if metric == "mse":
        _log_scale(ax)
    ax.set_xlabel(setting_label(x))
    ax.set_xticks(sorted({at for places, _ in lines.values() for at in places}))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    _title(
        ax,
        "Squared error of the weights (log scale)" if metric == "mse" else metric_label(metric),
    )
    last = {name: float(places[-1]) for name, (places, _) in lines.items()}
    _label_ends(figure, ax, last, {name: float(curve[0][-1]) for name, (_, curve) in lines.items()})
    return figure


def estimates_figure(estimates: Mapping[str, Propensity]) -> Figure:
    """Estimates of examination side by side, each with its intervals."""
    figure, (ax,) = _new_figure(1, height=1.25 * _SIZE[1], width=1.5 * _SIZE[0])
    room = 0.5 / max(len(estimates), 1)
    for number, (name, found) in enumerate(estimates.items()):
        color, marker = _ESTIMATOR_LOOKS.get(name, ("ink", "h"))
        # Beside each other, so that intervals do not hide one another.
        x = _positions(found.examination) + room * (number - (len(estimates) - 1) / 2)
        spread = None
        if found.low is not None and found.high is not None:
            bounded = np.where(np.isfinite(found.high), found.high, found.examination)
            spread = np.array([found.examination - found.low, bounded - found.examination])
        ax.errorbar(
            x,
            found.examination,
            spread,
            color=LIGHT[color],
            lw=1.2,
            elinewidth=1.2,
            marker=marker,
            ms=5,
            label=_plain(name),
            **_EDGE,
        )
    ax.set_ylim(0, None)
    ax.set_xlabel("position")
    ax.set_xticks(_positions(max((p.examination for p in estimates.values()), key=len)))
    _few_ticks(ax, "y")
    _title(ax, "Examination, relative to position 1")
    ax.legend(loc="upper right", **_LEGEND)
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
_LEGEND: dict[str, Any] = {
    "frameon": False,
    "fontsize": _TEXT,
    "labelcolor": LIGHT["ink"],
    "handlelength": 2.2,
    "borderaxespad": 0.2,
}
_EDGE: dict[str, Any] = {"mec": LIGHT["paper"], "mew": 1}


def _new_figure(
    columns: int, height: float = _SIZE[1], width: float = _SIZE[0]
) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height), layout="constrained")
    axes = list(figure.subplots(1, columns, squeeze=False)[0])
    for ax in axes:
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)
        ax.spines["bottom"].set_color(LIGHT["line"])
        ax.tick_params(length=0, pad=5, colors=LIGHT["muted"], labelsize=_TEXT)
        ax.xaxis.label.set(color=LIGHT["muted"], fontsize=_TEXT)
        ax.grid(axis="y", color=LIGHT["line"], lw=0.8)
        ax.set_axisbelow(True)
    return figure, axes


def _title(ax: Axes, text: str, *, whole_figure: bool = False) -> None:
    style: dict[str, Any] = {
        "color": LIGHT["ink"],
        "fontsize": _TEXT + 1,
        "fontweight": "bold",
    }
    if whole_figure:
        ax.figure.suptitle(_plain(text), x=0.01, ha="left", **style)
    else:
        ax.set_title(_plain(text), loc="left", pad=10, **style)


def _line(
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
    look = method(name)
    color = LIGHT[look.color]
    ax.plot(
        x,
        mean,
        color=color,
        lw=1.8,
        marker=look.marker if marks else None,
        ms=5.5,
        label=_plain(label or look.label),
        **_EDGE,
    )
    if low is not None and high is not None:
        ax.fill_between(x, low, high, color=color, alpha=0.16, lw=0)


def _label_ends(figure: Figure, ax: Axes, x: dict[str, float], y: dict[str, float]) -> None:
    """Write each line's name at its end, moved apart where two would overlap."""
    # Overlap is measured in pixels, which are known once limits and layout have settled.
    figure.draw_without_rendering()
    names = sorted(y, key=lambda name: y[name])
    ends = np.array([ax.transData.transform((x[name], y[name]))[1] for name in names])
    gap = 1.25 * _TEXT * figure.dpi / 72
    places = _apart(ends, gap)
    right = max(x.values())
    for name, end, place in zip(names, ends, places, strict=True):
        ax.annotate(
            _plain(method(name).label),
            (right, y[name]),
            xytext=(7, (place - end) * 72 / figure.dpi),
            textcoords="offset points",
            va="center",
            color=LIGHT[method(name).color],
            fontsize=_TEXT,
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


def _few_ticks(ax: Axes, axis: Literal["x", "y"]) -> None:
    ax.locator_params(axis=axis, nbins=5)


def _log_scale(ax: Axes) -> None:
    ax.set_yscale("log")
    ax.minorticks_off()
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")


def _positions(curve: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.arange(1, len(curve) + 1)


def _plain(text: str) -> str:
    """Text that fits beside a figure and that matplotlib does not take for mathematics."""
    short = text if len(text) <= 44 else text[:40] + "…"
    return short.replace("$", r"\$")
