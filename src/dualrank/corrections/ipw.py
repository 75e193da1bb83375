"""Inverse propensity weighting: a click at position i counts P(o_1)/P(o_i) times.

Joachims, Swaminathan and Schnabel, "Unbiased Learning-to-Rank with Biased Feedback" (WSDM 2017).
The loss is unbiased where examination depends on the position alone and was measured rightly; where
clicks are few, large weights amplify their noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dualrank.corrections.correction import (
    Basis,
    Correction,
    curves_by_context,
    label_signal,
)
from dualrank.corrections.losses import LossOfLabels, softmax_loss
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.batch import Shown
from dualrank.rankers.ranker import Signal


class InversePropensity(Correction):
    """Weights by examination that was measured elsewhere.

    Where sessions are told apart by a column with these `contexts`, each is weighted by the curve
    of its own; one that the propensity does not know, by the common curve.
    """

    remembers = True

    def __init__(
        self,
        propensity: Propensity,
        depth: int,
        max_weight: float = torch.inf,
        contexts: Sequence[str] | None = None,
        loss: LossOfLabels = softmax_loss,
    ) -> None:
        self._loss = loss
        self._propensity = propensity
        weights = 1 / curves_by_context(propensity, depth, contexts)
        self._max_weight = max_weight
        self._weights = torch.from_numpy(weights).float().clamp(max=max_weight)

    @classmethod
    def build(cls, basis: Basis) -> InversePropensity:
        """With the propensity that was given."""
        assert basis.propensity is not None, "the plan has checked that there is one"
        names = None if basis.contexts is None else basis.contexts.names
        limit = basis.settings.max_weight
        return cls(basis.propensity, basis.depth, limit, names, basis.loss_of_labels)

    def start(self, device: torch.device) -> None:
        """Move the weights."""
        super().start(device)
        self._weights = self._weights.to(device)

    def weights(self, shown: Shown) -> Tensor:
        """P(o_1)/P(o_i) as measured, in the context of each list, or as it was when settled."""
        weights = self._weights if shown.contexts is None else self._weights[shown.contexts]
        if shown.settled is None:
            return weights
        before = torch.exp(-shown.settled).clamp(max=self._max_weight)
        return torch.where(torch.isnan(shown.settled), weights, before)

    def signal(self, scores: Tensor, shown: Shown) -> Signal:
        """Clicks times their inverse propensity."""
        return label_signal(self._loss, scores, shown.labels * self.weights(shown), shown)

    def propensity(self) -> Propensity:
        """The curve that was given."""
        return self._propensity
