"""Drift: users change while the ranker is being trained on the stream of their clicks.

The severity η of the position bias jumps at one moment and later goes back slowly. Dual learning
sees only clicks and follows; the propensities of RandList were measured before the jump and do
not. What each method believes, and how well it ranks, is recorded all along.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dualrank.clicks.browsing import Independent
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.corrections.weighting import DualLearning, GivenPropensity, NoCorrection, Weighting
from dualrank.errors import SettingsError
from dualrank.evaluation.evaluator import Evaluator
from dualrank.evaluation.metric import PAPER_METRICS
from dualrank.learning.feedback import Batch
from dualrank.learning.loop import Progress, Trainer
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.network import DNN
from dualrank.report.results import Results, Run
from dualrank.reproduce.collection import Collection
from dualrank.reproduce.comparison_with_dla import compare_with_reference
from dualrank.reproduce.kept_runs import KeptRuns
from dualrank.reproduce.methods import (
    Recipe,
    Users,
    describe,
    judge,
    measure_by_randomisation,
)
from dualrank.reproduce.presets import recipe_of
from dualrank.reproduce.processes import Report
from dualrank.reproduce.runner import run_tasks, sizes_of, stage_once, truth_of
from dualrank.reproduce.simulation import Simulation
from dualrank.reproduce.tasks import Trained
from dualrank.version import __version__

DRIFT_METHODS = ("dla", "naive", "randlist")
METRIC = "ndcg@10"
MOMENTS = 40
SESSIONS_PER_LIST = 64
LEARNING_RATE, PROPENSITY_RATE = 0.05, 5.0


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


@dataclass(frozen=True)
class DriftTask:
    """One method on one stream."""

    collection: Collection
    recipe: Recipe
    severity: Severity
    method: str

    @property
    def seed(self) -> int:
        """The seed of everything random in this task."""
        return self.recipe.training.seed

    def __str__(self) -> str:
        return f"{self.method}, seed {self.seed}"


@dataclass(frozen=True)
class Drift:
    """The whole experiment as plain values."""

    collection: Collection
    recipe: Recipe
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    severity: Severity = Severity()
    methods: tuple[str, ...] = DRIFT_METHODS

    def __post_init__(self) -> None:
        if not self.seeds:
            raise SettingsError("an experiment needs at least one seed")
        if self.recipe.training.steps % MOMENTS:
            raise SettingsError(
                f"drift is recorded at {MOMENTS} moments, so steps are a multiple of {MOMENTS}, "
                f"not {self.recipe.training.steps}"
            )

    @classmethod
    def preset(cls, name: str, collection: Collection | None = None) -> Drift:
        """The experiment of a preset.

        Rates are constant, as the stream has no end that they could fall towards. What the ranker
        learns while φ is still wrong, it has to unlearn, and takes φ with it on the way; therefore
        φ moves a hundred times as fast. So fast a φ is noisy, and has little noise only where many
        users look at each list. The ranker is smaller than the preset's, which changes little here
        and takes half the time.
        """
        recipe = recipe_of(name)
        training = replace(
            recipe.training,
            steps=recipe.training.steps // MOMENTS * MOMENTS,
            schedule="constant",
            learning_rate=LEARNING_RATE,
            propensity_rate=PROPENSITY_RATE,
        )
        recipe = replace(
            recipe,
            training=training,
            ranker=DNN(recipe.ranker.hidden[-1:]),
            sessions_per_list=SESSIONS_PER_LIST,
        )
        return cls(collection or Collection(name), recipe)

    @property
    def tasks(self) -> list[DriftTask]:
        """One task per seed and method."""
        return [
            DriftTask(self.collection, self.recipe.with_seed(seed), self.severity, method)
            for seed in self.seeds
            for method in self.methods
        ]


class ChangingClicks:
    """Simulated clicks of users whose severity is that of `moment`, which the loop moves on."""

    def __init__(self, simulation: Simulation, severity: Severity, sessions: int) -> None:
        self.lists = simulation.lists
        self.moment = 0.0
        self._severity, self._sessions = severity, sessions
        grades = self.lists.gather(simulation.train.require_grades())
        everything = PositionBasedUser(eta=0)
        self._relevance = everything.browse(grades, self.lists.mask, simulation.train.max_grade)

    def draw(self, size: int, rng: np.random.Generator) -> Batch:
        """Draw lists uniformly and let the users of the moment look at each."""
        chosen = rng.integers(len(self.lists), size=size)
        examination = self._severity.user_at(self.moment).examination(self.lists.depth)
        pages = Independent(self._relevance.take(chosen).attraction * examination)
        clicks = pages.sample_counts(self._sessions, rng)
        clicked = clicks.any(axis=1)
        labels = (clicks[clicked] / self._sessions).astype(np.float32)
        return Batch(self.lists.documents[chosen[clicked]], labels, size)


def run_drift(
    experiment: Drift,
    *,
    jobs: int = 1,
    report: Report | None = None,
    finished: Callable[[], None] | None = None,
    kept: KeptRuns | None = None,
) -> Results:
    """Train every method on the stream of every seed."""
    trained = run_tasks(
        experiment.tasks, work=_train, jobs=jobs, report=report, finished=finished, kept=kept
    )
    severity, training = experiment.severity, experiment.recipe.training
    settings = {
        "data": experiment.collection.describe(experiment.seeds),
        **trained[0].sizes.model_dump(),
        **describe(experiment.recipe),
        "seeds": list(experiment.seeds),
        "sessions": training.steps * training.batch_size * experiment.recipe.sessions_per_list,
        "eta_before": severity.before,
        "eta_after": severity.after,
        "jump": severity.jump,
        "ramp": list(severity.ramp),
        "metrics_at": "the end of the time at eta_after, before the way back",
        "epsilon": severity.user_at(0).epsilon,
        "true_examination": truth_of(severity.user_at(severity.jump)),
        "version": __version__,
    }
    return Results(
        experiment="drift",
        settings=settings,
        runs=[result.run for result in trained],
        significance=compare_with_reference(trained, pool=experiment.collection.new_for_every_seed),
    )


def _train(task: DriftTask, progress: Progress) -> Trained:
    started = time.perf_counter()
    simulation = stage_once(task.collection, task.seed)
    recipe, severity, settings = task.recipe, task.severity, task.recipe.training
    feedback = ChangingClicks(simulation, severity, recipe.sessions_per_list)
    trainer = Trainer(
        recipe.ranker.build(simulation.train.feature_count, settings.seed),
        torch.from_numpy(simulation.train.features),
        feedback,
        _weighting(task, simulation),
        settings,
    )
    evaluate = Evaluator(simulation.test, PAPER_METRICS)
    record: dict[str, list[Any]] = {"moment": [], "eta": [], "examination": [], METRIC: []}
    etas: list[float] = []
    believed: list[NDArray[np.float64]] = []
    for step in range(1, settings.steps + 1):
        feedback.moment = (step - 1) / settings.steps
        trainer.step()
        etas.append(severity.at(feedback.moment))
        if (propensity := trainer.weighting.propensity()) is not None:
            believed.append(np.log(propensity.examination))
        if step % (settings.steps // MOMENTS) == 0:
            per_query = evaluate.per_query(trainer.ranker.predict(simulation.test.features))
            record["moment"].append(step / settings.steps)
            record["eta"].append(float(np.mean(etas)))
            mean = np.exp(np.mean(believed, axis=0)).tolist() if believed else None
            record["examination"].append(mean)
            record[METRIC].append(float(per_query[METRIC].mean()))
            if step == round(severity.ramp[0] * settings.steps):
                settled = per_query
            etas.clear()
            believed.clear()
            progress(step, settings.steps)
    believed_then = record["examination"][round(severity.ramp[0] * MOMENTS) - 1]
    extra: dict[str, Any] = {"drift": record}
    if believed_then is not None:
        user = severity.user_at(severity.jump)
        extra["propensity"] = judge(Propensity.of(believed_then), user)
    run = Run(
        method=task.method,
        seed=task.seed,
        metrics={name: float(values.mean()) for name, values in settled.items()},
        seconds=round(time.perf_counter() - started, 2),
        **extra,
    )
    return Trained(run, settled, sizes_of(simulation))


def _weighting(task: DriftTask, simulation: Simulation) -> Weighting:
    settings, depth = task.recipe.training, simulation.lists.depth
    if task.method == "dla":
        return DualLearning(depth, settings)
    if task.method == "naive":
        return NoCorrection()
    user = task.severity.user_at(0)
    measured = measure_by_randomisation(simulation, Users(user, user), task.recipe)
    return GivenPropensity(measured, depth, settings.max_weight)
