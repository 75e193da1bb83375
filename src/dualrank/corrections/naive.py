"""No correction: every click counts the same. Right where position does not matter, and on grades.

The ranker learns to repeat the order in which results were shown, as far as clicks follow it.
"""

from __future__ import annotations

from torch import Tensor

from dualrank.corrections.correction import Basis, Correction, softmax_signal
from dualrank.rankers.batch import Shown
from dualrank.rankers.ranker import Signal


class Naive(Correction):
    """The naive ranker of the paper (NoCorrect), and training on grades."""

    @classmethod
    def build(cls, basis: Basis) -> Naive:
        """There is nothing to know."""
        return cls()

    def signal(self, scores: Tensor, shown: Shown) -> Signal:
        """Labels as they are."""
        return softmax_signal(scores, shown.labels, shown)
