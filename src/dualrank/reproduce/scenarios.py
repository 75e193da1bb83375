"""Where dual learning is right and where it is not: logs of several rankers and several users.

The paper's simulation has one logging ranker, a weak one, and users who keep to the position-based
assumption. Each scenario changes one thing. Every ranker is trained from a log as a user would
train it, with clicks held out and no judgement seen. Each scenario is shown as a row, with what
every method reaches and what diagnose says.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

import dualrank as dr
from dualrank import report
from dualrank.diagnostics import JOINT
from dualrank.errors import SettingsError
from dualrank.learning import Plan, Progress, candidates, choose, part_of
from dualrank.report import Results, Sheet
from dualrank.reproduce.experiment import Task, Trained, require_known
from dualrank.reproduce.scenario_logs import SCENARIOS, scenario_data
from dualrank.reproduce.scenario_rankers import RANKER
from dualrank.reproduce.simulation import SimulationExperiment
from dualrank.reproduce.table_2_rows import judge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METRIC = "ndcg@10"
METRICS = [METRIC, "err@10"]
STEPS = 2_000
HELD_OUT = 0.2
HEADINGS = {"naive": "naive", "truth": "IPW, truth", "dla": "DLA", "auto": "auto"}
# Colour, marker and place within the row; what auto took lies on top of something else.
LOOKS = {
    "truth": ("purple", "d", 0.22),
    "dla": ("blue", "o", 0.0),
    "auto": ("orange", "*", -0.22),
}
# A loss of dual learning that one would want to be warned of.
MATTERS = 0.005
_ROWS = Markup(
    "Each row is a log of some ranker and some users; one thing is changed at a time. All rankers "
    "learn from clicks alone, with a share of the queries held out; grades are looked at only for "
    "this table. <i>Auto</i> trains the naive ranker and every correction that the log allows, and "
    "takes a correction only where it predicts the held-out clicks clearly better and nothing "
    "speaks against weights by position. <i>Diagnose</i> sees the log and the features, and no "
    "ranker of this table."
)


@dataclass(frozen=True, kw_only=True)
class Scenarios(SimulationExperiment):
    """Logs on which dual learning is right, and on which it is not.

    Each scenario is a log of some ranker and some users. Rankers are trained on it without
    correction, with the true propensities, by dual learning, and by auto, which chooses; and
    diagnose is asked what it makes of the log.

    Example: dualrank reproduce scenarios --seeds 3 --only initial-ranker,network-logger
    """

    name = "scenarios"
    title = "Where dual learning is right, and where it is not"

    only: Annotated[tuple[str, ...] | None, "Only these scenarios, separated by commas.", ","] = (
        field(default=None, repr=False)
    )
    steps: Annotated[int, "Training steps.", {"min": 1}] = STEPS

    def __post_init__(self) -> None:
        super().__post_init__()
        require_known("scenario", self.names, list(SCENARIOS))
        if not self.names:
            raise SettingsError("an experiment needs at least one scenario")

    @property
    def names(self) -> tuple[str, ...]:
        """The scenarios that are asked for."""
        return tuple(SCENARIOS) if self.only is None else self.only

    def tasks(self) -> list[Task]:
        """One per seed and scenario, in which all methods learn from the same log."""
        return [
            Task(self, "all", seed, {"scenario": name})
            for seed in self.all_seeds
            for name in self.names
        ]

    def work(self, task: Task, progress: Progress) -> list[Trained]:
        """Train all that `auto` would train, and with the truth; choose as `auto` does."""
        data = scenario_data(task.setting["scenario"], self.collection, task.seed)
        settings = dr.TrainingSettings(steps=self.steps, seed=task.seed)
        plan = Plan(method="auto", ranker=RANKER, settings=settings, validation=HELD_OUT)
        tried, _ = candidates(data.log, plan)
        plans = {**tried, "truth": plan.for_method("ipw", data.truth)}
        models, seconds = {}, {}
        for number, (name, each) in enumerate(plans.items()):
            started = time.perf_counter()
            part = part_of(progress, number, len(plans))
            models[name] = dr.fit(data.log, data.train, each, progress=part)
            seconds[name] = time.perf_counter() - started
        choice = choose({name: models[name] for name in tried}, data.log, data.train, plan)
        diagnosis = dr.diagnose(data.log, data.train, seed=task.seed)
        models["auto"] = models[choice.chosen]
        seconds["auto"] = sum(seconds[name] for name in tried)
        further: dict[str, dict[str, Any]] = {
            "dla": {"lead": choice.leads["dla"].in_errors},
            "auto": {
                "chosen": choice.chosen,
                "why": choice.why,
                "verdict": diagnosis.verdict,
                "diagnosis": {point.name: point.status for point in diagnosis.points},
            },
        }
        return [
            Trained.of(
                name,
                task.seed,
                dr.evaluate_per_query(model.predict(data.test), data.test, METRICS),
                seconds=seconds[name],
                propensity=judge(model.propensity, data.truth.examination),
                **task.setting,
                **further.get(name, {}),
            )
            for name, model in models.items()
        ]

    def settings(self, trained: Sequence[Trained]) -> dict[str, Any]:
        """The data, the training and what the scenarios are."""
        return {
            **super().settings(trained),
            "ranker": "DNN " + "-".join(map(str, RANKER.hidden)),
            "steps": self.steps,
            "held_out": HELD_OUT,
            "scenarios": {name: SCENARIOS[name].title for name in self.names},
        }

    def sheet(self, results: dict[str, Results]) -> Sheet:
        """What is gained over naive training, and the table."""
        found = results["results"]
        settings, rows = found.settings, scenario_rows(found)
        seeds = len(settings["seeds"])
        exhibit = report.Exhibit(
            "scenarios",
            partial(gains_figure, rows),
            "What each way of training gains over the naive ranker of the same log, which is the "
            "line at 0. Faint dots are seeds, strong ones their mean. IPW, truth has the curve "
            "that shuffling would measure.",
            wide=True,
        )
        return Sheet(
            self.title,
            summary=f"{settings['data']} · {seeds} seed{'s' * (seeds != 1)}",
            verdict=verdict(rows),
            sections=(
                report.Section("What is gained over naive training", exhibits=(exhibit,)),
                report.Section("Results", table=scenario_table(rows, seeds), file="table.md"),
            ),
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


@dataclass(frozen=True)
class ScenarioRow:
    """One scenario over its seeds."""

    title: str
    values: dict[str, list[float]]
    leads: list[float]
    chosen: list[str]
    verdicts: list[str]

    def gains(self, method: str = "dla") -> NDArray[np.float64]:
        """By how much a method is above the naive ranker, seed by seed."""
        return np.array(self.values[method]) - np.array(self.values["naive"])

    @property
    def is_lost(self) -> bool:
        """Whether dual learning loses to the naive ranker by what matters, in the mean."""
        return bool(self.gains().mean() < -MATTERS)

    @property
    def is_warned_of(self) -> bool:
        """Whether diagnose spoke against joint learning, with every seed."""
        return JOINT not in self.verdicts

    @property
    def row(self) -> report.Row:
        """As the table shows it."""
        lead = f"{np.mean(self.leads):+.1f} ({min(self.leads):+.1f} to {max(self.leads):+.1f})"
        cells: tuple[report.Cell | str, ...] = (
            *(report.Cell.of(self.values[name], decimals=4) for name in HEADINGS),
            _signed(f"{self.gains().mean():+.4f}"),
            _signed(lead),
            _counted(self.chosen),
            _counted(self.verdicts),
        )
        return report.Row(self.title, cells)


def scenario_rows(results: Results) -> list[ScenarioRow]:
    """The runs of each scenario, in order."""
    rows = []
    for scenario in dict.fromkeys(str(report.extra(run, "scenario")) for run in results.runs):
        runs = {
            name: [run for run in results.of(name) if report.extra(run, "scenario") == scenario]
            for name in HEADINGS
        }
        rows.append(
            ScenarioRow(
                SCENARIOS[scenario].title,
                {name: [run.metrics[METRIC] for run in found] for name, found in runs.items()},
                [float(str(report.extra(run, "lead"))) for run in runs["dla"]],
                [str(report.extra(run, "chosen")) for run in runs["auto"]],
                [str(report.extra(run, "verdict")) for run in runs["auto"]],
            )
        )
    return rows


def scenario_table(rows: Sequence[ScenarioRow], seeds: int) -> report.Table:
    """Each log with what every method reaches."""
    remark = (
        f"nDCG@10 on test queries, over {seeds} seed{'s' * (seeds != 1)}. The lead is how much "
        "better dual learning predicts held-out clicks than the naive ranker, in standard errors; "
        "above 2 it is taken for clear."
    )
    columns = (*HEADINGS.values(), "DLA − naive", "lead, in errors", "auto took", "diagnose")
    words = ("log", "auto took", "diagnose")
    return report.Table(
        columns, tuple(row.row for row in rows), corner="log", words=words, remark=remark
    )


def gains_figure(rows: Sequence[ScenarioRow]) -> Figure:
    """What each method gains over naive training: seeds as faint dots, the mean a strong one."""
    figure, (ax,) = report.new_figure(1, height=1.2 + 0.5 * len(rows), width=7.0)
    ax.axvline(0, color=report.LIGHT["muted"], lw=0.8, zorder=1)
    for method, (color, marker, place) in LOOKS.items():
        for number, row in enumerate(reversed(rows)):
            gains, y = row.gains(method), number + place
            seeds = np.full(len(gains), y)
            ax.plot(gains, seeds, "o", color=report.LIGHT[color], ms=4, alpha=0.3, mew=0, zorder=2)
            ax.plot(
                [gains.mean()],
                [y],
                marker,
                color=report.LIGHT[color],
                ms=10 if marker == "*" else 7.5,
                ls="",
                label=HEADINGS[method] if number == 0 else None,
                zorder=4,
                **report.EDGE,
            )
    report.name_rows(ax, [row.title for row in reversed(rows)])
    ax.locator_params(axis="x", nbins=9, steps=[1, 2, 5, 10])
    ax.xaxis.set_major_formatter(lambda value, _: _signed(f"{value:+.2g}") if value else "naive")
    ax.legend(loc="upper left", **report.LEGEND)
    report.title(ax, "nDCG@10 on test queries, over naive training", whole_figure=True)
    return figure


def verdict(rows: Sequence[ScenarioRow]) -> list[str]:
    """The findings in sentences."""
    worst = min(rows, key=lambda row: row.gains("auto").mean())
    least = f"{worst.gains('auto').mean():+.4f}"
    lost = [row for row in rows if row.is_lost]
    unwarned = [row.title for row in lost if not row.is_warned_of]
    needless = [row.title for row in rows if row.gains().mean() > 0 and row.is_warned_of]
    sentences = [
        f"Auto ends {_signed(least)} nDCG@10 against naive training where it ends worst "
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
        f"Diagnose warns, though dual learning gains, of {'; '.join(needless)}."
        if needless
        else "Diagnose finds every log on which dual learning gains fit for it."
    )
    return sentences


def _signed(number: str) -> str:
    """With the sign that typography has for it."""
    return number.replace("-", "−")


def _counted(words: list[str]) -> str:
    counts = {word: words.count(word) for word in dict.fromkeys(words)}
    if len(counts) == 1:
        return words[0]
    return ", ".join(f"{word} ({count})" for word, count in counts.items())
