"""Every method on every scenario: what each way to learn from clicks is worth, and where.

Rankers are trained from a log as a user would train them, with clicks held out and no judgement
seen. All methods of a task learn from the same log. A new method needs no line here: what stands in
`dualrank.learning.METHODS` and needs nothing but a log is a column. Beside these stand the logging
ranker itself (`initial`) and inverse propensity weighting with the curve that shuffling would
measure (`truth`). Where the log has a column that tells crowds of users apart, methods that take a
context learn with it once more, as `NAME by COLUMN`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

import dualrank as dr
from dualrank import report
from dualrank.data import PUBLIC_SETS, Dataset, top_lists
from dualrank.errors import DataError, SettingsError
from dualrank.learning import METHODS, Model, Plan, Progress, fit_best, part_of
from dualrank.propensity import Propensity
from dualrank.report import Results, Sheet
from dualrank.reproduce.collection import TEXTS, Collection
from dualrank.reproduce.comparison_with_dla import compare_with
from dualrank.reproduce.experiment import Task, Trained, require_known
from dualrank.reproduce.method_comparison_sheet import (
    METRIC,
    REFERENCES,
    SHOWN,
    USUAL,
    comparison_sheet,
    log_of,
)
from dualrank.reproduce.scenario_logs import SCENARIOS, ScenarioData, scenario_data
from dualrank.reproduce.scenario_rankers import RANKER
from dualrank.reproduce.simulation import SimulationExperiment
from dualrank.reproduce.table_2_rows import judge

METRICS = [METRIC, "err@10"]
STEPS = 2_000
HELD_OUT = 0.2
PERMUTATIONS = 10_000

_YARDSTICKS, _CHOICE = ("initial", "naive", "truth", "dla"), "auto"
COMPARED = (
    *_YARDSTICKS,
    *(n for n, way in METHODS.items() if not way.needs and n not in (*_YARDSTICKS, _CHOICE)),
    _CHOICE,
)
"""What methods are compared with, all that learn from nothing but a log, and the choice of auto."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Methods(SimulationExperiment):
    """Every method on logs of many kinds of rankers and users.

    Each scenario is a log of some ranker and some users, on generated data or on the features of
    public collections. All methods learn from the same log, as a user would train them. With auto
    among them, diagnose is asked what it makes of the log.

    Example: dualrank reproduce methods --methods naive,dla,likelihood,auto --seeds 3

    Example: dualrank reproduce methods --data mq2007,mq2008,msrd-movies,stanford-web --root DATA
    """

    name = "methods"
    title = "Every method on every log"

    methods: Annotated[tuple[str, ...], "Only these methods, separated by commas.", ","] = COMPARED
    scenarios: Annotated[
        tuple[str, ...] | None,
        "Only these scenarios, separated by commas. (On public collections: initial-ranker.)",
        ",",
    ] = field(default=None, repr=False)
    data: Annotated[
        tuple[str, ...] | None,
        "Public collections (mq2007, mq2008, msrd-movies, stanford-web, …), separated by commas; "
        "without them data are generated.",
        ",",
    ] = field(default=None, repr=False)
    root: Annotated[
        Path | None, "The folder above the public collections.", {"envvar": "DUALRANK_DATA"}
    ] = None
    steps: Annotated[int, "Training steps.", {"min": 1}] = STEPS

    def __post_init__(self) -> None:
        super().__post_init__()
        require_known("method", self.methods, COMPARED)
        require_known("scenario", self.logs, list(SCENARIOS))
        require_known("collection", self.data or (), [*PUBLIC_SETS, *TEXTS])
        if not self.methods or not self.logs:
            raise SettingsError("an experiment needs at least one scenario and one method")
        if self.data and self.root is None:
            raise SettingsError("data='NAME' needs root='FOLDER', where the public collections lie")
        for name in self.data or ():
            self.collection_of(name).check_seeds(self.all_seeds)

    @property
    def logs(self) -> tuple[str, ...]:
        """The scenarios that are asked for."""
        if self.scenarios is not None:
            return self.scenarios
        return (USUAL,) if self.data else tuple(SCENARIOS)

    def collection_of(self, data: str | None) -> Collection:
        """Generated data, or the public collection of that name, every seed another fold."""
        if data is None:
            return self.collection
        folds = PUBLIC_SETS[data].folds if data in PUBLIC_SETS else 1
        return Collection(data, self.root, 1 if folds == 1 else None)

    def tasks(self) -> list[Task]:
        """One per seed and log, from which all methods learn."""
        return [
            Task(
                self, "all", seed, {"data": data, "scenario": name} if data else {"scenario": name}
            )
            for seed in self.all_seeds
            for data in self.data or (None,)
            for name in self.logs
        ]

    def work(self, task: Task, progress: Progress) -> list[Trained]:
        """Train every method on one log; what cannot learn from this log is left out."""
        collection = self.collection_of(task.setting.get("data"))
        data = scenario_data(task.setting["scenario"], collection, task.seed)
        plans, trained = self.plans(data, task.seed), []
        known: dict[str, Model] = {}
        order = ["initial", *plans]
        if _CHOICE in plans:
            # What auto trains on the way need not be trained again.
            plans = {_CHOICE: plans.pop(_CHOICE), **plans}
        if "initial" in self.methods and data.logged is not None:
            trained.append(_judged("initial", task, data, data.logged, 0.0))
        for number, (name, plan) in enumerate(plans.items()):
            started = time.perf_counter()
            part = part_of(progress, number, len(plans))
            try:
                if name == _CHOICE:
                    model, known = fit_best(data.log, data.train, plan, progress=part)
                elif _is_trained(plan, known.get(plan.way.name)):
                    model = known[plan.way.name]
                else:
                    model = dr.fit(data.log, data.train, plan, progress=part)
            except DataError as error:
                logger.warning("%s (%s): %s", name, task, error)
                continue
            seconds = time.perf_counter() - started
            more: dict[str, Any] = {"propensity": judge(model.propensity, data.truth.examination)}
            if model.propensity is not None:
                more["curve_error"] = curve_error(model.propensity, data.truth)
            if "auto" in model.training:
                more |= _choice(model)
            if name == _CHOICE:
                diagnosis = dr.diagnose(data.log, data.train, seed=task.seed)
                more["verdict"] = diagnosis.verdict
                more["diagnosis"] = {point.name: point.status for point in diagnosis.points}
            scores = model.predict(data.test)
            trained.append(_judged(name, task, data, scores, seconds, **more))
        return sorted(trained, key=lambda each: order.index(each.run.method))

    def plans(self, data: ScenarioData, seed: int) -> dict[str, Plan]:
        """What is trained on a log, by name: each method, and with the log's context once more."""
        settings = dr.TrainingSettings(steps=self.steps, seed=seed)
        plans = {}
        for name in self.methods:
            if name == "initial":
                continue
            method = METHODS["ipw" if name == "truth" else name]
            plans[name] = Plan(
                method=method.name,
                ranker=RANKER,
                settings=settings,
                validation=HELD_OUT,
                propensity=data.truth if name == "truth" else None,
            )
            by_itself = "context" in method.takes and "propensity" not in method.takes
            if data.context is not None and (by_itself or name == "truth"):
                plans[f"{name} by {data.context}"] = replace(plans[name], context=data.context)
        return plans

    def settings(self, trained: Sequence[Trained]) -> dict[str, Any]:
        """The data, the training and what the scenarios are."""
        collections = [self.collection_of(name) for name in self.data or (None,)]
        sizes = {str(report.extra(each.run, "data")): each.sizes for each in trained}
        common = super().settings([replace(trained[0], sizes={})] if self.data else trained)
        return {
            **common,
            **({"collections": sizes} if self.data else {}),
            "data": "; ".join(each.describe(self.all_seeds) for each in collections),
            "ranker": "DNN " + "-".join(map(str, RANKER.hidden)),
            "steps": self.steps,
            "held_out": HELD_OUT,
            "methods": list(self.methods),
            "scenarios": {name: SCENARIOS[name].title for name in self.logs},
        }

    def significance(self, trained: Sequence[Trained]) -> dict[str, Any]:
        """On each log every method against the naive ranker, and against dual learning."""
        found: dict[str, Any] = {}
        for log in dict.fromkeys(log_of(each.run) for each in trained):
            runs = [each for each in trained if log_of(each.run) == log]
            data = report.extra(runs[0].run, "data")
            pool = self.collection_of(None if data is None else str(data)).new_for_every_seed
            found[log] = {
                reference: compare_with(reference, runs, pool=pool, permutations=PERMUTATIONS)
                for reference in REFERENCES
            }
        return found

    def sheet(self, results: dict[str, Results]) -> Sheet:
        """What is gained over naive training, the tables, and what auto and diagnose said."""
        return comparison_sheet(self.title, results["results"])


@dataclass(frozen=True, kw_only=True)
class Scenarios(Methods):
    """Logs on which dual learning is right, and on which it is not.

    What `reproduce methods` shows of four of them: clicks as they are, the true propensities, dual
    learning and auto.

    Example: dualrank reproduce scenarios --seeds 3 --only initial-ranker,network-logger
    """

    name = "scenarios"
    title = "Where dual learning is right, and where it is not"

    methods: tuple[str, ...] = ("naive", "truth", "dla", "auto")
    scenarios: tuple[str, ...] | None = field(default=None, repr=False)
    only: Annotated[tuple[str, ...] | None, "Only these scenarios, separated by commas.", ","] = (
        field(default=None, repr=False)
    )

    @property
    def logs(self) -> tuple[str, ...]:
        """The scenarios that are asked for."""
        return super().logs if self.only is None else self.only


def shown_on_top(
    scores: NDArray[np.floating], logged: NDArray[np.floating], test: Dataset, depth: int
) -> NDArray[np.float64]:
    """The logging ranker's scores, but with the documents that it would display ranked anew."""
    lists = top_lists(test, logged, depth)
    shown = lists.documents[lists.mask]
    ranks: NDArray[np.float64] = _ranks(logged)
    ranks[shown] = _ranks(scores)[shown] + len(ranks)
    return ranks


def _ranks(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """How many documents, of any query, have a lower score; equal scores stay equal."""
    return np.unique(scores, return_inverse=True)[1].astype(np.float64)


def curve_error(believed: Propensity, truth: Propensity) -> float:
    """The mean squared error of the inverse weights; over contexts the mean of each one's."""
    if believed.context is None or believed.context != truth.context:
        pairs = [(believed, truth)]
    else:
        curves = believed.by_context
        pairs = [(curves[name], true) for name, true in truth.by_context.items()]
    errors = [
        dr.inverse_propensity_mse(curve.examination, true.examination[: curve.depth])
        for curve, true in pairs
    ]
    return float(np.mean(errors))


def _is_trained(plan: Plan, model: Model | None) -> bool:
    """Whether that is the model of this plan."""
    return (
        model is not None
        and plan.propensity is None
        and model.training.get("context") == plan.context
    )


def _choice(model: Model) -> dict[str, Any]:
    """What auto took, and why."""
    said = model.training["auto"]
    return {"chosen": said.get("chosen"), "why": said.get("why")}


def _judged(
    method: str,
    task: Task,
    data: ScenarioData,
    scores: NDArray[np.floating],
    seconds: float,
    **more: Any,
) -> Trained:
    """The run of some scores of the test documents: on whole queries, and on what was shown."""
    whole = dr.evaluate_per_query(scores, data.test, METRICS)
    per_query = {METRIC: whole[METRIC]}
    if data.logged is not None:
        on_top = shown_on_top(scores, data.logged, data.test, data.log.lists.depth)
        shown = dr.evaluate_per_query(on_top, data.test, METRICS)
        per_query[f"{SHOWN} {METRIC}"] = shown[METRIC]
        more[SHOWN] = {name: float(values.mean()) for name, values in shown.items()}
    more |= task.setting
    trained = Trained.of(method, task.seed, whole, seconds=seconds, sizes=data.sizes, **more)
    return replace(trained, per_query=per_query)
