"""How clicks are corrected: not at all, by given propensities, or by learning them jointly.

Naive training, inverse propensity weighting and dual learning are the same loop with another
weighting. A weighting says how much a click at each displayed position counts, and may learn from
the batch that the ranker learns from.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from dualrank.errors import SettingsError
from dualrank.learning.losses import masked_log_softmax, ratio_to_first, softmax_cross_entropy
from dualrank.learning.optimizer import Optimizer
from dualrank.learning.settings import TrainingSettings
from dualrank.propensity.position_models import PositionModel, PositionVariables
from dualrank.propensity.propensity import Propensity


class Weighting(Protocol):
    """How much a click counts."""

    def weigh(
        self, log_relevance: Tensor, labels: Tensor, mask: Tensor, drawn: int
    ) -> Tensor | float:
        """The weight of a click at every position of these lists, without gradient.

        What is learned from the lists, given the ranker's log P_S(r = 1) on them, is learned here,
        but changes the weights of the next step only.
        """

    def propensity(self) -> Propensity | None:
        """The examination that is believed, if any."""

    def optimizer(self) -> Optimizer | None:
        """What is learned, for checkpoints."""


class NoCorrection:
    """Every click counts the same: the naive ranker, and training on grades."""

    def weigh(self, log_relevance: Tensor, labels: Tensor, mask: Tensor, drawn: int) -> float:
        """One."""
        return 1.0

    def propensity(self) -> None:
        """Nothing is believed."""

    def optimizer(self) -> None:
        """Nothing is learned."""


class GivenPropensity:
    """Inverse propensity weighting with examination that was measured elsewhere."""

    def __init__(self, propensity: Propensity, depth: int, max_weight: float = torch.inf) -> None:
        if propensity.depth < depth:
            raise SettingsError(
                f"lists show {depth} documents, but the propensity knows {propensity.depth} "
                "positions"
            )
        self._propensity = propensity
        weights = torch.from_numpy(propensity.weights[:depth]).float()
        self._weights = weights.clamp(max=max_weight)

    def weigh(self, log_relevance: Tensor, labels: Tensor, mask: Tensor, drawn: int) -> Tensor:
        """P(o_1)/P(o_i) as measured."""
        return self._weights

    def propensity(self) -> Propensity:
        """What was given."""
        return self._propensity

    def optimizer(self) -> None:
        """Nothing is learned."""


class DualLearning:
    """The propensity model of the Dual Learning Algorithm, learned beside the ranker.

    Its loss is l̂_IRW of equation (10): clicks weighted by P_S(r_1)/P_S(r_x), the inverse relevance
    that the ranker sees at this step.
    """

    def __init__(
        self, depth: int, settings: TrainingSettings, model: PositionModel | None = None
    ) -> None:
        self.model = model or PositionVariables(depth)
        self._settings = settings
        self._optimizer = Optimizer(self.model, settings.propensity_rate, settings)

    def weigh(self, log_relevance: Tensor, labels: Tensor, mask: Tensor, drawn: int) -> Tensor:
        """P_E(o_1)/P_E(o_i) as believed before this batch, and one step of φ on l̂_IRW."""
        log_examination = masked_log_softmax(self.model(mask), mask)
        weights = ratio_to_first(log_examination, self._settings.max_weight)
        inverse_relevance = ratio_to_first(log_relevance, self._settings.max_weight)
        losses = softmax_cross_entropy(log_examination, labels, inverse_relevance)
        self._optimizer.step(losses.sum(), drawn, inverse_relevance * labels)
        return weights

    def propensity(self) -> Propensity:
        """The learned curve."""
        return Propensity.of(self.model.examination(), method="dual learning")

    def optimizer(self) -> Optimizer:
        """The state of φ."""
        return self._optimizer
