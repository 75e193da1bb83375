"""Drift: users change while the ranker is being trained on the stream of their clicks.

The severity η of the position bias jumps at one moment and later goes back slowly. Dual learning
sees only clicks and follows; the propensities of RandList were measured before the jump and do
not. What each method believes, and how well it ranks, is recorded all along, and shown over time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

import dualrank as dr
from dualrank import report
from dualrank.clicks import Independent, PositionBasedUser
from dualrank.data import RankedLists
from dualrank.errors import SettingsError
from dualrank.evaluation import PAPER_METRICS, Evaluator
from dualrank.learning import Loop, Progress
from dualrank.propensity import Propensity
from dualrank.rankers import Batch
from dualrank.report import Results, Run, Sheet
from dualrank.reproduce.comparison_with_dla import compare_with_dla
from dualrank.reproduce.experiment import Task, Trained
from dualrank.reproduce.findings import POSITION_BASED, over_how_many_seeds
from dualrank.reproduce.simulation import Simulation, SimulationExperiment, simulation_of
from dualrank.reproduce.table_2_rows import (
    Hyperparameters,
    Users,
    judge,
    measure_by_randomisation,
    preset_of,
    true_examination,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METHODS = {"dla": "dla", "naive": "naive", "randlist": "ipw"}
"""Each row, and the method of `dualrank.fit` that trains it."""
METRIC = "ndcg@10"
MOMENTS = 40
SESSIONS_PER_LIST = 64
LEARNING_RATE, PROPENSITY_RATE = 0.05, 5.0
SHOWN_POSITIONS = (2, 4, 7, 10)
GOAL = 0.1

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Severity:
    """η over the training, whose length is 1: a jump, a plateau, and a slow way back."""

    before: float = 0.5
    after: float = 1.5
    jump: float = 0.4
    ramp: tuple[float, float] = (0.7, 0.9)

    def at(self, moment: float) -> float:
        """η at a moment between 0 and 1."""
        if moment < self.jump:
            return self.before
        back = (moment - self.ramp[0]) / (self.ramp[1] - self.ramp[0])
        return self.after + (self.before - self.after) * min(max(back, 0.0), 1.0)

    def user_at(self, moment: float) -> PositionBasedUser:
        """Who clicks at that moment."""
        return PositionBasedUser(eta=self.at(moment))

    @property
    def moments(self) -> dict[str, float]:
        """The moments that are spoken about."""
        return {
            "before the jump": self.jump,
            "a tenth of the training later": self.jump + 0.1,
            "before the way back": self.ramp[0],
            "at the end": 1.0,
        }


@dataclass(frozen=True, kw_only=True)
class Drift(SimulationExperiment):
    """Users change during training: the severity jumps, stays, and goes back slowly.

    Dual learning follows the clicks; propensities measured before the jump do not. Weights and
    ranking quality are recorded all along.

    Example: dualrank reproduce drift --seeds 5
    """

    name = "drift"
    title = "Learning to rank from biased clicks while users change"

    before: Annotated[float, "The severity at first.", {"min": 0}] = 0.5
    after: Annotated[float, "The severity after the jump.", {"min": 0}] = 1.5
    steps: Annotated[int | None, "Training steps.", {"min": 1}] = None
    learning_rate: Annotated[float, "The ranker's rate."] = LEARNING_RATE
    propensity_rate: Annotated[float, "The propensity model's rate."] = PROPENSITY_RATE
    sessions_per_list: Annotated[
        int, "Users who look at a list each time it is drawn.", {"min": 1}
    ] = SESSIONS_PER_LIST

    def __post_init__(self) -> None:
        super().__post_init__()
        steps = self.hyperparameters.training.suited().steps
        if steps % MOMENTS:
            raise SettingsError(
                f"drift is recorded at {MOMENTS} moments, so steps are a multiple of {MOMENTS}, "
                f"not {steps}"
            )

    @property
    def severity(self) -> Severity:
        """How the severity goes."""
        return Severity(self.before, self.after)

    @cached_property
    def hyperparameters(self) -> Hyperparameters:
        """Those of the preset, for a stream.

        Rates are constant, as the stream has no end that they could fall towards. What the ranker
        learns while φ is still wrong, it has to unlearn, and takes φ with it on the way; therefore
        φ moves a hundred times as fast. So fast a φ is noisy, and has little noise only where many
        users look at each list. The ranker is smaller than the preset's, which changes little
        and takes half the time.
        """
        chosen = preset_of(self.preset)
        chosen = chosen.with_training(
            steps=self.steps or chosen.training.suited().steps // MOMENTS * MOMENTS,
            schedule="constant",
            learning_rate=self.learning_rate,
            propensity_rate=self.propensity_rate,
        )
        ranker = dr.DNN(chosen.ranker.hidden[-1:])
        return replace(chosen, ranker=ranker, sessions_per_list=self.sessions_per_list)

    def tasks(self) -> list[Task]:
        """One per seed and method."""
        return [Task(self, method, seed) for seed in self.all_seeds for method in METHODS]

    def work(self, task: Task, progress: Progress) -> list[Trained]:
        """Train one method on the stream of one seed."""
        started = time.perf_counter()
        simulation = simulation_of(self.collection, task.seed)
        chosen = self.hyperparameters.with_training(seed=task.seed)
        measured = None
        if task.method == "randlist":
            user = self.severity.user_at(0)
            measured = measure_by_randomisation(simulation, Users(user, user), chosen)
        clicks = ChangingClicks(
            simulation, self.severity, chosen.training.suited().steps, self.sessions_per_list
        )
        record = Record(clicks, simulation, self.severity)
        dr.fit(
            clicks,
            simulation.train,
            method=METHODS[task.method],
            ranker=chosen.ranker,
            propensity=measured,
            validation=0,
            scaling="none",
            settings=chosen.training,
            watch=record,
            progress=progress,
        )
        return [
            Trained.of(
                task.method,
                task.seed,
                record.settled,
                seconds=time.perf_counter() - started,
                sizes=simulation.sizes,
                propensity=record.believed_when_settled(),
                drift=record.rows,
            )
        ]

    def settings(self, trained: Sequence[Trained]) -> dict[str, Any]:
        """The data, the training and how users change."""
        severity, training = self.severity, self.hyperparameters.training
        return {
            **super().settings(trained),
            **self.hyperparameters.describe(),
            "sessions": training.suited().steps * training.batch_size * self.sessions_per_list,
            "eta_before": severity.before,
            "eta_after": severity.after,
            "jump": severity.jump,
            "ramp": list(severity.ramp),
            "metrics_at": "the end of the time at eta_after, before the way back",
            "epsilon": severity.user_at(0).epsilon,
            "true_examination": true_examination(severity.user_at(severity.jump)),
        }

    def significance(self, trained: Sequence[Trained]) -> dict[str, Any]:
        """Every method against dual learning, at the end of the plateau."""
        return compare_with_dla(trained, pool=self.collection.new_for_every_seed)

    def sheet(self, results: dict[str, Results]) -> Sheet:
        """The table of the plateau's end, then the moments that are spoken about, and the time."""
        found = results["results"]
        over_time = Streams.of_methods(found)
        return report.results_sheet(
            found,
            self.title,
            verdict=[*verdict(over_time, self.severity), over_how_many_seeds(found)],
            exhibits=exhibits(found, over_time, self.severity),
            sections=[
                report.Section(
                    "Moments", table=moments_table(over_time, self.severity), file="table.md"
                )
            ],
            caveat=POSITION_BASED,
        )


class ChangingClicks:
    """Simulated clicks of users whose severity changes with every batch that is drawn."""

    def __init__(
        self, simulation: Simulation, severity: Severity, steps: int, sessions: int
    ) -> None:
        self.lists: RankedLists = simulation.lists
        self.steps, self.drawn = steps, 0
        self._severity, self._sessions = severity, sessions
        grades = self.lists.gather(simulation.train.require_grades())
        everything = PositionBasedUser(eta=0)
        self._relevance = everything.browse(grades, self.lists.mask, simulation.train.max_grade)

    def draw(self, size: int, rng: np.random.Generator) -> Batch:
        """Draw lists uniformly and let the users of the moment look at each."""
        user = self._severity.user_at(self.drawn / self.steps)
        self.drawn += 1
        chosen = rng.integers(len(self.lists), size=size)
        examination = user.examination(self.lists.depth)
        pages = Independent(self._relevance.take(chosen).attraction * examination)
        clicks = pages.sample_counts(self._sessions, rng)
        clicked = clicks.any(axis=1)
        labels = (clicks[clicked] / self._sessions).astype(np.float32)
        return Batch(self.lists.documents[chosen[clicked]], labels, size)


class Record:
    """What is believed and how well is ranked, as training goes on; watches the loop.

    `rows` has the means since the moment before; `settled` are the metrics of every test query at
    the end of the plateau.
    """

    def __init__(self, clicks: ChangingClicks, simulation: Simulation, severity: Severity) -> None:
        self.rows: dict[str, list[Any]] = {"moment": [], "eta": [], "examination": [], METRIC: []}
        self.settled: dict[str, Floats] = {}
        self._steps, self._severity = clicks.steps, severity
        self._features = simulation.test.features
        self._evaluate = Evaluator(simulation.test, PAPER_METRICS)
        self._etas: list[float] = []
        self._believed: list[Floats] = []

    def __call__(self, step: int, loop: Loop) -> None:
        """After each step."""
        self._etas.append(self._severity.at((step - 1) / self._steps))
        if (propensity := loop.correction.propensity()) is not None:
            self._believed.append(np.log(propensity.examination))
        if step % (self._steps // MOMENTS):
            return
        per_query = self._evaluate.per_query(loop.ranker.predict(self._features))
        mean = np.exp(np.mean(self._believed, axis=0)).tolist() if self._believed else None
        row = (step / self._steps, np.mean(self._etas), mean, per_query[METRIC].mean())
        for values, value in zip(self.rows.values(), row, strict=True):
            values.append(float(value) if isinstance(value, float) else value)
        if step == round(self._severity.ramp[0] * self._steps):
            self.settled = per_query
        self._etas.clear()
        self._believed.clear()

    def believed_when_settled(self) -> Any:
        """The curve at the end of the plateau, with its error; None where none is believed."""
        curve = self.rows["examination"][round(self._severity.ramp[0] * MOMENTS) - 1]
        user = self._severity.user_at(self._severity.jump)
        return None if curve is None else judge(Propensity.of(curve), user.examination(len(curve)))


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
        records: list[Any] = [report.extra(run, "drift") for run in runs]
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

    @classmethod
    def of_methods(cls, results: Results) -> dict[str, Streams]:
        """Those of each method."""
        return {name: cls.of(results.of(name)) for name in report.ordered_methods(results)}

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


def verdict(found: dict[str, Streams], severity: Severity) -> list[str]:
    """The findings in sentences."""
    sentences = []
    for name, who in {"dla": "DLA's weights", "randlist": "the weights of RandList"}.items():
        if name not in found:
            continue
        stream, worst = found[name], found[name].largest_errors
        settled = stream.at(severity.ramp[0])
        sentences.append(
            f"A tenth of the training after η jumped from {severity.before:g} to "
            f"{severity.after:g}, {who} are within "
            f"{_percent(worst[:, stream.at(severity.jump + 0.1)])} of the true ones at every "
            f"position; before the way back within {_percent(worst[:, settled])}, and on it within "
            f"{_percent(worst[:, settled + 1 :].max(axis=1))}."
        )
    for name, stream in found.items():
        values = [
            f"{stream.quality[:, stream.at(moment)].mean():.3f} {when}"
            for when, moment in severity.moments.items()
        ]
        what = f"{report.method(name).label}: {report.metric_label(METRIC)}"
        sentences.append(f"{what} {', '.join(values)}.")
    return [*sentences, f"The table is of the last moment at η = {severity.after:g}."]


def moments_table(found: dict[str, Streams], severity: Severity) -> report.Table:
    """The moments that are spoken about."""
    believing = {name: stream for name, stream in found.items() if stream.errors is not None}
    columns = [f"{report.metric_label(METRIC)}, {report.method(name).label}" for name in found]
    columns += [f"weights off by, {report.method(name).label}" for name in believing]
    rows = []
    for moment, when in severity.moments.items():
        cells = [
            report.Cell.of(stream.quality[:, stream.at(when)].tolist()) for stream in found.values()
        ]
        for stream in believing.values():
            worst = 100 * stream.largest_errors[:, stream.at(when)]
            cells.append(report.Cell.of(worst.tolist(), decimals=1, unit=" %"))
        rows.append(report.Row(moment, tuple(cells)))
    remark = "A seed's weights are off by the largest relative error over positions."
    return report.Table(tuple(columns), tuple(rows), corner="Moment", remark=remark)


def exhibits(
    results: Results, found: dict[str, Streams], severity: Severity
) -> list[report.Exhibit]:
    """Weights, their error and ranking quality over time."""
    band, sessions = report.band_caption(results), float(results.settings["sessions"])
    believing = {name: stream for name, stream in found.items() if stream.weights is not None}
    return [
        report.Exhibit(
            "drift-weight",
            partial(weight_figure, believing, severity, sessions),
            "How much a click counts at some positions while users change: believed by each "
            "method, and the truth as a wide pale line." + band,
        ),
        report.Exhibit(
            "drift-error",
            partial(error_figure, believing, sessions),
            "By how much the weight that is most wrong is off; the dotted line is 10%." + band,
        ),
        report.Exhibit(
            "drift-quality",
            partial(quality_figure, found, severity, sessions),
            "How well each method ranks test queries; in the shaded time the bias is the stronger "
            "one." + band,
        ),
    ]


def weight_figure(found: dict[str, Streams], severity: Severity, sessions: float) -> Figure | None:
    """The weight of a click at some positions as training goes on, learned and true."""
    lines = {}
    for name, stream in found.items():
        assert stream.weights is not None
        shown = [position for position in SHOWN_POSITIONS if position <= stream.weights.shape[2]]
        curves = {p: report.over_seeds(stream.weights[:, :, p - 1], log=True) for p in shown}
        lines[name] = stream.moments * sessions, curves

    def axes(ax: Axes) -> None:
        for name, (x, curves) in lines.items():
            for position in list(curves)[:-1]:
                report.method_line(ax, name, x, *curves[position], marks=False)
        stream = next(iter(found.values()))
        x, row = stream.moments * sessions, stream.at(severity.ramp[0])
        for position in curves:
            truth = stream.truth[:, position - 1]
            # Wide and pale below the others: where an estimate is right, it still shows.
            ax.plot(x, truth, color=report.LIGHT["ink"], lw=6, alpha=0.2, zorder=1)
            ax.annotate(
                f"position {position}",
                (x[row], truth[row]),
                xytext=(-2, 6),
                textcoords="offset points",
                ha="right",
                color=report.LIGHT["muted"],
                fontsize=report.TEXT - 1,
            )
        report.log_scale(ax)
        _time_axis(ax)

    last = {name: (x, list(curves.values())[-1]) for name, (x, curves) in lines.items()}
    heading = "Inverse propensity weight (log scale)"
    return report.lines_figure(last, heading, "sessions", axes, marks=False)


def error_figure(found: dict[str, Streams], sessions: float) -> Figure | None:
    """The largest relative error of the weights over positions, as training goes on."""

    def axes(ax: Axes) -> None:
        ax.axhline(GOAL, color=report.LIGHT["muted"], lw=0.8, ls=(0, (2, 3)))
        ax.set_yscale("log")
        ax.minorticks_off()
        ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
        _time_axis(ax)

    lines = {
        name: (stream.moments * sessions, report.over_seeds(stream.largest_errors, log=True))
        for name, stream in found.items()
    }
    heading = "Largest error of a weight (log scale)"
    return report.lines_figure(lines, heading, "sessions", axes, marks=False)


def quality_figure(found: dict[str, Streams], severity: Severity, sessions: float) -> Figure | None:
    """Ranking quality on test queries as training goes on."""

    def axes(ax: Axes) -> None:
        plateau = severity.jump * sessions, severity.ramp[0] * sessions
        ax.axvspan(*plateau, color=report.LIGHT["ink"], alpha=0.06, lw=0)
        _time_axis(ax)

    lines = {
        name: (stream.moments * sessions, report.over_seeds(stream.quality))
        for name, stream in found.items()
    }
    heading = f"{report.metric_label(METRIC)} on test queries"
    return report.lines_figure(lines, heading, "sessions", axes, marks=False)


def _time_axis(ax: Axes) -> None:
    report.few_ticks(ax, "x")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value / 1e6:g} M" if value else "0")


def _percent(of_seeds: Floats) -> str:
    """A mean over seeds, and the worst of them."""
    worst = f" (worst seed {100 * of_seeds.max():.1f}%)" if len(of_seeds) > 1 else ""
    return f"{100 * of_seeds.mean():.1f}%{worst}"
