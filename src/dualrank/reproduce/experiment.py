"""What every experiment is: tasks by method and seed, what each leaves, and how all is shown.

A new experiment is one file with a subclass of `Experiment`, and a line in `experiments.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import dualrank as dr
from dualrank.errors import SettingsError
from dualrank.learning import Progress
from dualrank.report import Results, Run, Sheet


@dataclass(frozen=True)
class Task:
    """One piece of an experiment. `setting` is what is swept, such as `{"eta": 0.5}`.

    The `repr` is all that makes the task what it is: finished ones are found by it.
    """

    experiment: Experiment
    method: str
    seed: int
    setting: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        swept = [f"{name} {value}" for name, value in self.setting.items()]
        return ", ".join([self.method, *swept, f"seed {self.seed}"])


@dataclass(frozen=True, eq=False)
class Trained:
    """What one ranker leaves: its run, the metrics of every test query, the sizes of its data."""

    run: Run
    per_query: dict[str, NDArray[np.float64]]
    sizes: dict[str, Any]

    @classmethod
    def of(
        cls,
        method: str,
        seed: int,
        per_query: dict[str, NDArray[np.float64]],
        *,
        seconds: float,
        sizes: dict[str, Any] | None = None,
        **extra: Any,
    ) -> Trained:
        """The metrics of a run are means over test queries; `extra` are further keys of it."""
        means = {name: float(values.mean()) for name, values in per_query.items()}
        run = Run(method=method, seed=seed, metrics=means, seconds=round(seconds, 2), **extra)
        return cls(run, per_query, sizes or {})


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC):
    """An experiment as its options, each a field with a word of help.

    Fields that only say which tasks there are, such as `seeds`, are left out of the `repr`: a task
    is the same in the company of others.
    """

    name: ClassVar[str]
    title: ClassVar[str]

    seeds: Annotated[int, "How many seeds.", {"min": 1}] = field(default=5, repr=False)
    seed: Annotated[int, "The first seed of everything random.", {"min": 0}] = field(
        default=0, repr=False
    )

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise SettingsError("an experiment needs at least one seed")

    @property
    def all_seeds(self) -> list[int]:
        """One after the other."""
        return list(range(self.seed, self.seed + self.seeds))

    def prepared(self, out: Path, progress: Progress) -> Experiment:
        """The experiment after work that comes once before all tasks and leaves files in `out`."""
        return self

    @abstractmethod
    def tasks(self) -> list[Task]:
        """What is to be done, in the order of the runs."""

    @abstractmethod
    def work(self, task: Task, progress: Progress) -> list[Trained]:
        """Do one of the tasks."""

    def settings(self, trained: Sequence[Trained]) -> dict[str, Any]:
        """What a reader needs to understand the results and to repeat them."""
        return {**trained[0].sizes, "seeds": self.all_seeds, "version": dr.__version__}

    def significance(self, trained: Sequence[Trained]) -> dict[str, Any]:
        """Which differences are real; nothing where none is tested."""
        return {}

    def results(self, trained: Sequence[Trained]) -> dict[str, Results]:
        """By the name of their file; what is called `results` is what the experiment is about."""
        return {
            "results": Results(
                experiment=self.name,
                settings=self.settings(trained),
                runs=[each.run for each in trained],
                significance=self.significance(trained),
            )
        }

    @abstractmethod
    def sheet(self, results: dict[str, Results]) -> Sheet:
        """How it is shown: sentences, tables, figures."""


def require_known(what: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Refuse a name that does not exist, and say which do."""
    for name in names:
        if name not in known:
            raise SettingsError(f"unknown {what} {name!r}; known are {', '.join(known)}")
