"""Which data an experiment runs on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dualrank.data.dataset import Splits
from dualrank.data.generator import generate_splits
from dualrank.data.public_sets import load_public

FOLDS = 5


@dataclass(frozen=True)
class Collection:
    """A generated collection by its preset, or a public one by its name under `root`.

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
