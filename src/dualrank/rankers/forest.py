"""Decision trees whose outputs are added up, as plain arrays: what an ensemble has learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numba
import numpy as np
from numpy.typing import NDArray

LEAF = -1
"""In the place of a feature."""


@dataclass(frozen=True, eq=False)
class Forest:
    """The nodes of all trees, one after the other; tree t begins at node `roots[t]`.

    Node i looks at the feature `feature[i]` of a document, and sends it to node `left[i]` where
    that is at most `threshold[i]`, to `right[i]` where it is more, and where it is missing (nan) to
    the left if `missing_left[i]`. At a leaf, `feature[i]` is `LEAF`, and the tree adds `value[i]`
    to the document's score. Children come after their parents.

    Features are float32, and so are thresholds: each is the largest such number for which a
    document goes to the left, so that nothing is lost.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    value: NDArray[np.float32]
    roots: NDArray[np.int32]

    @classmethod
    def empty(cls) -> Forest:
        """No tree: every score is 0."""
        whole, real = np.empty(0, np.int32), np.empty(0, np.float32)
        return cls(whole, real, whole, whole, np.empty(0, np.bool_), real, whole)

    def __len__(self) -> int:
        return len(self.roots)

    def predict(
        self,
        features: NDArray[np.float32],
        trees: slice = slice(None),
        onto: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """What some of the trees add up to for each document, added `onto` scores if given."""
        scores = np.zeros(len(features)) if onto is None else onto
        _add_scores(
            np.ascontiguousarray(features, np.float32),
            self.feature,
            self.threshold,
            self.left,
            self.right,
            self.missing_left,
            self.value,
            np.ascontiguousarray(self.roots[trees]),
            scores,
        )
        return scores

    def times(self, weight: float) -> Forest:
        """The same trees, each adding `weight` times as much."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return Forest(**values | {"value": (self.value * weight).astype(np.float32)})

    @classmethod
    def together(cls, forests: Sequence[Forest]) -> Forest:
        """The trees of several forests as one."""
        begins = np.append(0, np.cumsum([len(forest.feature) for forest in forests]))
        joined = {
            each.name: np.concatenate([getattr(forest, each.name) for forest in forests])
            for each in fields(cls)
        }
        for name in ("left", "right", "roots"):
            parts = [getattr(each, name) + at for each, at in zip(forests, begins, strict=False)]
            joined[name] = np.concatenate(parts).astype(np.int32)
        return cls(**joined)

    def begins_with(self, other: Forest) -> bool:
        """Whether the first trees are those of another forest, as where more joined it."""
        parts = ((getattr(self, each.name), getattr(other, each.name)) for each in fields(self))
        return all(np.array_equal(mine[: len(first)], first) for mine, first in parts)

    def check(self, inputs: int) -> None:
        """A ValueError unless every document with this many features comes to a leaf.

        Scoring trusts the nodes, without looking where they lead.
        """
        for each in fields(self):
            part, like = getattr(self, each.name), getattr(Forest.empty(), each.name)
            if (part.dtype, part.ndim) != (like.dtype, like.ndim):
                raise ValueError(
                    f"holds {each.name} as {part.dtype} of {part.ndim} dimensions instead of "
                    f"{like.dtype} of {like.ndim}"
                )
        nodes = np.arange(len(self.feature))
        inner = self.feature != LEAF
        if len({len(getattr(self, each.name)) for each in fields(self)[:-1]}) > 1:
            raise ValueError("holds more of one part of its nodes than of another")
        if not ((self.feature >= LEAF) & (self.feature < inputs)).all():
            raise ValueError(f"looks at features beyond the {inputs} there are")
        for child in (self.left[inner], self.right[inner]):
            if not ((child > nodes[inner]) & (child < len(nodes))).all():
                raise ValueError("has trees with nodes that lead nowhere")
        if not ((self.roots >= 0) & (self.roots < len(nodes))).all():
            raise ValueError("has trees that begin nowhere")
        for name in ("threshold", "value"):
            if not np.isfinite(getattr(self, name)).all():
                raise ValueError(f"holds a {name} that is no finite number")


@numba.njit(cache=True, nogil=True)
def _add_scores(
    features: NDArray[np.float32],
    feature: NDArray[np.int32],
    threshold: NDArray[np.float32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    missing_left: NDArray[np.bool_],
    value: NDArray[np.float32],
    roots: NDArray[np.int32],
    scores: NDArray[np.float64],
) -> None:
    for row in range(len(features)):
        total = scores[row]
        for root in roots:
            node = root
            while feature[node] >= 0:
                x = features[row, feature[node]]
                goes_left = missing_left[node] if np.isnan(x) else x <= threshold[node]
                node = left[node] if goes_left else right[node]
            total += value[node]
        scores[row] = total
