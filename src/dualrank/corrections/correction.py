"""What a correction is: it says what a click is worth, and holds what is believed of position.

Naive training, inverse propensity weighting and dual learning are the same loop with another
correction. A correction turns the scores and labels of some lists into the slope of a loss, and may
learn about position from the lists that the ranker learns from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dualrank.corrections.losses import LOSSES, LossOfLabels, softmax_loss
from dualrank.data.click_log import ClickLog, Column
from dualrank.errors import SettingsError
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.batch import Shown
from dualrank.rankers.ranker import Signal, Step
from dualrank.settings import TrainingSettings


@dataclass(frozen=True, eq=False)
class Basis:
    """What a correction is built on: how deep lists are, and what was asked for.

    `log` is the part of the log that is trained on, where labels come from one. `context` is the
    column of the log whose values are told apart, `loss` the name of the loss of corrected labels,
    `features` the training matrix that the lists of the log point into. `ground` is what is known
    of the documents of each list beside their features. `context_sessions` says how many sessions
    there are in each context, where `log` is a sample.
    """

    depth: int
    settings: TrainingSettings
    log: ClickLog | None = None
    propensity: Propensity | None = None
    position_model: str | None = None
    context: str | None = None
    loss: str | None = None
    features: NDArray[np.float32] | None = None
    ground: NDArray[np.float32] | None = None
    context_sessions: NDArray[np.int64] | None = None

    @property
    def loss_of_labels(self) -> LossOfLabels:
        """The loss that was asked for, softmax unless another was."""
        return LOSSES[self.loss or "softmax"]

    @property
    def contexts(self) -> Column | None:
        """The column that tells sessions apart, if one was asked for."""
        if self.context is None:
            return None
        if self.log is None:
            raise SettingsError("contexts are columns of a click log, and there is none")
        return self.log.column(self.context)


class Correction(ABC):
    """What a click is worth, and what is learned about position on the way.

    A correction that learns nothing says only what its `signal` is.
    """

    clicked_only = True
    """Whether lists without a click say nothing, so that they need not be scored."""

    learns = False
    """Whether something about position is learned step by step, beside the ranker."""

    learns_from_unseen = False
    """Whether what is learned about position must come from a ranker that has not seen the clicks
    of these lists, where there is such."""

    slopes_only = False
    """Whether it does more than weigh clicks, so that only rankers that follow slopes take it."""

    regresses = False
    """Whether it regresses clicks on features, which are then scaled, with none missing."""

    is_likelihood = False
    """Whether the loss is that of a model of what was seen, so that its value on held-out lists
    tells which ranker is the best."""

    suits: Mapping[str, float] = {}
    """Settings that suit it where the user says nothing: inverse weights lengthen steps, so what
    has none wants a higher rate."""

    @classmethod
    @abstractmethod
    def build(cls, basis: Basis) -> Correction:
        """The correction for a training."""

    def labels(self, log: ClickLog) -> NDArray[np.floating] | None:
        """What stands for the mean clicks of each list of a log, where that is known beforehand.

        None where clicks are the labels, and `signal` says what they are worth.
        """
        return None

    @abstractmethod
    def signal(self, scores: Tensor, shown: Shown) -> Signal:
        """The loss of these lists, its slope in the scores, and what they tell about position."""

    def position_evidence(self, scores: Tensor, shown: Shown) -> list[Tensor]:
        """What the lists tell about position, by other scores than those that are to move."""
        return self.signal(scores, shown).evidence

    remembers = False
    """Whether it learns from lists that are remembered from earlier logs, each with its mean clicks
    and, where it is settled, the examination that was believed of it."""

    device = torch.device("cpu")
    """Where the steps are computed, once it has been started."""

    def start(self, device: torch.device) -> None:
        """Move what is believed to where the steps are computed."""
        self.device = device

    def believe(self, propensity: Propensity) -> None:
        """Take over what another training has learned about examination, before the first step."""

    def learn(self, evidence: Sequence[Tensor], step: Step) -> None:
        """One step of the belief, on the evidence of all workers."""

    def propensity(self) -> Propensity | None:
        """The examination that is believed, if any."""
        return None

    @property
    def has_ground(self) -> bool:
        """Whether there is a ground, so that a ranker is worth something before its first step."""
        return False

    def worth_of_ground(self) -> float:
        """How many times the ground counts beside the ranker's scores, where there is one."""
        return 1.0

    def state(self) -> dict[str, Tensor]:
        """What is believed and how far the way has been, for checkpoints."""
        return {}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what `state` returned."""

    def optimizer_state(self) -> dict[str, Tensor]:
        """What going on with new clicks needs beside the curve, for model directories."""
        return {}

    def load_optimizer_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what `optimizer_state` returned."""

    @property
    def left_out(self) -> int:
        """Steps of the belief that were left out because their slope was not finite."""
        return 0


def require_positions(propensity: Propensity, depth: int) -> None:
    """Refuse a curve that ends before the lists do."""
    if propensity.depth < depth:
        raise SettingsError(
            f"lists show {depth} documents, but the propensity knows {propensity.depth} positions"
        )


def curves_by_context(
    propensity: Propensity, depth: int, contexts: Sequence[str] | None = None
) -> NDArray[np.float64]:
    """Examination, a row for each of the `contexts`: its own curve, or the common one.

    Without contexts there is one row.
    """
    known = propensity.by_context if contexts is not None else {}
    curves = [known.get(name, propensity) for name in contexts or ("",)]
    for curve in curves:
        require_positions(curve, depth)
    return np.stack([curve.examination[:depth] for curve in curves])


def softmax_signal(
    scores: Tensor, targets: Tensor, shown: Shown, evidence: Sequence[Tensor] = ()
) -> Signal:
    """The signal of corrected labels under the softmax loss."""
    return label_signal(softmax_loss, scores, targets, shown, evidence)


def label_signal(
    loss_of_labels: LossOfLabels,
    scores: Tensor,
    targets: Tensor,
    shown: Shown,
    evidence: Sequence[Tensor] = (),
) -> Signal:
    """The signal of corrected labels under a loss."""
    loss = loss_of_labels(scores, targets, shown)
    return Signal(loss.value, loss.slope, loss.curvature, targets.sum(), targets, list(evidence))
