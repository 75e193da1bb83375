"""How a comparison of methods is shown: what each gains over naive training, log by log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from dualrank import report
from dualrank.diagnostics import JOINT
from dualrank.report import Results, Run, Sheet
from dualrank.reproduce.scenario_logs import SCENARIOS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METRIC = "ndcg@10"
SHOWN = "shown"
NAIVE = "naive"
REFERENCES = (NAIVE, "dla")
USUAL = "initial-ranker"
"""The log of a public collection, unless another is asked for."""
HEADINGS = {"initial": "logging ranker", "truth": "IPW, truth", "dla": "DLA"}
ASIDE = ("truth",)
"""What nobody has who has only a log stands outside the contest for the best."""
COLORS = ("gray", "purple", "blue", "vermilion", "green", "sky", "ink")
MARKERS = ("o", "d", "s", "^", "P", "v", "X", "D", "p", "<", ">", "h")
MATTERS = 0.005
"""A loss of dual learning that one would want to be warned of."""
GAIN, NEAR = 0.01, 0.003
"""A gain over naive training that one would not want to miss, and by how much one may miss it."""
_ROWS = Markup(
    "Each row is a log of some ranker and some users; one thing is changed at a time. All rankers "
    "learn from clicks alone, with a share of the queries held out; grades are looked at only for "
    "this page. <i>IPW, truth</i> has the curve that shuffling would measure, which nobody has who "
    "has only a log. <i>Diagnose</i> sees the log and the features, and no ranker of this page."
)
_SHOWN = (
    "The same rankers where they may only re-rank what the logging ranker would display for each "
    "test query. A ranker can be better on these documents, which are like those it learned from, "
    "and worse on all candidates."
)


def log_of(run: Run) -> str:
    """What tells logs apart: the scenario and, on a public collection, that."""
    data, scenario = report.extra(run, "data"), str(report.extra(run, "scenario"))
    return scenario if data is None else f"{data} {scenario}"


@dataclass(frozen=True)
class LogRow:
    """One log over its seeds: the runs of every method, and those of the naive ranker.

    Methods that learned with the log's context have a row of their own, under the same names.
    """

    log: str
    title: str
    runs: dict[str, list[Run]]
    naive: list[Run]
    suffix: str = ""

    def values(self, method: str, part: str = "metrics") -> list[float]:
        """What a method reached, seed by seed."""
        runs = self.runs.get(method, [])
        found = [run.metrics if part == "metrics" else report.extra(run, part) for run in runs]
        return [float(each[METRIC]) for each in found if isinstance(each, dict)]

    def gains(self, method: str) -> NDArray[np.float64]:
        """By how much a method is above the naive ranker, seed by seed."""
        naive = {run.seed: run.metrics[METRIC] for run in self.naive}
        runs = [run for run in self.runs.get(method, []) if run.seed in naive]
        return np.array([run.metrics[METRIC] - naive[run.seed] for run in runs])

    def said(self, key: str, method: str = "auto") -> list[Any]:
        """What the runs of a method hold beyond numbers, such as auto's choice."""
        found = [report.extra(run, key) for run in self.runs.get(method, [])]
        return [each for each in found if each is not None]


def log_rows(results: Results) -> list[LogRow]:
    """The runs of each log, in order."""
    by_log: dict[str, list[Run]] = {}
    for run in results.runs:
        by_log.setdefault(log_of(run), []).append(run)
    rows = []
    for log, of_log in by_log.items():
        data, scenario = (report.extra(of_log[0], key) for key in ("data", "scenario"))
        title = SCENARIOS[str(scenario)].title
        if data is not None:
            title = str(data) if scenario == USUAL else f"{data}: {title}"
        groups: dict[str, dict[str, list[Run]]] = {"": {}}
        for run in sorted(of_log, key=lambda run: run.seed):
            method, by, column = run.method.partition(" by ")
            groups.setdefault(by + column, {}).setdefault(method, []).append(run)
        for suffix, runs in groups.items():
            with_context = f"{title},{suffix}" if suffix else title
            rows.append(LogRow(log, with_context, runs, groups[""].get(NAIVE, []), suffix))
    return rows


def comparison_sheet(title: str, results: Results) -> Sheet:
    """The page of a comparison."""
    settings, rows = results.settings, log_rows(results)
    methods = [m for m in settings["methods"] if any(m in row.runs for row in rows)]
    seeds = len(settings["seeds"])
    exhibit = report.Exhibit(
        "gains",
        partial(gains_figure, rows, methods),
        "What each way of training gains over the naive ranker of the same log, which is the line "
        "at 0. Faint dots are seeds, strong ones their mean.",
        wide=True,
    )
    table = partial(value_table, rows, methods, results.significance, seeds)
    sections = [
        report.Section("What is gained over naive training", exhibits=(exhibit,)),
        report.Section("Whole test queries", table=table("metrics"), file="table.md"),
    ]
    if any(row.values(method, SHOWN) for row in rows for method in methods):
        sections.append(
            report.Section("Shown documents", _SHOWN, table=table(SHOWN), file="shown.md")
        )
    if (errors := error_table(rows, methods)) is not None:
        sections.append(report.Section("Error of the curve", table=errors, file="curves.md"))
    if (choices := choice_table(rows)) is not None:
        named = "What auto took, and what diagnose says"
        sections.append(report.Section(named, table=choices, file="auto.md"))
    return Sheet(
        title,
        summary=f"{settings['data']} · {seeds} seed{'s' * (seeds != 1)}",
        verdict=verdict(rows),
        sections=tuple(sections),
        explanations=(
            report.Explanation("The rows", _ROWS),
            report.Explanation(
                "What this does not show",
                "All clicks were simulated: logs of other engines may hold other surprises.",
            ),
        ),
        settings={key: value for key, value in settings.items() if key != "scenarios"},
        version=settings["version"],
        command=settings.get("command", ""),
    )


def value_table(
    rows: Sequence[LogRow],
    methods: Sequence[str],
    tests: Mapping[str, Any],
    seeds: int,
    part: str,
) -> report.Table:
    """Each log with what every method reaches, on whole queries or on what was shown."""
    metric = METRIC if part == "metrics" else f"{part} {METRIC}"

    def cell(row: LogRow, method: str) -> report.Cell | None:
        values = row.values(method, part)
        if not values:
            return None
        marks = [
            report.significance_mark(
                tests.get(row.log, {}).get(reference, {}), method + row.suffix, metric
            )
            for reference in REFERENCES
        ]
        return replace(report.Cell.of(values, marks[0]), other_mark=marks[1])

    remark = (
        f"nDCG@10 on test queries, over {seeds} seed{'s' * (seeds != 1)}. The truth is no "
        "competitor; tests are over queries, each cell by itself."
    )
    shown = [row for row in rows if any(row.values(method, part) for method in methods)]
    return report.Table(
        tuple(HEADINGS.get(method, method) for method in methods),
        tuple(
            report.Row(row.title, _with_best_in_row([cell(row, m) for m in methods], methods))
            for row in shown
        ),
        corner="log",
        words=("log",),
        kept_first=[HEADINGS.get(method, method) for method in (*REFERENCES, "auto")],
        reference=NAIVE,
        other_reference=HEADINGS["dla"],
        remark=remark,
    )


def _with_best_in_row(
    cells: Sequence[report.Cell | None], methods: Sequence[str]
) -> tuple[report.Cell | None, ...]:
    """The best method of a log is bold."""
    competes = [method not in ASIDE for method in methods]
    means = [c.mean for c, can in zip(cells, competes, strict=True) if can and c is not None]
    if len(means) < 2:
        return tuple(cells)
    best = report.Cell(max(means)).mean_text
    return tuple(
        replace(cell, best=can and cell.mean_text == best) if cell is not None else None
        for cell, can in zip(cells, competes, strict=True)
    )


def error_table(rows: Sequence[LogRow], methods: Sequence[str]) -> report.Table | None:
    """The error of the inverse weights of every method that has any."""

    def cells(row: LogRow, methods: Sequence[str]) -> tuple[str | None, ...]:
        return tuple(_range(row.said("curve_error", method), "{:.3g}") for method in methods)

    having = [
        m for m in methods if m != "truth" and any(row.said("curve_error", m) for row in rows)
    ]
    if not having:
        return None
    found = [report.Row(row.title, cells(row, having)) for row in rows]
    return report.Table(
        tuple(HEADINGS.get(method, method) for method in having),
        tuple(row for row in found if any(row.cells)),
        corner="log",
        words=("log",),
        remark="The mean squared error of the inverse weights against what shuffling would "
        "measure: the mean over seeds, and the smallest and largest.",
    )


def choice_table(rows: Sequence[LogRow]) -> report.Table | None:
    """What auto gained and took, and what diagnose says of the log."""
    found = [row for row in rows if row.said("chosen")]
    if not found:
        return None
    columns = ("auto − naive", "worst seed", "auto took", "diagnose")

    def gain(row: LogRow, of: Callable[[NDArray[np.float64]], float]) -> str | None:
        return _signed(f"{of(row.gains('auto')):+.4f}") if row.naive else None

    return report.Table(
        columns,
        tuple(
            report.Row(
                row.title,
                (
                    gain(row, np.mean),
                    gain(row, np.min),
                    _counted(row.said("chosen")),
                    _counted(row.said("verdict")),
                ),
            )
            for row in found
        ),
        corner="log",
        words=("log", *columns[2:]),
    )


def gains_figure(rows: Sequence[LogRow], methods: Sequence[str]) -> Figure | None:
    """What each method gains over naive training: seeds as faint dots, the mean a strong one."""
    drawn = [m for m in methods if m != NAIVE and any(len(row.gains(m)) for row in rows)]
    if not drawn:
        return None
    height = 0.25 + 0.11 * len(drawn)
    figure, (ax,) = report.new_figure(1, height=1.6 + height * len(rows), width=7.5)
    ax.axvline(0, color=report.LIGHT["muted"], lw=0.8, zorder=1)
    for border in range(1, len(rows)):
        ax.axhline(border - 0.5, color=report.LIGHT["line"], lw=0.8, zorder=1)
    places = np.linspace(0.34, -0.34, len(drawn)) if len(drawn) > 1 else [0.0]
    for number, (method, place) in enumerate(zip(drawn, places, strict=True)):
        color = report.LIGHT[COLORS[number % len(COLORS)]]
        marker = MARKERS[number % len(MARKERS)]
        size = 6.0
        if method == "auto":
            color, marker, size = report.LIGHT["orange"], "*", 10.0
        label: str | None = HEADINGS.get(method, method)
        for height_of_row, row in enumerate(reversed(rows)):
            gains, y = row.gains(method), height_of_row + place
            if not len(gains):
                continue
            seeds = np.full(len(gains), y)
            ax.plot(gains, seeds, "o", color=color, ms=3.5, alpha=0.3, mew=0, zorder=2)
            ax.plot(
                *([gains.mean()], [y], marker),
                color=color,
                ms=size,
                ls="",
                label=label,
                zorder=4,
                **report.EDGE,
            )
            label = None
    report.name_rows(ax, [row.title for row in reversed(rows)])
    ax.locator_params(axis="x", nbins=9, steps=[1, 2, 5, 10])
    ax.xaxis.set_major_formatter(lambda value, _: _signed(f"{value:+.2g}") if value else "naive")
    figure.legend(loc="outside lower center", ncols=4, **report.LEGEND)
    report.title(ax, "nDCG@10 on test queries, over naive training", whole_figure=True)
    return figure


def verdict(rows: Sequence[LogRow]) -> list[str]:
    """The findings in sentences, as far as the methods that they are about were trained."""
    rows = [row for row in rows if row.naive]
    return [*_about_auto(rows), *_about_dla([row for row in rows if len(row.gains("dla"))])]


def _about_auto(rows: Sequence[LogRow]) -> list[str]:
    rows = [row for row in rows if len(row.gains("auto"))]
    if not rows:
        return []
    worst = min(rows, key=lambda row: row.gains("auto").mean())
    least = f"{worst.gains('auto').mean():+.4f}"
    sentences = [
        f"Auto ends {_signed(least)} nDCG@10 against naive training where it ends worst "
        f"({worst.title})."
    ]
    best = {row.log: max(_best_gain(each) for each in rows if each.log == row.log) for row in rows}
    if gaining := [row for row in rows if best[row.log] > GAIN]:
        behind = [row for row in gaining if row.gains("auto").mean() < best[row.log] - NEAR]
        sentences.append(
            f"Where a single method gains more than {GAIN}, auto ends more than {NEAR} below the "
            f"best of them in {_named(behind, gaining)}"
        )
    return sentences


def _best_gain(row: LogRow) -> float:
    """The most that a single method gains with the log alone."""
    gains = [row.gains(m).mean() for m in row.runs if m not in (*ASIDE, "auto")]
    return max(gains, default=0.0)


def _about_dla(rows: Sequence[LogRow]) -> list[str]:
    if not rows:
        return []
    lost = [row for row in rows if row.gains("dla").mean() < -MATTERS]
    sentences = [f"Dual learning loses by more than {MATTERS} in {_named(lost, rows)}"]
    asked = [row for row in rows if row.said("verdict")]
    if not asked:
        return sentences
    # What diagnose names where it finds a log fit.
    named = "likelihood" if all(len(row.gains("likelihood")) for row in asked) else "dla"
    gains = {row.title: row.gains(named).mean() for row in asked}
    warned = {row.title for row in asked if JOINT not in row.said("verdict")}
    unwarned = [name for name, gain in gains.items() if gain < -MATTERS and name not in warned]
    needless = [name for name, gain in gains.items() if gain > 0 and name in warned]
    heading = HEADINGS.get(named, named)
    sentences.append(
        f"Diagnose does not warn, though {heading} loses so much, of {'; '.join(unwarned)}."
        if unwarned
        else f"Diagnose warns wherever {heading} loses so much."
    )
    sentences.append(
        f"Diagnose warns, though {heading} gains, of {'; '.join(needless)}."
        if needless
        else f"Diagnose finds every log on which {heading} gains fit for it."
    )
    return sentences


def _named(some: Sequence[LogRow], rows: Sequence[LogRow]) -> str:
    names = f": {'; '.join(row.title for row in some)}." if some else "."
    return f"{len(some)} of {len(rows)} logs{names}"


def _range(values: Sequence[float], form: str) -> str | None:
    """The mean, and the smallest and largest where there are several."""
    if not values:
        return None
    mean, low, high = (form.format(each) for each in (np.mean(values), min(values), max(values)))
    return _signed(mean if len(values) == 1 else f"{mean} ({low} to {high})")


def _signed(number: str) -> str:
    """With the sign that typography has for it."""
    return number.replace("-", "−")


def _counted(words: Sequence[str]) -> str:
    counts = {word: words.count(word) for word in dict.fromkeys(words)}
    if len(counts) == 1:
        return words[0]
    return ", ".join(f"{word} ({count})" for word, count in counts.items())
