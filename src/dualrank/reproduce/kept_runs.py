"""Finished tasks on disk, so that an experiment that was interrupted goes on where it was."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from zipfile import BadZipFile
from zlib import error

import numpy as np
from numpy.typing import NDArray

import dualrank as dr
from dualrank.report import Run
from dualrank.reproduce.experiment import Task, Trained
from dualrank.storage import atomic_file, parse_json, read_file

MOST_BYTES = 1 << 30
_DAMAGE = (
    *(ArithmeticError, AttributeError, BadZipFile, EOFError, LookupError, MemoryError),
    *(NotImplementedError, OSError, RuntimeError, TypeError, ValueError, error),
)
"""What a file ends in that nobody wrote so; its task is then done again."""


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
            content = read_file(self._path(task), MOST_BYTES, within=self._folder)
            return _trained(content)
        except _DAMAGE:
            return None

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


def _trained(content: bytes) -> list[Trained]:
    """What `keep` wrote; one of `_DAMAGE` where it is something else."""
    with np.load(io.BytesIO(content), allow_pickle=False) as held:
        arrays = {name: held[name] for name in held.files}
    found = []
    for number, each in enumerate(parse_json(bytes(arrays["runs"]), constants=True)):
        per_query = {metric: arrays[f"{number} {metric}"] for metric in each["metrics"]}
        run = Run.model_validate(each["run"])
        for metric, values in per_query.items():
            if values.ndim != 1 or values.dtype.kind != "f" or not np.isfinite(values).all():
                raise ValueError(f"{metric} is not one number per query")
        found.append(Trained(run, per_query, dict(each["sizes"])))
    return found
