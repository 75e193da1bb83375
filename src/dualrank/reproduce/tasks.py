"""A piece of an experiment, and what it leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from dualrank.report.results import Run
from dualrank.reproduce.collection import Collection
from dualrank.reproduce.methods import Recipe, Users


class AnyTask(Protocol):
    """A piece of an experiment whose `repr` is all that makes it what it is."""

    @property
    def method(self) -> str:
        """The method that is trained."""


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


class Sizes(BaseModel):
    """How large the data of a task are. Features that are constant in training are not used."""

    queries: dict[str, int]
    documents: int
    features: int
    features_used: int
    note: str = ""


@dataclass(frozen=True, eq=False)
class Trained:
    """What a task leaves: its run, the metrics of every test query, the sizes of its data."""

    run: Run
    per_query: dict[str, NDArray[np.float64]]
    sizes: Sizes
