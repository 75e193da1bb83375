"""An experiment from its tasks to its files: several processes, and nothing done twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dualrank.learning import Progress
from dualrank.report import Results, Sheet
from dualrank.reproduce.experiment import Experiment, Task, Trained
from dualrank.reproduce.kept_runs import KeptRuns
from dualrank.reproduce.processes import Report, map_tasks
from dualrank.storage import writing_alone


@dataclass(frozen=True, eq=False)
class Finished:
    """An experiment that was run: its results, how they are shown, and the files of both."""

    results: dict[str, Results]
    sheet: Sheet
    files: list[Path]


def run(
    experiment: Experiment,
    out: Path | None = None,
    *,
    jobs: int = 1,
    report: Report | None = None,
    finished: Callable[[], None] | None = None,
    command: str | None = None,
) -> Finished:
    """Do all tasks, and write what they found into the directory `out`.

    Tasks run in `jobs` processes; the results do not depend on how many. `report` follows the steps
    of each task, `finished` is called after each. What an interrupted run left in `out` is not done
    again, and nobody else may write there meanwhile. `command` is noted as what repeats it.
    """
    if out is not None:
        with writing_alone(out):
            return _run(experiment, out, jobs, report, finished, command)
    return _run(experiment, out, jobs, report, finished, command)


def _run(
    experiment: Experiment,
    out: Path | None,
    jobs: int,
    report: Report | None,
    finished: Callable[[], None] | None,
    command: str | None,
) -> Finished:
    kept = None
    if out is not None:
        experiment = experiment.prepared(out, lambda done, total: None)
        kept = KeptRuns(out / "unfinished")
    results = experiment.results(run_tasks(experiment.tasks(), jobs, report, finished, kept))
    if command is not None:
        for each in results.values():
            each.settings["command"] = command
    sheet, files = experiment.sheet(results), []
    if out is not None and kept is not None:
        for name, each in results.items():
            files.append(out / f"{name}.json")
            each.write(files[-1])
        files += sheet.write(out)
        kept.clear()
    return Finished(results, sheet, files)


def run_tasks(
    tasks: Sequence[Task],
    jobs: int = 1,
    report: Report | None = None,
    finished: Callable[[], None] | None = None,
    kept: KeptRuns | None = None,
) -> list[Trained]:
    """What all tasks left, in their order."""
    done: dict[int, list[Trained]] = {}
    for index, task in enumerate(tasks):
        found = kept.find(task) if kept else None
        if found is not None:
            done[index] = found
            if finished:
                finished()
    missing = [index for index in range(len(tasks)) if index not in done]

    def report_missing(place: int, step: int, steps: int) -> None:
        if report:
            report(missing[place], step, steps)

    wanted = [tasks[index] for index in missing]
    for place, trained in map_tasks(_work, wanted, jobs=jobs, report=report_missing):
        done[missing[place]] = trained
        if kept:
            kept.keep(wanted[place], trained)
        if finished:
            finished()
    return [trained for index in sorted(done) for trained in done[index]]


def _work(task: Task, progress: Progress) -> list[Trained]:
    return task.experiment.work(task, progress)
