"""The Ranking SVM with propensity-weighted hinge (Joachims, Swaminathan, Schnabel 2017)."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists
from dualrank.errors import DataError, SettingsError
from dualrank.rankers.batch import Shown
from dualrank.rankers.hinge_solver import descend, hinge_loss, make_blocks, weights_of
from dualrank.rankers.pairs import (
    Pairs,
    preference_pairs_from_clicks,
    preference_pairs_from_grades,
)
from dualrank.rankers.ranker import Layer, Ranker, RankerSettings, Signal, Step, check_shapes
from dualrank.settings import TrainingSettings

logger = logging.getLogger(__name__)

# Measuring the gap costs about half an epoch.
EPOCHS_BETWEEN_CHECKS = 4

Progress = Callable[[int, float], None]


@dataclass(frozen=True, eq=False)
class SVMSolution:
    """A linear ranker w and the proof of how near it is to the optimum.

    `duals` holds α, one number per pair. `duality_gap` is (primal − dual) / primal: no w has an
    `objective` lower than this one by a larger share.
    """

    weights: NDArray[np.float64]
    duals: NDArray[np.float64] = field(repr=False)
    objective: float
    duality_gap: float
    epochs: int
    converged: bool

    def score(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """w·x for each document."""
        return features @ self.weights.astype(np.float32)


class SVMRanker(Ranker):
    """w·x, solved for in one step over all clicks."""

    whole = at_once = True

    def __init__(self, inputs: int, settings: RankingSVM | None = None) -> None:
        self.weights = torch.zeros(inputs, dtype=torch.float64)
        self._settings = settings or RankingSVM()
        self._features = np.zeros((0, inputs), dtype=np.float32)
        self.proof = torch.zeros(2, dtype=torch.float64)
        """The duality gap, and whether it is as small as was asked for."""

    def start(
        self,
        features: Tensor,
        settings: TrainingSettings,
        queries: NDArray[np.int32] | None = None,
    ) -> None:
        """Keep the features in main memory, where the solver works."""
        self._features = features.cpu().numpy()

    def score(self, shown: Shown) -> Tensor:
        """w·x, row by row."""
        scores = self.predict(self._features[shown.rows.cpu().numpy()])
        return shown.lay_out(torch.from_numpy(scores).to(shown.rows.device))

    def evidence(self, shown: Shown, signal: Signal) -> list[Tensor]:
        """The solution; of several workers each has all lists, and finds the same."""
        if signal.targets is None or shown.queries is None:
            raise SettingsError("the Ranking SVM learns from weighted clicks, all at once")
        lists = RankedLists(shown.documents.cpu().numpy(), shown.queries)
        found = self._settings.fit_clicks(
            self._features, lists, shown.labels.cpu().numpy(), signal.targets.cpu().numpy()
        )
        self.proof = torch.tensor([found.duality_gap, found.converged], dtype=torch.float64)
        return [torch.from_numpy(found.weights)]

    def move(self, evidence: Sequence[Tensor], step: Step) -> None:
        """Become the solution."""
        self.weights = evidence[0].double()

    def finish(self) -> None:
        """Let go of the training data."""
        self._features = self._features[:0]

    def predict(
        self, features: NDArray[np.float32], offsets: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """w·x for each document."""
        # Scores that overflow are infinite without a warning, as those of networks are.
        with np.errstate(over="ignore", invalid="ignore"):
            return features @ self.weights.numpy().astype(np.float32)

    def describe(self) -> dict[str, Any]:
        """How many features it knows."""
        return {"inputs": len(self.weights)}

    def tensors(self) -> dict[str, Tensor]:
        """The weights, and how near they are to the optimum."""
        return {"weights": self.weights, "proof": self.proof}

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over both."""
        check_shapes(self.tensors(), tensors)
        self.weights, self.proof = tensors["weights"].clone(), tensors["proof"].clone()

    def outcome(self) -> dict[str, Any]:
        """C, and how near the solution is to the optimum."""
        gap, converged = self.proof.tolist()
        return {"C": self._settings.C, "duality_gap": gap, "converged": bool(converged)}

    def plus(self, other: Ranker, weight: float) -> Ranker:
        """w + weight · v."""
        if not isinstance(other, SVMRanker) or len(self.weights) != len(other.weights):
            return super().plus(other, weight)
        both = SVMRanker(len(self.weights), self._settings)
        both.weights = self.weights + weight * other.weights
        return both

    def layers(self) -> list[Layer]:
        """One, without bias."""
        weight = self.weights.numpy().astype(np.float32)[None]
        return [Layer(weight, np.zeros(1, np.float32), None)]


@dataclass(frozen=True)
class RankingSVM(RankerSettings):
    """Settings of the Ranking SVM.

    As a ranker it takes all clicks at once, each with the weight that a correction gives it.
    `fit_grades` and `fit_clicks` solve for arrays, and give the solution with its proof.

    >>> data = Dataset.from_arrays([[0.0], [1.0], [0.4]], qid=[1, 1, 1], grades=[0, 2, 1])
    >>> svm = RankingSVM(C=20.0).fit_grades(data)
    >>> svm.score(data.features).argmax()
    np.int64(1)
    """

    kind = "svm"
    makes = SVMRanker

    C: Annotated[float, "The SVM's weight of errors."] = 100.0
    tolerance: float = 1e-4
    max_epochs: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.C) and self.C > 0):
            raise SettingsError(f"C of the ranking SVM is {self.C:g}; it must be a positive number")
        for name in ("tolerance", "max_epochs"):
            if not getattr(self, name) > 0:
                raise SettingsError(
                    f"{name} of the ranking SVM is {getattr(self, name):g}; it must be positive"
                )

    def build(self, inputs: int, seed: int = 0) -> SVMRanker:
        """A ranker that has learned nothing yet."""
        return SVMRanker(inputs, replace(self, seed=seed))

    def fit_grades(self, dataset: Dataset) -> SVMSolution:
        """Learn from graded documents: the higher grade above the lower, within each query."""
        return self.solve(dataset.features, preference_pairs_from_grades(dataset))

    def fit_clicks(
        self,
        features: NDArray[np.float32],
        lists: RankedLists,
        clicks: ArrayLike,
        weighted: ArrayLike | None = None,
    ) -> SVMSolution:
        """Learn from click counts per displayed document, worth `weighted` where that is given."""
        return self.solve(features, preference_pairs_from_clicks(lists, clicks, weighted))

    def solve(
        self, features: NDArray[np.float32], pairs: Pairs, *, progress: Progress | None = None
    ) -> SVMSolution:
        """The w that minimises, over the preferences (i, j) with weights a_ij,

            ½‖w‖² + C/n · Σ_(i,j) a_ij · max(0, 1 − w·(x_i − x_j)).

        For clicks this is Propensity SVM-Rank (Joachims et al. 2017): a_ij is the number of clicks
        on i over the examination of its position and n the number of clicks.

        The solver stops when the relative duality gap, measured every few epochs, is at most
        `tolerance`; a warning is logged if `max_epochs` come first. Epochs grow about in proportion
        to C/n · a_ij. `progress` is called with the epoch and the gap. Features should be scaled to
        similar ranges: the regulariser treats them alike. Beside the pairs, memory is taken by the
        square of each query's number of documents.
        """
        if not (pairs.weight > 0).any():
            raise DataError("nothing to learn from: no pair of documents has a positive weight")
        # Read-only like a memory-mapped file, so that the kernels are compiled for one type only.
        features = np.ascontiguousarray(features, dtype=np.float32).view()
        features.flags.writeable = False
        U = self.C / pairs.normaliser * pairs.weight
        blocks = make_blocks(features, pairs)
        rng = np.random.default_rng(self.seed)
        alpha = np.zeros(len(pairs))
        w = np.zeros(features.shape[1])
        for epoch in range(1, self.max_epochs + 1):
            descend(features, blocks, rng.permutation(len(blocks.row_offsets) - 1), U, alpha, w)
            if epoch % EPOCHS_BETWEEN_CHECKS and epoch < self.max_epochs:
                continue
            # Summed afresh, so that rounding does not pile up and the gap is that of α itself.
            w = weights_of(features, blocks, alpha)
            primal = 0.5 * w @ w + hinge_loss(features, blocks, U, w)
            gap = (primal - (alpha.sum() - 0.5 * w @ w)) / primal
            if progress is not None:
                progress(epoch, float(gap))
            if gap <= self.tolerance:
                break
        converged = bool(gap <= self.tolerance)
        if not converged:
            logger.warning(
                "the ranking SVM stopped after %d epochs with a duality gap of %.1e, above the "
                "tolerance of %.1e; a smaller C or more epochs would close it",
                epoch,
                gap,
                self.tolerance,
            )
        return SVMSolution(w, alpha, float(primal), float(gap), epoch, converged)
