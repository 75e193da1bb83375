"""Scenarios: each a row, with what every method reaches and what diagnose says."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from dualrank.diagnostics.verdict import JOINT
from dualrank.report.drawing import EDGE, LEGEND, new_figure, title
from dualrank.report.labels import extra
from dualrank.report.results import Results, Run
from dualrank.report.sheet import Exhibit, Explanation, Section, Sheet
from dualrank.report.table import Row, Table
from dualrank.report.theme import LIGHT
from dualrank.reproduce.scenarios import METHODS, SCENARIOS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METRIC = "ndcg@10"
HEADINGS = {
    "naive": "naive",
    "truth": "IPW, truth",
    "dla": "DLA",
    "auto": "auto",
}
# Colour, marker and place within the row; what auto took lies on top of something else.
LOOKS = {
    "truth": ("purple", "d", 0.22),
    "dla": ("blue", "o", 0.0),
    "auto": ("orange", "*", -0.22),
}
_ROWS = Markup(
    "Each row is a log of some ranker and some users; one thing is changed at a time. All rankers "
    "learn from clicks alone, with a share of the queries held out; grades are looked at only for "
    "this table. <i>Auto</i> trains the naive ranker and every correction that the log allows, and "
    "takes a correction only where it predicts the held-out clicks clearly better and nothing "
    "speaks against weights by position. <i>Diagnose</i> sees the log and the features, and no "
    "ranker of this table."
)
_CAVEAT = "All clicks were simulated: logs of other engines may hold other surprises."
# A loss of dual learning that one would want to be warned of.
MATTERS = 0.005


@dataclass(frozen=True)
class ScenarioRow:
    """One scenario over its seeds."""

    title: str
    values: dict[str, list[float]]
    leads: list[float]
    chosen: list[str]
    verdicts: list[str]

    def gains(self, method: str = "dla") -> list[float]:
        """By how much a method is above the naive ranker, seed by seed."""
        return [m - n for m, n in zip(self.values[method], self.values["naive"], strict=True)]

    @property
    def is_lost(self) -> bool:
        """Whether dual learning loses to the naive ranker by what matters, in the mean."""
        return float(np.mean(self.gains())) < -MATTERS

    @property
    def is_warned_of(self) -> bool:
        """Whether diagnose spoke against joint learning, with every seed."""
        return JOINT not in self.verdicts

    def cells(self) -> list[str]:
        """The row as printed."""
        means = [_mean_and_spread(self.values[name]) for name in METHODS]
        gain = f"{np.mean(self.gains()):+.4f}"
        lead = f"{np.mean(self.leads):+.1f} ({min(self.leads):+.1f} to {max(self.leads):+.1f})"
        told = [_counted(self.chosen), _counted(self.verdicts)]
        return [*means, _signed(gain), _signed(lead), *told]


def scenario_rows(results: Results) -> list[ScenarioRow]:
    """The runs of each scenario, in order."""
    rows = []
    for name in dict.fromkeys(str(extra(run, "scenario")) for run in results.runs):
        runs = [run for run in results.runs if extra(run, "scenario") == name]
        rows.append(
            ScenarioRow(
                SCENARIOS[name].title,
                {method: [r.metrics[METRIC] for r in _of(runs, method)] for method in METHODS},
                [float(str(extra(run, "lead"))) for run in _of(runs, "dla")],
                [str(extra(run, "chosen")) for run in _of(runs, "auto")],
                [str(extra(run, "verdict")) for run in _of(runs, "auto")],
            )
        )
    return rows


COLUMNS = (*HEADINGS.values(), "DLA − naive", "lead, in errors", "auto took", "diagnose")


def scenario_table(results: Results) -> Table:
    """Each log with what every method reaches."""
    rows = [Row(row.title, tuple(row.cells())) for row in scenario_rows(results)]
    words = ("log", "auto took", "diagnose")
    return Table(COLUMNS, tuple(rows), corner="log", words=words, remark=note(results))


def note(results: Results) -> str:
    """What the numbers are."""
    seeds = len(results.settings["seeds"])
    return (
        f"nDCG@10 on test queries, mean ± standard deviation over {seeds} "
        f"seed{'s' * (seeds != 1)}. The lead is how much better dual learning predicts held-out "
        "clicks than the naive ranker, in standard errors; above 2 it is taken for clear."
    )


def scenario_figure(results: Results) -> Figure:
    """What each method gains over naive training: seeds as faint dots, the mean a strong one."""
    rows = scenario_rows(results)
    figure, (ax,) = new_figure(1, height=1.2 + 0.5 * len(rows), width=7.0)
    ax.axvline(0, color=LIGHT["muted"], lw=0.8, zorder=1)
    for method, (color, marker, place) in LOOKS.items():
        for number, row in enumerate(reversed(rows)):
            gains, y = np.array(row.gains(method)), number + place
            seeds = np.full(len(gains), y)
            ax.plot(gains, seeds, "o", color=LIGHT[color], ms=4, alpha=0.3, mew=0, zorder=2)
            label = HEADINGS[method] if number == 0 else None
            ax.plot(
                [gains.mean()],
                [y],
                marker,
                color=LIGHT[color],
                ms=10 if marker == "*" else 7.5,
                ls="",
                label=label,
                zorder=4,
                **EDGE,
            )
    ax.set_yticks(range(len(rows)), [row.title for row in reversed(rows)])
    ax.tick_params(axis="y", labelcolor=LIGHT["ink"])
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.margins(x=0.06)
    ax.grid(visible=False, axis="y")
    ax.grid(axis="x", color=LIGHT["line"], lw=0.8)
    ax.spines["bottom"].set_visible(False)
    ax.locator_params(axis="x", nbins=9, steps=[1, 2, 5, 10])
    ax.xaxis.set_major_formatter(lambda value, _: _signed(f"{value:+.2g}") if value else "naive")
    ax.legend(loc="upper left", **LEGEND)
    title(ax, "nDCG@10 on test queries, over naive training", whole_figure=True)
    return figure


def scenario_verdict(results: Results) -> list[str]:
    """The findings in sentences."""
    rows = scenario_rows(results)
    worst = min(rows, key=lambda row: float(np.mean(row.gains("auto"))))
    least = float(np.mean(worst.gains("auto")))
    lost = [row for row in rows if row.is_lost]
    unwarned = [row.title for row in lost if not row.is_warned_of]
    needless = [row.title for row in rows if np.mean(row.gains()) > 0 and row.is_warned_of]
    sentences = [
        f"Auto ends {_signed(f'{least:+.4f}')} nDCG@10 against naive training where it ends worst "
        f"({worst.title}).",
        f"Dual learning loses by more than {MATTERS} in {len(lost)} of {len(rows)} scenarios"
        + (f": {'; '.join(row.title for row in lost)}." if lost else "."),
    ]
    if lost:
        sentences.append(
            f"Diagnose does not warn of {'; '.join(unwarned)}."
            if unwarned
            else "Diagnose warns of each of them."
        )
    sentences.append(
        f"It warns, though dual learning gains, of {'; '.join(needless)}."
        if needless
        else "It finds every log on which dual learning gains fit for it."
    )
    return sentences


def scenario_sheet(results: Results) -> Sheet:
    """What is shown of the scenarios."""
    settings = results.settings
    seeds = len(settings["seeds"])
    exhibit = Exhibit(
        "scenarios",
        partial(scenario_figure, results),
        "What each way of training gains over the naive ranker of the same log, which is the line "
        "at 0. Faint dots are seeds, strong ones their mean. IPW, truth has the curve that "
        "shuffling would measure.",
        wide=True,
    )
    shown = {k: v for k, v in settings.items() if k not in ("scenarios", "command", "version")}
    return Sheet(
        "Where dual learning is right, and where it is not",
        summary=f"{settings['data']} · {seeds} seed{'s' * (seeds != 1)}",
        verdict=scenario_verdict(results),
        sections=(
            Section("What is gained over naive training", exhibits=(exhibit,)),
            Section("Results", table=scenario_table(results), file="table.md"),
        ),
        explanations=(
            Explanation("The rows", _ROWS),
            Explanation("What this does not show", _CAVEAT),
        ),
        settings=shown,
        version=settings["version"],
        command=settings.get("command", ""),
    )


def write_scenarios(results: Results, directory: Path) -> list[Path]:
    """Write `results.json`, `table.md`, the figure and `report.html`."""
    results.write(directory / "results.json")
    return [directory / "results.json", *scenario_sheet(results).write(directory)]


def _of(runs: list[Run], method: str) -> list[Run]:
    return sorted((run for run in runs if run.method == method), key=lambda run: run.seed)


def _mean_and_spread(values: list[float]) -> str:
    spread = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.4f}{spread}"


def _signed(number: str) -> str:
    """With the sign that typography has for it."""
    return number.replace("-", "−")


def _counted(words: list[str]) -> str:
    counts = {word: words.count(word) for word in dict.fromkeys(words)}
    if len(counts) == 1:
        return words[0]
    return ", ".join(f"{word} ({count})" for word, count in counts.items())
