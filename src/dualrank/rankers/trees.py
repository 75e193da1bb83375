"""Gradient boosted trees: every step grows trees on the slope of the loss.

Trees learn their training lists by heart before long, and what dual learning believes about
position must not rest on that: a click that has been learned looks relevant wherever it was made.
So queries are cut into two halves, each with an ensemble of its own. A list moves the ensemble of
its half; where the belief is concerned, the other ensemble, which has not seen its clicks, says how
relevant its documents are (`score_unseen`). The ranker is the mean of both, which errs less than
either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dualrank.errors import SettingsError
from dualrank.rankers.batch import Shown
from dualrank.rankers.forest import Forest
from dualrank.rankers.grown_tree import Grower
from dualrank.rankers.ranker import Ranker, RankerSettings, Scores, Signal, Step
from dualrank.settings import TrainingSettings

MOST_LEAVES = 131_072
"""That LightGBM grows on a tree."""


class TreeRanker(Ranker):
    """Two ensembles that learn from one half of the queries each; the score is their mean.

    What has been learned is a `Forest`, whose trees take turns: one of the first half, one of the
    second. A tree depends on nothing but the evidence, the settings and its number, so that a run
    that goes on from its forest grows the same trees.
    """

    whole = True
    scaled = False
    takes_missing = True
    suits: ClassVar[Mapping[str, float]] = {
        "steps": 300,
        "learning_rate": 0.05,
        "validate_every": 10,
        "checkpoint_every": 25,
    }

    unused = frozenset({"optimizer", "schedule", "normalisation", "gradient_clip", "weight_decay"})

    def __init__(self, inputs: int, settings: Trees | None = None, seed: int = 0) -> None:
        self._inputs, self._settings, self._seed = inputs, settings or Trees(), seed
        self._forest = Forest.empty()
        self._begun = 0
        """Trees that were there before, and belong to neither half."""
        self._left_out = 0
        self._halves: tuple[_Half, ...] = ()
        # The scores of all rows by the ensemble that learns from each, and by the other one, which
        # has looked at the trees of so many steps; nothing where they are not known.
        self._own = self._unseen = np.empty(0)
        self._looked = 0

    def start(
        self,
        features: Tensor,
        settings: TrainingSettings,
        queries: NDArray[np.int32] | None = None,
    ) -> None:
        """Cut the rows into halves by their queries."""
        if queries is None:
            raise SettingsError("trees learn from lists whose queries are known")
        matrix, first = features.cpu().numpy(), first_half(queries, self._seed)
        growing = self._settings.growing(settings.rate)
        self._halves = tuple(
            _Half(np.flatnonzero(mine), matrix[mine], growing, settings.threads)
            for mine in (first, ~first)
        )

    def score(self, shown: Shown) -> Tensor:
        """By the ensemble that learns from the list."""
        self._score_rows()
        return _laid_out(self._own, shown)

    def score_unseen(self, shown: Shown) -> Tensor:
        """By the ensemble that learns from other lists."""
        self._score_rows()
        for number, half in enumerate(self._halves):
            self._unseen[half.rows] = self._scored_by(
                1 - number, half, self._unseen[half.rows], self._looked
            )
        self._looked = (len(self._forest) - self._begun) // 2
        return _laid_out(self._unseen, shown)

    def _score_rows(self) -> None:
        """Score all rows by what has been learned so far, if that is not known."""
        if len(self._own):
            return
        self._own = np.empty(sum(len(half.rows) for half in self._halves))
        self._unseen, self._looked = np.empty_like(self._own), 0
        for number, half in enumerate(self._halves):
            begun = self._forest.predict(half.features, slice(self._begun))
            self._unseen[half.rows] = begun
            self._own[half.rows] = self._scored_by(number, half, begun)

    def _scored_by(
        self, ensemble: int, half: _Half, onto: NDArray[np.float64], step: int = 0
    ) -> NDArray[np.float64]:
        """The rows of a half with the trees of an ensemble, from a step on, added to scores."""
        trees = slice(self._begun + 2 * step + ensemble, None, 2)
        return self._forest.times(2).predict(half.features, trees, onto=onto)

    def evidence(self, shown: Shown, signal: Signal) -> list[Tensor]:
        """Slope and curvature of every row, summed over lists."""
        nothing = signal.slope.new_zeros(sum(len(half.rows) for half in self._halves))
        return [
            nothing.index_add(0, shown.rows, shown.pick(each))
            for each in (signal.slope, signal.curvature())
        ]

    def move(self, evidence: Sequence[Tensor], step: Step) -> None:
        """A tree for each half."""
        slope, curvature = (each.cpu().numpy() for each in evidence)
        if not (np.isfinite(slope).all() and np.isfinite(curvature).all()):
            self._left_out += 1
            return
        self._score_rows()
        seed = self._seed + len(self._forest) // 2
        trees = []
        for half in self._halves:
            bent = np.maximum(curvature[half.rows], 0.0)
            tree, outputs = half.grower.grow(slope[half.rows], bent, seed)
            self._own[half.rows] += outputs
            trees.append(tree.times(0.5))
        self._forest = Forest.together([self._forest, *trees])

    def finish(self) -> None:
        """Let go of the training data."""
        self._halves, self._own, self._unseen = (), np.empty(0), np.empty(0)

    def predict(
        self, features: NDArray[np.float32], offsets: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Row by row."""
        # Trees would look beyond the row, where anything may be.
        if features.shape[1] != self._inputs:
            raise ValueError(f"trees on {self._inputs} features do not rank {features.shape[1]}")
        return self._forest.predict(features).astype(np.float32)

    def follow(
        self, features: NDArray[np.float32], offsets: NDArray[np.int64] | None = None
    ) -> Scores:
        """Only trees that are new since the last time are asked."""
        return _Followed(self, features)

    def describe(self) -> dict[str, Any]:
        """How many features it knows."""
        return {"inputs": self._inputs}

    def tensors(self) -> dict[str, Tensor]:
        """The parts of the forest."""
        return {
            each.name: torch.from_numpy(getattr(self._forest, each.name).copy())
            for each in fields(Forest)
        }

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over a forest."""
        names = [each.name for each in fields(Forest)]
        if set(names) != set(tensors):
            raise ValueError(f"holds {', '.join(tensors)} instead of {', '.join(names)}")
        try:
            forest = Forest(**{name: tensors[name].numpy().copy() for name in names})
        except TypeError as error:  # Of bfloat16, for one.
            raise ValueError(f"holds numbers that numpy does not know: {error}") from error
        forest.check(self._inputs)
        self._forest, self._begun, self._own = forest, len(forest), np.empty(0)

    def state(self) -> dict[str, Tensor]:
        """The forest, and how it was begun."""
        counts = {"begun": self._begun, "left_out": self._left_out}
        return self.tensors() | {name: torch.tensor(count) for name, count in counts.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint."""
        counts = ("begun", "left_out")
        self.load_tensors({name: value for name, value in state.items() if name not in counts})
        self._begun, self._left_out = (int(state[name]) for name in counts)

    @property
    def left_out(self) -> int:
        """Steps whose slopes were not finite."""
        return self._left_out

    def forest(self) -> Forest:
        """All trees."""
        return self._forest

    def plus(self, other: Ranker, weight: float) -> Ranker:
        """The trees of both."""
        if not isinstance(other, TreeRanker) or self._inputs != other._inputs:
            return super().plus(other, weight)
        both = TreeRanker(self._inputs, self._settings, self._seed)
        both._forest = Forest.together([self._forest, other._forest.times(weight)])
        return both


@dataclass(frozen=True)
class Trees(RankerSettings):
    """Gradient boosted trees; a step of the training grows one on each half of the queries.

    `leaves` is how many a tree may have, `feature_share` that of features that each tree is grown
    on, and `least_evidence` the curvature of the loss that a leaf must rest on, in clicks (a click
    on one of ten equal documents has 0.09). `shrinkage` is curvature that every leaf is thought to
    have besides, which draws its value to 0. The learning rate and the number of steps are those of
    the training (0.05 and 300 unless given).

    >>> import dualrank as dr
    >>> data = dr.generate_splits("tiny")
    >>> lists = dr.top_lists(data.train, data.train.features[:, 0])
    >>> log = dr.sample_log(data.train, lists, dr.PositionBasedUser(), 20_000)
    >>> model = dr.fit(log, data.train, method="dla", ranker=dr.Trees(leaves=7), steps=20)
    >>> model.kind
    'trees'
    """

    kind = "trees"
    makes = TreeRanker

    leaves: Annotated[int, "Leaves of a tree."] = 31
    feature_share: Annotated[float, "The share of features that a tree is grown on."] = 0.33
    least_evidence: Annotated[float, "Curvature (in clicks) that a leaf of a tree needs."] = 1.0
    shrinkage: Annotated[float, "Curvature that draws leaves to 0."] = 300.0

    def __post_init__(self) -> None:
        if self.leaves < 2:
            raise SettingsError(f"a tree has at least 2 leaves, not {self.leaves}")
        if self.leaves > MOST_LEAVES:
            raise SettingsError(f"a tree has at most {MOST_LEAVES} leaves, not {self.leaves}")
        if not 0 < self.feature_share <= 1:
            raise SettingsError(f"feature_share is above 0 and up to 1, not {self.feature_share}")
        for name in ("least_evidence", "shrinkage"):
            if not 0 <= getattr(self, name) < np.inf:
                raise SettingsError(f"{name} is a number from 0 up, not {getattr(self, name)}")

    def build(self, inputs: int, seed: int = 0) -> TreeRanker:
        """No tree yet: every score is 0."""
        return TreeRanker(inputs, self, seed)

    def growing(self, rate: float) -> dict[str, Any]:
        """The same in LightGBM's words."""
        return {
            "num_leaves": self.leaves,
            "feature_fraction": self.feature_share,
            "min_sum_hessian_in_leaf": self.least_evidence,
            "lambda_l2": self.shrinkage,
            "learning_rate": rate,
        }


def first_half(queries: NDArray[np.int32], seed: int) -> NDArray[np.bool_]:
    """Whether each of these queries belongs to the first half; equal ones all do or all do not."""
    different, of_query = np.unique(queries, return_inverse=True)
    shuffled = np.random.default_rng(seed).permutation(len(different))
    return (shuffled < len(different) / 2)[of_query]


class _Half:
    """The rows of one half, and what grows trees on them."""

    def __init__(
        self,
        rows: NDArray[np.intp],
        features: NDArray[np.float32],
        growing: Mapping[str, Any],
        threads: int,
    ) -> None:
        self.rows, self.features = rows, features
        self.grower = Grower(features, growing, threads)


def _laid_out(scores: NDArray[np.float64], shown: Shown) -> Tensor:
    """The scores of rows, laid out like lists that show them."""
    values = torch.from_numpy(scores).to(shown.rows.device, torch.float32)
    return shown.lay_out(values.index_select(0, shown.rows))


class _Followed:
    """The scores of some documents, to which trees are added as they come.

    They begin anew where the ranker has taken over other trees. Comparing nodes costs nothing
    beside scoring documents by them.
    """

    def __init__(self, ranker: TreeRanker, features: NDArray[np.float32]) -> None:
        self._ranker, self._features = ranker, features
        self._known, self._scores = Forest.empty(), np.zeros(len(features))

    def __call__(self) -> NDArray[np.float32]:
        forest = self._ranker.forest()
        if not forest.begins_with(self._known):
            self._known, self._scores = Forest.empty(), np.zeros(len(self._features))
        forest.predict(self._features, slice(len(self._known), None), onto=self._scores)
        self._known = forest
        return self._scores.astype(np.float32)
