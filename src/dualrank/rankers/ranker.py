"""What a ranker is: it scores lists, and moves when told the slope of the loss.

A ranker has two forms. Its settings (`DNN`, `Linear`, `RankingSVM`) are plain values that stand in
a plan; `build` makes the ranker itself, which learns and predicts. What a step of learning is
belongs to the ranker: a network makes a step of gradient descent, an ensemble grows trees, the
Ranking SVM solves its problem at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dualrank.data.lists import RankedLists
from dualrank.errors import SettingsError
from dualrank.rankers.batch import Shown
from dualrank.rankers.forest import Forest
from dualrank.settings import TrainingSettings


@dataclass(frozen=True, eq=False)
class Signal:
    """What a correction makes of some lists: which way scores should move, and what it learned.

    `loss` is summed over the lists, `slope` is ∂loss/∂score for every displayed document (0 at
    padding), and `curvature` gives ∂²loss/∂score² where a ranker asks for it. `targets` are the
    corrected labels, if there are such, and `clicks` their sum. `evidence` are sums over lists that
    the correction learns about position from: those of two halves of a batch add up to the whole's.
    """

    loss: Tensor
    slope: Tensor
    curvature: Callable[[], Tensor]
    clicks: Tensor
    targets: Tensor | None = None
    evidence: list[Tensor] = field(default_factory=list)


@dataclass(frozen=True)
class Step:
    """What a step knows of itself: sessions drawn, corrected clicks, share of the training done."""

    drawn: int
    clicks: Tensor
    done: float = 0.0


@dataclass(frozen=True)
class Layer:
    """h ↦ activation(W h + b); `activation` is the name of one, or None at the end."""

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]
    activation: str | None


Scores = Callable[[], NDArray[np.float32]]


class Ranker(ABC):
    """Scores documents by their features; learns by slopes.

    `start` comes before learning, and brings the training matrix that lists point into. A step then
    is `score`, a correction's `Signal`, `evidence` and `move`. The evidence of the shares of a
    batch adds up to that of the whole, so that several workers make the step of one.

    What takes the same lists again and again may learn their clicks by heart. It gives
    `score_unseen` for what is believed about position, which must not rest on that.
    """

    whole: ClassVar[bool] = False
    """Whether every step takes all lists, not some that are drawn."""
    at_once: ClassVar[bool] = False
    """Whether all lists are taken in one step, as by a solver."""
    scaled: ClassVar[bool] = True
    """Whether features should be brought to similar ranges for it."""
    takes_missing: ClassVar[bool] = False
    """Whether features may be missing (nan)."""
    suits: ClassVar[Mapping[str, float]] = {}
    """Settings that suit it where the user says nothing, whatever would suit the correction."""
    unused: ClassVar[frozenset[str]] = frozenset()
    """Settings that say nothing to it, nor to what is learned about position beside it."""
    by_list: ClassVar[bool] = False
    """Whether a document's score depends on the others of its list."""

    @abstractmethod
    def start(
        self,
        features: Tensor,
        settings: TrainingSettings,
        queries: NDArray[np.int32] | None = None,
    ) -> None:
        """Get ready to learn from lists that point into these rows, on their device.

        `queries` says to which query each row belongs, where every step takes all lists.
        """

    @abstractmethod
    def score(self, shown: Shown) -> Tensor:
        """Scores laid out like the lists; padding has 0."""

    def score_unseen(self, shown: Shown) -> Tensor | None:
        """Scores by what has not learned from these lists; None where the others serve as well."""
        return None

    @abstractmethod
    def evidence(self, shown: Shown, signal: Signal) -> list[Tensor]:
        """What the lists that were scored last tell the ranker, as sums over lists.

        For a network these are gradients. What is not a sum over lists is given by document: an
        ensemble lays slope and curvature out over all rows of the training matrix.
        """

    @abstractmethod
    def move(self, evidence: Sequence[Tensor], step: Step) -> None:
        """One step on the evidence of all workers."""

    def finish(self) -> None:
        """Let go of what was only needed for learning."""

    @abstractmethod
    def predict(
        self, features: NDArray[np.float32], offsets: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """One score per row; rows `offsets[q]:offsets[q + 1]` are the candidates of one query.

        Rankers with `by_list` are always given the offsets.
        """

    def follow(
        self, features: NDArray[np.float32], offsets: NDArray[np.int64] | None = None
    ) -> Scores:
        """What gives the scores of these documents whenever it is asked, as learning goes on."""
        return lambda: self.predict(features, offsets)

    def follow_lists(self, features: NDArray[np.float32], lists: RankedLists) -> Scores:
        """The same for displayed lists, 0 at padding; each document once, unless lists matter."""
        mask = lists.mask
        shown, offsets = lists.documents[mask], None
        rows, row_of = np.unique(shown, return_inverse=True)
        if self.by_list:
            rows, row_of = shown, np.arange(len(shown))
            offsets = np.append(0, np.cumsum(mask.sum(axis=1)))
        documents = self.follow(np.ascontiguousarray(features[rows]), offsets)

        def laid_out() -> NDArray[np.float32]:
            scores = np.zeros(mask.shape, dtype=np.float32)
            scores[mask] = documents()[row_of]
            return scores

        return laid_out

    def predict_lists(
        self, features: NDArray[np.float32], lists: RankedLists
    ) -> NDArray[np.float32]:
        """Scores of displayed lists, 0 at padding."""
        return self.follow_lists(features, lists)()

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Plain values from which, with `tensors`, the ranker's settings `restore` it."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """What was learned, by name: what a model directory keeps."""

    @abstractmethod
    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Become what these were taken from; a KeyError or ValueError where they do not fit."""

    def state(self) -> dict[str, Tensor]:
        """All that is needed to go on learning: what was learned, and how far the way has been."""
        return self.tensors()

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what `state` returned."""
        self.load_tensors(state)

    def optimizer_state(self) -> dict[str, Tensor]:
        """What going on with new clicks needs beside what was learned, for model directories."""
        return {}

    def load_optimizer_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what `optimizer_state` returned, once started."""

    def outcome(self) -> dict[str, Any]:
        """What the manifest should say of how learning ended, beside its history."""
        return {}

    @property
    def left_out(self) -> int:
        """Steps that were left out because their slope was not finite."""
        return 0

    def layers(self) -> list[Layer] | None:
        """The ranker as layers of a network on scaled features, for export; None if it is none."""
        return None

    def forest(self) -> Forest | None:
        """The ranker as trees on features that are not scaled, for export; None if it is none."""
        return None

    def plus(self, other: Ranker, weight: float) -> Ranker:
        """The ranker whose scores are those of this one and `weight` times the other's."""
        raise SettingsError(f"{type(self).__name__} and {type(other).__name__} do not add up")

    def is_finite(self) -> bool:
        """Whether what was learned holds numbers only."""
        return all(bool(torch.isfinite(t).all()) for t in self.tensors().values())


class RankerSettings(ABC):
    """A ranker before it is built: plain values, written into manifests under `kind`."""

    kind: ClassVar[str]
    makes: ClassVar[type[Ranker]]

    @abstractmethod
    def build(self, inputs: int, seed: int = 0) -> Ranker:
        """A ranker for this many features, initialised from the seed."""

    @classmethod
    def restore(cls, description: Mapping[str, Any]) -> Ranker:
        """A ranker as `describe` described it, before its tensors are loaded."""
        return cls.makes(**description)


def check_shapes(held: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> None:
    """Refuse tensors of other names, shapes or kinds than those that are held."""
    if held.keys() != given.keys():
        raise ValueError(f"holds {', '.join(given)} instead of {', '.join(held)}")
    for name, tensor in held.items():
        if given[name].shape != tensor.shape:
            raise ValueError(f"{name} has shape {tuple(given[name].shape)}")
        if given[name].dtype != tensor.dtype:
            raise ValueError(f"{name} holds {given[name].dtype} instead of {tensor.dtype}")
