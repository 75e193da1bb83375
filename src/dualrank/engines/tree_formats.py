"""A forest as formats lay it out: nested, or tree by tree, with thresholds for their rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dualrank.errors import SettingsError
from dualrank.learning.model import Model
from dualrank.rankers.forest import LEAF, Forest

T = TypeVar("T")
LARGEST = np.finfo(np.float32).max


def require_trees(model: Model, target: str) -> Forest:
    """The trees of a model, for a target that holds nothing else."""
    forest = model.ranker.forest()
    if forest is None:
        raise SettingsError(
            f"{target} holds trees, and this is a ranker of kind {model.kind}: "
            "train with ranker='trees'"
        )
    return require_splits(forest)


def require_splits(forest: Forest) -> Forest:
    """A forest that has learned something."""
    if not (forest.feature != LEAF).any():
        raise SettingsError("no tree of the model has a split, so there is nothing to export")
    return forest


def used_features(forest: Forest) -> NDArray[np.int32]:
    """The columns that some tree looks at, in their order."""
    return np.unique(forest.feature[forest.feature != LEAF])


def next_above(thresholds: NDArray[np.float32]) -> NDArray[np.float32]:
    """t' with x < t' where x ≤ t, for float32; at the largest number itself there is none."""
    with np.errstate(over="ignore"):
        return np.minimum(np.nextafter(thresholds, np.float32(np.inf)), LARGEST)


def missing_counts_as_zero(forest: Forest) -> bool:
    """Whether missing values go where 0 goes, as after training on features without gaps."""
    inner = forest.feature != LEAF
    return bool((forest.missing_left[inner] == (forest.threshold[inner] >= 0)).all())


def nested(forest: Forest, leaf: Callable[[int], T], split: Callable[[int, T, T], T]) -> list[T]:
    """Each tree as what `split` makes of a node and its two children, from the leaves up."""
    made: list[Any] = [None] * len(forest.feature)
    for node in reversed(range(len(made))):  # children come after their parents
        if forest.feature[node] == LEAF:
            made[node] = leaf(node)
        else:
            made[node] = split(node, made[forest.left[node]], made[forest.right[node]])
    return [made[root] for root in forest.roots]


def nodes_of_tree(forest: Forest, root: int) -> list[int]:
    """The nodes of one tree, level by level, its root first."""
    nodes = [root]
    for node in nodes:
        if forest.feature[node] != LEAF:
            nodes += [int(forest.left[node]), int(forest.right[node])]
    return nodes
