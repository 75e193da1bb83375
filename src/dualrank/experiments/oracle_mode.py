"""Oracle Mode, the paper's Table 2: the bias in training is the one that randomisation measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.data.dataset import Splits
from dualrank.data.generator import PRESETS as DATA_PRESETS
from dualrank.data.generator import generate_splits
from dualrank.data.public_sets import load_public
from dualrank.errors import SettingsError
from dualrank.evaluation.metric import PAPER_METRICS
from dualrank.evaluation.metrics import Evaluator
from dualrank.evaluation.significance import fisher_test
from dualrank.experiments.methods import METHODS, Recipe, describe, run_method
from dualrank.experiments.parallel import Report, map_tasks
from dualrank.experiments.results import Results, Run
from dualrank.experiments.simulation import Simulation, stage
from dualrank.experiments.tuning import Tuned, tune
from dualrank.learning.settings import TrainingSettings
from dualrank.learning.trainer import Progress
from dualrank.rankers.network import DNN
from dualrank.version import __version__

REFERENCE = "dla"
ALPHA = 0.05
PERMUTATIONS = 100_000
FOLDS = 5


@dataclass(frozen=True)
class DataChoice:
    """Which collection an experiment runs on: a generated one, or a public one under `root`.

    Without a `fold` the first seed takes fold 1, the next fold 2, and so on: cross-validation, in
    which every query is tested once.
    """

    name: str = "laptop"
    root: Path | None = None
    fold: int | None = 1
    world: int = 0

    @property
    def new_for_every_seed(self) -> bool:
        """Whether every seed is tested on other queries."""
        return self.root is None or self.fold is None

    def load(self, seed: int) -> Splits:
        """The data of one seed."""
        if self.root is not None:
            return load_public(self.name, self.root, self.fold or 1 + seed % FOLDS)
        return generate_splits(self.name, seed=seed, world=self.world)

    def __str__(self) -> str:
        if self.root is None:
            return f"generated, preset {self.name}, world {self.world}"
        return f"{self.name}, {'every fold' if self.fold is None else f'fold {self.fold}'}"


@dataclass(frozen=True)
class OracleMode:
    """The whole experiment as plain values."""

    data: DataChoice
    recipe: Recipe
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    methods: tuple[str, ...] = tuple(METHODS)
    user: PositionBasedUser = field(default_factory=PositionBasedUser)
    tune: bool = False

    def __post_init__(self) -> None:
        unknown = [name for name in self.methods if name not in METHODS]
        if unknown:
            raise SettingsError(f"unknown method {unknown[0]!r}; known are {', '.join(METHODS)}")
        if not self.seeds:
            raise SettingsError("an experiment needs at least one seed")
        if self.data.root is not None and self.data.fold is None and len(self.seeds) > FOLDS:
            raise SettingsError(f"there are {FOLDS} folds, so at most as many seeds")


RECIPES = {
    "tiny": Recipe(TrainingSettings(steps=300), DNN((32,)), randomised_sessions=100_000),
    "laptop": Recipe(TrainingSettings(steps=4_000), DNN((256, 128))),
    "full": Recipe(TrainingSettings(steps=10_000), DNN((512, 256, 128))),
}
"""The hyper-parameters that go with the generator's presets."""


@lru_cache(maxsize=1)
def _stage(data: DataChoice, user: PositionBasedUser, seed: int) -> Simulation:
    """Staged once per process and seed, for all methods."""
    return stage(data.load(seed), user, seed)


@dataclass(frozen=True)
class _Task:
    data: DataChoice
    user: PositionBasedUser
    recipe: Recipe
    method: str
    tune: bool


@dataclass(frozen=True, eq=False)
class _Trained:
    run: Run
    per_query: dict[str, NDArray[np.float64]]
    sizes: dict[str, Any]


def _train(task: _Task, progress: Progress) -> _Trained:
    seed = task.recipe.training.seed
    simulation = _stage(task.data, task.user, seed)
    tuned: Tuned | None = None
    recipe = task.recipe
    if task.tune:
        tuned = tune(task.method, simulation, recipe, progress)
        recipe = tuned.recipe
    outcome = run_method(task.method, simulation, recipe, progress)
    evaluator = Evaluator(simulation.test, PAPER_METRICS)
    per_query = evaluator.per_query(outcome.test_scores)
    extra: dict[str, Any] = {}
    if outcome.curve is not None:
        extra["curve"] = outcome.curve
    if tuned is not None:
        extra["tuned"] = tuned.trials
    run = Run(
        method=task.method,
        seed=seed,
        metrics={name: float(values.mean()) for name, values in per_query.items()},
        propensity=outcome.propensity,
        seconds=round(outcome.seconds, 2),
        **extra,
    )
    return _Trained(run, per_query, _sizes(simulation))


def run_oracle_mode(
    experiment: OracleMode,
    *,
    name: str = "oracle-mode",
    jobs: int = 1,
    report: Report | None = None,
    finished: Callable[[], None] | None = None,
) -> Results:
    """Run every method for every seed and compare them with dual learning.

    `report` follows the steps of each task, `finished` is called after each one.
    """
    tasks = tasks_of(experiment)
    trained: dict[int, _Trained] = {}
    for index, result in map_tasks(_train, tasks, jobs=jobs, report=report):
        trained[index] = result
        if finished:
            finished()
    ordered = [trained[index] for index in range(len(tasks))]
    user = experiment.user
    examination = user.examination(len(user.curve))
    settings = {
        "data": str(experiment.data),
        **ordered[0].sizes,
        **describe(experiment.recipe),
        "seeds": list(experiment.seeds),
        "tuned": experiment.tune,
        "eta": user.eta,
        "epsilon": user.epsilon,
        "true_examination": (examination / examination[0]).tolist(),
        "ranker": "DNN " + "-".join(map(str, experiment.recipe.ranker.hidden)),
        "version": __version__,
    }
    del settings["seed"]
    return Results(
        experiment=name,
        settings=settings,
        runs=[result.run for result in ordered],
        significance=_significance(experiment, ordered),
    )


def tasks_of(experiment: OracleMode) -> list[_Task]:
    """One task per seed and method, the long ones of a seed first."""
    return [
        _Task(
            experiment.data,
            experiment.user,
            replace(experiment.recipe, training=replace(experiment.recipe.training, seed=seed)),
            method,
            experiment.tune,
        )
        for seed in experiment.seeds
        for method in experiment.methods
    ]


def task_names(experiment: OracleMode) -> list[str]:
    """A name for each task, in the order of `tasks_of`, for progress bars."""
    several = len(experiment.seeds) > 1
    return [
        f"{task.method}, seed {task.recipe.training.seed}" if several else task.method
        for task in tasks_of(experiment)
    ]


def _sizes(simulation: Simulation) -> dict[str, Any]:
    parts = {"train": simulation.train, "valid": simulation.valid, "test": simulation.test}
    return {
        "queries": {name: len(part) for name, part in parts.items()},
        "documents": sum(part.document_count for part in parts.values()),
        "features": simulation.train.feature_count,
    }


def _significance(experiment: OracleMode, trained: Sequence[_Trained]) -> dict[str, Any]:
    """Fisher's randomisation test of every method against dual learning, on queries.

    Where every seed has other test queries (generated data, folds) they are pooled. Where they are
    the same for every seed, a query counts once, with its mean over the seeds.
    """
    if REFERENCE not in experiment.methods:
        return {}
    pooled: dict[str, dict[str, NDArray[np.float64]]] = {}
    for method in experiment.methods:
        of_method = [t.per_query for t in trained if t.run.method == method]
        pooled[method] = {
            metric: np.concatenate([values[metric] for values in of_method])
            if experiment.data.new_for_every_seed
            else np.mean([values[metric] for values in of_method], axis=0)
            for metric in of_method[0]
        }
    p_values: dict[str, dict[str, float]] = {}
    differences: dict[str, dict[str, float]] = {}
    for method in experiment.methods:
        if method == REFERENCE:
            continue
        tests = {
            metric: fisher_test(values, pooled[REFERENCE][metric], permutations=PERMUTATIONS)
            for metric, values in pooled[method].items()
        }
        p_values[method] = {metric: test.p_value for metric, test in tests.items()}
        differences[method] = {metric: test.difference for metric, test in tests.items()}
    return {
        "reference": REFERENCE,
        "test": "fisher",
        "alpha": ALPHA,
        "permutations": PERMUTATIONS,
        "queries": len(next(iter(pooled[REFERENCE].values()))),
        "p_values": p_values,
        "difference": differences,
    }


def experiment_of(
    preset: str = "laptop", *, data: DataChoice | None = None, **changes: Any
) -> OracleMode:
    """The experiment of a preset, on generated data unless another collection is given."""
    if preset not in RECIPES:
        raise SettingsError(f"unknown preset {preset!r}; known are {', '.join(RECIPES)}")
    assert preset in DATA_PRESETS
    return OracleMode(data or DataChoice(preset), RECIPES[preset], **changes)
