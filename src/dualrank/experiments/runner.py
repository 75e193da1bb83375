"""What all simulation experiments share: a task per method, seed and user, run in parallel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.evaluation.evaluator import Evaluator
from dualrank.evaluation.metric import PAPER_METRICS
from dualrank.experiments.collection import Collection
from dualrank.experiments.methods import Recipe, Users, run_method
from dualrank.experiments.parallel import Report, map_tasks
from dualrank.experiments.results import Run
from dualrank.experiments.simulation import Simulation, stage
from dualrank.experiments.tuning import tune
from dualrank.learning.trainer import Progress


@dataclass(frozen=True)
class Task:
    """One row of a table for one seed. `setting` is the swept value, such as `{"eta": 0.5}`."""

    collection: Collection
    users: Users
    recipe: Recipe
    method: str
    tuned: bool = False
    setting: dict[str, float] = field(default_factory=dict)

    @property
    def seed(self) -> int:
        """The seed of everything random in this task."""
        return self.recipe.training.seed

    def __str__(self) -> str:
        swept = [f"{name} {value:g}" for name, value in self.setting.items()]
        return ", ".join([self.method, *swept, f"seed {self.seed}"])


@dataclass(frozen=True, eq=False)
class Trained:
    """What a task leaves: its run, the metrics of every test query, the sizes of its data."""

    run: Run
    per_query: dict[str, NDArray[np.float64]]
    sizes: dict[str, Any]


def run_tasks(
    tasks: Sequence[Task],
    *,
    jobs: int = 1,
    report: Report | None = None,
    finished: Callable[[], None] | None = None,
) -> list[Trained]:
    """Train everything, in the order of the tasks whatever the number of jobs.

    `report` follows the steps of each task, `finished` is called after each one.
    """
    trained: dict[int, Trained] = {}
    for index, result in map_tasks(_train, tasks, jobs=jobs, report=report):
        trained[index] = result
        if finished:
            finished()
    return [trained[index] for index in range(len(tasks))]


@lru_cache(maxsize=1)
def _stage(collection: Collection, seed: int) -> Simulation:
    """Staged once per process and seed, for all methods and users."""
    return stage(collection.load(seed), seed)


def _train(task: Task, progress: Progress) -> Trained:
    simulation = _stage(task.collection, task.seed)
    recipe, extra = task.recipe, dict[str, Any](task.setting)
    if task.tuned:
        best = tune(task.method, simulation, task.users, recipe, progress)
        recipe, extra["trials"] = best.recipe, best.trials
    outcome = run_method(task.method, simulation, task.users, recipe, progress)
    per_query = Evaluator(simulation.test, PAPER_METRICS).per_query(outcome.test_scores)
    if outcome.curve is not None:
        extra["curve"] = outcome.curve
    run = Run(
        method=task.method,
        seed=task.seed,
        metrics={name: float(values.mean()) for name, values in per_query.items()},
        propensity=outcome.propensity,
        seconds=round(outcome.seconds, 2),
        **extra,
    )
    return Trained(run, per_query, _sizes(simulation))


def _sizes(simulation: Simulation) -> dict[str, Any]:
    parts = {"train": simulation.train, "valid": simulation.valid, "test": simulation.test}
    return {
        "queries": {name: len(part) for name, part in parts.items()},
        "documents": sum(part.document_count for part in parts.values()),
        "features": simulation.train.feature_count,
    }


def truth_of(user: PositionBasedUser) -> list[float]:
    """The examination of a user relative to the first position, for `results.json`."""
    examination = user.examination(len(user.curve))
    return (examination / examination[0]).tolist()
