"""No correction: every click counts the same. Right where position does not matter, and on grades.

The ranker learns to repeat the order in which results were shown, as far as clicks follow it.
"""

from __future__ import annotations

from torch import Tensor

from dualrank.corrections.correction import Basis, Correction, label_signal
from dualrank.corrections.losses import LossOfLabels, softmax_loss
from dualrank.rankers.batch import Shown
from dualrank.rankers.ranker import Signal


class Naive(Correction):
    """The naive ranker of the paper (NoCorrect), and training on grades."""

    remembers = True

    def __init__(self, loss: LossOfLabels = softmax_loss) -> None:
        self._loss = loss

    @classmethod
    def build(cls, basis: Basis) -> Naive:
        """There is nothing to know but the loss."""
        return cls(basis.loss_of_labels)

    def signal(self, scores: Tensor, shown: Shown) -> Signal:
        """Labels as they are."""
        return label_signal(self._loss, scores, shown.labels, shown)
