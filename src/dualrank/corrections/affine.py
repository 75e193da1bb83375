"""Affine correction: what is clicked from trust in the position is taken off, the rest weighed.

Vardasbi, Oosterhuis and de Rijke, "When Inverse Propensity Scoring does not Work: Affine
Corrections for Unbiased Learning to Rank" (CIKM 2020). Where users click what stands on top because
it stands there, inverse propensities cannot be right: P(click) is no product. With

    P(c_k = 1 | x) = α_k r(x) + β_k        the label        (c_k − β_k) / α_k

is relevance in the mean, also where nothing was clicked: its label is below 0. Without trust β is
what documents of no relevance are clicked, and taking it off leaves the order as it is.

α and β are read off the log by a regression on features (`click_regression`): in the click model
`pbm-trust` every document has a relevance of its own, and where each is seen at one position only,
which is usual, that explains any click-through. Wrong where clicks depend on clicks above, and
where the logging ranker knew what features do not tell.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualrank.corrections.click_regression import regress_clicks
from dualrank.corrections.correction import Basis
from dualrank.corrections.fixed_labels import FixedLabels, mean_over_sessions
from dualrank.corrections.losses import LossOfLabels, softmax_loss
from dualrank.data.click_log import ClickLog
from dualrank.errors import SettingsError


class Affine(FixedLabels):
    """Labels by α (`slopes`) and β (`offsets`) of positions."""

    regresses = True

    def __init__(
        self,
        slopes: NDArray[np.floating],
        offsets: NDArray[np.floating],
        loss: LossOfLabels = softmax_loss,
    ) -> None:
        super().__init__(loss)
        self.slopes, self.offsets = slopes, offsets

    @classmethod
    def build(cls, basis: Basis) -> Affine:
        """As the log and its features tell."""
        if basis.log is None or basis.features is None:
            raise SettingsError("method affine learns from a click log")
        found = regress_clicks(basis.log, basis.features, seed=basis.settings.seed)
        return cls(found.slopes, found.offsets, basis.loss_of_labels)

    def labels(self, log: ClickLog) -> NDArray[np.float64]:
        """(c − β)/α, the mean over sessions."""
        clicks = mean_over_sessions(log, log.clicks)
        return np.where(log.lists.mask, (clicks - self.offsets) / self.slopes, 0.0)
