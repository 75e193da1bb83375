"""Finished tasks on disk, so that an experiment that was interrupted goes on where it was."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

import dualrank as dr
from dualrank.report import Run
from dualrank.reproduce.experiment import Task, Trained
from dualrank.storage import atomic_file


class KeptRuns:
    """A folder with one file per finished task, named after all that makes the task what it is.

    A file holds the runs of the task as JSON, and for each of them the metrics of every test query.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _path(self, task: Task) -> Path:
        digest = hashlib.sha256(f"{dr.__version__} {task!r}".encode()).hexdigest()
        return self._folder / f"{task.method}-{digest[:24]}.npz"

    def find(self, task: Task) -> list[Trained] | None:
        """What the task left, if its file is there and whole."""
        try:
            with np.load(self._path(task), allow_pickle=False) as held:
                arrays = {name: held[name] for name in held.files}
        except (OSError, ValueError, BadZipFile):
            return None
        return [
            Trained(
                Run.model_validate(each["run"]),
                {metric: arrays[f"{number} {metric}"] for metric in each["metrics"]},
                each["sizes"],
            )
            for number, each in enumerate(json.loads(bytes(arrays["runs"])))
        ]

    def keep(self, task: Task, trained: Sequence[Trained]) -> None:
        """Write what the task left."""
        arrays: dict[str, NDArray[np.generic]] = {}
        runs = []
        for number, each in enumerate(trained):
            run = each.run.model_dump(mode="json")
            runs.append({"run": run, "metrics": list(each.per_query), "sizes": each.sizes})
            arrays |= {f"{number} {metric}": values for metric, values in each.per_query.items()}
        text = np.frombuffer(json.dumps(runs).encode(), np.uint8)
        with atomic_file(self._path(task)) as file:
            np.savez_compressed(file, runs=text, **arrays)  # type: ignore[arg-type]

    def clear(self) -> None:
        """Remove the folder: the experiment has ended."""
        shutil.rmtree(self._folder, ignore_errors=True)
