"""Which data an experiment runs on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dualrank.data import PUBLIC_SETS, Dataset, Splits, generate_splits, load_public
from dualrank.errors import SettingsError
from dualrank.reproduce.text_collection import COLLECTIONS, TextCollection

FOLDS = 5
TEXTS = tuple(name for name in COLLECTIONS if name != "small-web")
"""The collections of texts that are public; the small web is generated."""


def sizes_of(parts: Mapping[str, Dataset], **more: Any) -> dict[str, Any]:
    """How large the parts of some data are, for the reader of results."""
    return {
        "queries": {name: len(part) for name, part in parts.items()},
        "documents": sum(part.document_count for part in parts.values()),
        **more,
    }


@dataclass(frozen=True)
class Collection:
    """A generated collection by its preset, or a public one by its name under `root`.

    Without a `fold` the first seed takes fold 1, the next fold 2, and so on: cross-validation, in
    which every query is tested once. Collections of texts have one split, and the first tenth of
    what would be their training queries validates.
    """

    name: str = "laptop"
    root: Path | None = None
    fold: int | None = 1
    world: int = 0

    def __post_init__(self) -> None:
        """Refuse a name that nobody knows before processes are started that would."""
        public = (*PUBLIC_SETS, *TEXTS)
        if self.root is not None and self.name not in public:
            raise SettingsError(
                f"there is no public set {self.name!r}; expected one of {', '.join(public)}"
            )

    @property
    def new_for_every_seed(self) -> bool:
        """Whether every seed is tested on other queries."""
        return self.root is None or self.fold is None

    @property
    def scaling(self) -> str:
        """How features are scaled: the counts and lengths of texts have long tails."""
        return "log" if self.root is not None and self.name in TEXTS else "standard"

    def load(self, seed: int) -> Splits:
        """The data of one seed."""
        if self.root is not None and self.name in TEXTS:
            texts = TextCollection(self.name, self.root).load(seed)
            cut = len(texts.train) // 10
            valid, train = np.split(np.arange(len(texts.train)), [cut])
            return Splits(texts.train.take(train), texts.train.take(valid), texts.test)
        if self.root is not None:
            return load_public(self.name, self.root, self.fold or 1 + seed % FOLDS)
        return generate_splits(self.name, seed=seed, world=self.world)

    def check_seeds(self, seeds: Sequence[int]) -> None:
        """Refuse seeds that would test a fold twice, or a fold that the collection has not."""
        if self.root is None or self.fold is not None:
            return
        if self.name in PUBLIC_SETS and PUBLIC_SETS[self.name].folds == 1:
            raise SettingsError(f"{self.name} has no folds to go through; leave fold=all out")
        if len({seed % FOLDS for seed in seeds}) < len(seeds):
            raise SettingsError(f"there are {FOLDS} folds, so {len(seeds)} seeds test one twice")

    def describe(self, seeds: Sequence[int]) -> str:
        """What was used, for the reader of results."""
        if self.root is None:
            return f"generated, preset {self.name}, world {self.world}"
        if self.name in TEXTS:
            return self.name
        folds = [self.fold] if self.fold is not None else sorted(1 + s % FOLDS for s in seeds)
        return f"{self.name}, fold{'s' * (len(folds) > 1)} {', '.join(map(str, folds))}"
