"""What all simulation experiments share: a task per method, seed and user, run in parallel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.evaluation.evaluator import Evaluator
from dualrank.evaluation.metric import PAPER_METRICS
from dualrank.learning.loop import Progress
from dualrank.report.results import Run
from dualrank.reproduce.collection import Collection
from dualrank.reproduce.kept_runs import KeptRuns
from dualrank.reproduce.methods import run_method
from dualrank.reproduce.processes import Report, map_tasks
from dualrank.reproduce.simulation import Simulation, stage
from dualrank.reproduce.tasks import AnyTask, Sizes, Task, Trained
from dualrank.reproduce.tuning import tune


def run_tasks(
    tasks: Sequence[AnyTask],
    *,
    work: Callable[[Any, Progress], Trained] | None = None,
    jobs: int = 1,
    report: Report | None = None,
    finished: Callable[[], None] | None = None,
    kept: KeptRuns | None = None,
) -> list[Trained]:
    """Train everything, in the order of the tasks whatever the number of jobs.

    `work` does a task; without it one row of a table is trained. `report` follows the steps of
    each task, `finished` is called after each one. Tasks that are `kept` from an interrupted run
    are not done again.
    """
    trained: dict[int, Trained] = {}
    for index, task in enumerate(tasks):
        found = kept.find(task) if kept else None
        if found is not None:
            trained[index] = found
            if finished:
                finished()
    missing = [index for index in range(len(tasks)) if index not in trained]

    def report_missing(index: int, done: int, total: int) -> None:
        if report:
            report(missing[index], done, total)

    wanted = [tasks[index] for index in missing]
    do: Callable[[Any, Progress], Trained] = work or _train
    for place, result in map_tasks(do, wanted, jobs=jobs, report=report_missing):
        trained[missing[place]] = result
        if kept:
            kept.keep(wanted[place], result)
        if finished:
            finished()
    return [trained[index] for index in range(len(tasks))]


@lru_cache(maxsize=1)
def stage_once(collection: Collection, seed: int) -> Simulation:
    """Staged once per process and seed, for all methods and users."""
    return stage(collection.load(seed), seed)


def _train(task: Task, progress: Progress) -> Trained:
    simulation = stage_once(task.collection, task.seed)
    extra = dict[str, Any](task.setting)
    if task.tuned:
        best = tune(task.method, simulation, task.users, task.recipe, progress)
        outcome, extra["trials"] = best.outcome, best.trials
    else:
        outcome = run_method(task.method, simulation, task.users, task.recipe, progress)
    per_query = Evaluator(simulation.test, PAPER_METRICS).per_query(outcome.test_scores)
    if outcome.curve is not None:
        extra["curve"] = outcome.curve
    if outcome.left_out:
        extra["left_out"] = outcome.left_out
    run = Run(
        method=task.method,
        seed=task.seed,
        metrics={name: float(values.mean()) for name, values in per_query.items()},
        propensity=outcome.propensity,
        seconds=round(outcome.seconds, 2),
        **extra,
    )
    return Trained(run, per_query, sizes_of(simulation))


def sizes_of(simulation: Simulation) -> Sizes:
    """How large the data of a task are."""
    parts = {"train": simulation.train, "valid": simulation.valid, "test": simulation.test}
    return Sizes(
        queries={name: len(part) for name, part in parts.items()},
        documents=sum(part.document_count for part in parts.values()),
        features=simulation.features_given,
        features_used=simulation.train.feature_count,
        note=simulation.note,
    )


def truth_of(user: PositionBasedUser) -> list[float]:
    """The examination of a user relative to the first position, for `results.json`."""
    examination = user.examination(len(user.curve))
    return (examination / examination[0]).tolist()
