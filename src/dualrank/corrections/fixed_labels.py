"""Labels that are corrected once, before the first step, and may be negative.

Where what a session is worth depends on more than where it was clicked (on what was not clicked, on
clicks above), it is computed for every row of the log and averaged over the sessions of each list:
losses are linear in labels. A list without a click then has something to say too.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from dualrank.corrections.correction import Correction
from dualrank.corrections.losses import LossOfLabels, softmax_loss
from dualrank.data.click_log import ClickLog
from dualrank.rankers.batch import Shown
from dualrank.rankers.ranker import Signal


class FixedLabels(Correction):
    """A correction that is wholly in its labels.

    Those of one list may add up to less than nothing, where the loss is not convex: the curvature
    is that of their sizes, which bounds it.
    """

    clicked_only = False
    slopes_only = True

    def __init__(self, loss: LossOfLabels = softmax_loss) -> None:
        self._loss = loss

    @abstractmethod
    def labels(self, log: ClickLog) -> NDArray[np.float64]:
        """The corrected labels, `[lists, positions]`."""

    def signal(self, scores: Tensor, shown: Shown) -> Signal:
        """Labels as they have been corrected."""
        sizes = shown.labels.abs()
        loss = self._loss(scores, shown.labels, shown)
        bound = self._loss(scores, sizes, shown).curvature
        return Signal(loss.value, loss.slope, bound, sizes.sum())


def mean_over_sessions(log: ClickLog, values: NDArray[np.generic]) -> NDArray[np.float64]:
    """Values of the rows of a log, averaged over the sessions of each list."""
    sums = [np.bincount(log.list_of, log.counts * column, len(log.lists)) for column in values.T]
    return np.stack(sums, axis=1) / np.maximum(log.sessions_per_list, 1)[:, None]
