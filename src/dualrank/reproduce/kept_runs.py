"""Finished tasks on disk, so that an experiment that was interrupted goes on where it was."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from dualrank.report.results import Run
from dualrank.reproduce.tasks import AnyTask, Sizes, Trained
from dualrank.storage import atomic_file
from dualrank.version import __version__


class KeptRuns:
    """A folder with one file per finished task, named after all that makes the task what it is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _path(self, task: AnyTask) -> Path:
        digest = hashlib.sha256(f"{__version__} {task!r}".encode()).hexdigest()
        return self._folder / f"{task.method}-{digest[:24]}.npz"

    def find(self, task: AnyTask) -> Trained | None:
        """What the task left, if it is here and whole."""
        try:
            with np.load(self._path(task), allow_pickle=False) as held:
                arrays = {name: held[name] for name in held.files}
        except (OSError, ValueError, BadZipFile):
            return None
        run = Run.model_validate_json(bytes(arrays.pop("run")))
        sizes = Sizes.model_validate_json(bytes(arrays.pop("sizes")))
        return Trained(run, arrays, sizes)

    def keep(self, task: AnyTask, trained: Trained) -> None:
        """Write what the task left."""
        texts = {"run": trained.run.model_dump_json(), "sizes": trained.sizes.model_dump_json()}
        held = {name: np.frombuffer(text.encode(), np.uint8) for name, text in texts.items()}
        with atomic_file(self._path(task)) as file:
            np.savez_compressed(file, **held, **trained.per_query)  # type: ignore[arg-type]

    def clear(self) -> None:
        """Remove the folder: the experiment has ended."""
        shutil.rmtree(self._folder, ignore_errors=True)
