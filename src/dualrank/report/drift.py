"""What the drift experiment shows: weights, their error and ranking quality over time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.report.curves import over_seeds
from dualrank.report.drawing import TEXT, few_ticks, label_ends, new_figure, title
from dualrank.report.figures import log_scale, method_labels, method_line
from dualrank.report.labels import extra, method, metric_label, ordered_methods
from dualrank.report.results import Results, Run
from dualrank.report.results_sheet import band_caption
from dualrank.report.sheet import Exhibit
from dualrank.report.table import Cell, Row, Table
from dualrank.report.theme import LIGHT
from dualrank.reproduce.drift import METRIC, Severity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN_POSITIONS = (2, 4, 7, 10)
GOAL = 0.1

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Streams:
    """What the runs of one method recorded: seeds by moments, and by positions for weights."""

    moments: Floats
    quality: Floats
    truth: Floats
    weights: Floats | None

    @classmethod
    def of(cls, runs: list[Run]) -> Streams:
        """Read them from the runs; what is believed is None in methods that believe nothing."""
        records: list[Any] = [extra(run, "drift") for run in runs]
        believed = [record["examination"] for record in records]
        known = believed[0][0] is not None
        depth = len(believed[0][0]) if known else 1
        users = [PositionBasedUser(eta=eta) for eta in records[0]["eta"]]
        return cls(
            moments=np.array(records[0]["moment"]),
            quality=np.array([record[METRIC] for record in records]),
            truth=np.array([u.examination(1) / u.examination(depth) for u in users]),
            weights=1 / np.array(believed) if known else None,
        )

    @property
    def errors(self) -> Floats | None:
        """|ŵ_i/w_i − 1|, the relative error of the inverse propensity weights."""
        return None if self.weights is None else np.abs(self.weights / self.truth - 1)

    @property
    def largest_errors(self) -> Floats:
        """The largest of them over positions, seeds by moments."""
        assert self.errors is not None
        return self.errors.max(axis=2)

    def at(self, moment: float) -> int:
        """The row that was recorded at a moment."""
        return int(np.argmin(np.abs(self.moments - moment)))


def streams(results: Results) -> dict[str, Streams]:
    """What each method recorded; empty for other experiments than drift."""
    if results.experiment != "drift":
        return {}
    return {name: Streams.of(results.of(name)) for name in ordered_methods(results)}


def severity_of(results: Results) -> Severity:
    """How the severity went."""
    given = results.settings
    first, last = given["ramp"]
    return Severity(given["eta_before"], given["eta_after"], given["jump"], (first, last))


def drift_verdict(results: Results) -> list[str]:
    """The findings in sentences."""
    severity, found = severity_of(results), streams(results)
    label = metric_label(METRIC)
    sentences = []
    for name in ("dla", "randlist"):
        if name not in found:
            continue
        here, worst = found[name], found[name].largest_errors
        then = worst[:, here.at(severity.jump + 0.1)]
        settled = worst[:, here.at(severity.ramp[0])]
        on_the_way = worst[:, here.at(severity.ramp[0]) + 1 :].max(axis=1)
        who = "DLA's weights" if name == "dla" else "the weights of RandList"
        sentences.append(
            f"A tenth of the training after η jumped from {severity.before:g} to "
            f"{severity.after:g}, {who} are within {_percent(then)} of the true ones at every "
            f"position; before the way back within {_percent(settled)}, and on it within "
            f"{_percent(on_the_way)}."
        )
    for name, here in found.items():
        values = [here.quality[:, here.at(moment)].mean() for moment in severity.moments.values()]
        before, tenth, settled_, end = (f"{value:.3f}" for value in values)
        sentences.append(
            f"{method(name).label}: {label} {before} before the jump, {tenth} a tenth of the "
            f"training later, {settled_} before the way back, {end} at the end."
        )
    sentences.append(f"The table is of the last moment at η = {severity.after:g}.")
    return sentences


def drift_table(results: Results) -> Table:
    """The moments that are spoken about."""
    found = streams(results)
    believing = [name for name, here in found.items() if here.errors is not None]
    columns = [f"{metric_label(METRIC)}, {method(name).label}" for name in found]
    columns += [f"weights off by, {method(name).label}" for name in believing]
    rows = []
    for moment, time in severity_of(results).moments.items():
        cells = [Cell.of(here.quality[:, here.at(time)].tolist()) for here in found.values()]
        for name in believing:
            worst = 100 * found[name].largest_errors[:, found[name].at(time)]
            cells.append(Cell.of(worst.tolist(), decimals=1, unit=" %"))
        rows.append(Row(moment, tuple(cells)))
    remark = "A seed's weights are off by the largest relative error over positions."
    return Table(tuple(columns), tuple(rows), corner="Moment", remark=remark)


def weight_figure(results: Results) -> Figure | None:
    """The weight of a click at some positions as training goes on, learned and true."""
    found = {name: s for name, s in streams(results).items() if s.weights is not None}
    if not found:
        return None
    figure, (ax,) = new_figure(1)
    first = next(iter(found.values()))
    x = _sessions(results, first)
    shown = [position for position in SHOWN_POSITIONS if position <= first.truth.shape[1]]
    for position in shown:
        # Wide and pale below the others: where an estimate is right, it still shows.
        ax.plot(x, first.truth[:, position - 1], color=LIGHT["ink"], lw=6, alpha=0.2)
    for name, here in found.items():
        assert here.weights is not None
        for position in shown:
            curve = over_seeds(here.weights[:, :, position - 1], log=True)
            method_line(ax, name, x, *curve, marks=False)
    log_scale(ax)
    for position in shown:
        row = first.at(severity_of(results).ramp[0])
        ax.annotate(
            f"position {position}",
            (x[row], first.truth[row, position - 1]),
            xytext=(-2, 6),
            textcoords="offset points",
            ha="right",
            color=LIGHT["muted"],
            fontsize=TEXT - 1,
        )
    _time_axis(ax)
    title(ax, "Inverse propensity weight (log scale)")
    last = {name: float(x[-1]) for name in found}
    ends = {name: float(s.weights[:, -1, shown[-1] - 1].mean()) for name, s in found.items()}  # type: ignore[index]
    label_ends(figure, ax, last, ends, method_labels(ends))
    return figure


def error_figure(results: Results) -> Figure | None:
    """The largest relative error of the weights over positions, as training goes on."""
    found = {name: s for name, s in streams(results).items() if s.errors is not None}
    if not found:
        return None
    figure, (ax,) = new_figure(1)
    ends, last = {}, {}
    for name, here in found.items():
        x, curve = _sessions(results, here), over_seeds(here.largest_errors, log=True)
        method_line(ax, name, x, *curve, marks=False)
        ends[name], last[name] = float(curve[0][-1]), float(x[-1])
    ax.axhline(GOAL, color=LIGHT["muted"], lw=0.8, ls=(0, (2, 3)))
    ax.set_yscale("log")
    ax.minorticks_off()
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    _time_axis(ax)
    title(ax, "Largest error of a weight (log scale)")
    label_ends(figure, ax, last, ends, method_labels(ends))
    return figure


def quality_figure(results: Results) -> Figure | None:
    """Ranking quality on test queries as training goes on."""
    found = streams(results)
    if not found:
        return None
    figure, (ax,) = new_figure(1)
    severity, ends, last = severity_of(results), {}, {}
    total = float(results.settings["sessions"])
    ax.axvspan(
        severity.jump * total, severity.ramp[0] * total, color=LIGHT["ink"], alpha=0.06, lw=0
    )
    for name, here in found.items():
        x = _sessions(results, here)
        method_line(ax, name, x, *over_seeds(here.quality), marks=False)
        ends[name], last[name] = float(here.quality[:, -1].mean()), float(x[-1])
    _time_axis(ax)
    title(ax, f"{metric_label(METRIC)} on test queries")
    label_ends(figure, ax, last, ends, method_labels(ends))
    return figure


def drift_exhibits(results: Results) -> list[Exhibit]:
    """All of them by name, with what they show."""
    band = band_caption(results)
    return [
        Exhibit(
            "drift-weight",
            partial(weight_figure, results),
            "How much a click counts at some positions while users change: believed by each "
            "method, and the truth as a wide pale line." + band,
        ),
        Exhibit(
            "drift-error",
            partial(error_figure, results),
            "By how much the weight that is most wrong is off; the dotted line is 10%." + band,
        ),
        Exhibit(
            "drift-quality",
            partial(quality_figure, results),
            "How well each method ranks test queries; in the shaded time the bias is the stronger "
            "one." + band,
        ),
    ]


def _sessions(results: Results, here: Streams) -> Floats:
    return here.moments * float(results.settings["sessions"])


def _time_axis(ax: Axes) -> None:
    ax.set_xlabel("sessions")
    few_ticks(ax, "x")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value / 1e6:g} M" if value else "0")


def _percent(of_seeds: Floats) -> str:
    """A mean over seeds, and the worst of them."""
    worst = f" (worst seed {100 * of_seeds.max():.1f}%)" if len(of_seeds) > 1 else ""
    return f"{100 * of_seeds.mean():.1f}%{worst}"
