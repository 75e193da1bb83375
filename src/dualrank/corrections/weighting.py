"""How clicks are corrected: not at all, by given propensities, or by learning them jointly.

Naive training, inverse propensity weighting and dual learning are the same loop with another
weighting. A weighting says how much a click at each displayed position counts, and may learn from
the batch that the ranker learns from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from dualrank.corrections.losses import ratio_to_first
from dualrank.corrections.position_models import PositionModel, PositionVariables
from dualrank.errors import SettingsError
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.optimizer import Optimizer
from dualrank.settings import TrainingSettings


class Weighting(Protocol):
    """How much a click counts."""

    def weights(self, contexts: Tensor | None = None) -> Tensor | float:
        """The weight of a click at every position, as believed now, without gradient.

        `contexts` says in which context each list of a batch was shown, where the log tells them
        apart; there is then a row per list.
        """

    def evidence(
        self, log_relevance: Tensor, labels: Tensor, mask: Tensor, contexts: Tensor | None = None
    ) -> list[Tensor]:
        """What can be learned from these lists, given the ranker's log P_S(r = 1) on them.

        They are sums over lists: those of two halves of a batch add up to those of the whole.
        """

    def learn(self, evidence: Sequence[Tensor], drawn: int) -> None:
        """One step on the evidence of `drawn` sessions, which the next batch is weighted by."""

    def to(self, device: torch.device) -> None:
        """Move what is believed to where the steps are computed."""

    def propensity(self) -> Propensity | None:
        """The examination that is believed, if any."""

    def optimizer(self) -> Optimizer | None:
        """What is learned, for checkpoints."""


class Unlearned:
    """The half of a weighting that learns nothing."""

    def evidence(
        self, log_relevance: Tensor, labels: Tensor, mask: Tensor, contexts: Tensor | None = None
    ) -> list[Tensor]:
        """Nothing."""
        return []

    def learn(self, evidence: Sequence[Tensor], drawn: int) -> None:
        """Nothing is learned."""

    def optimizer(self) -> None:
        """Nothing is learned."""

    def to(self, device: torch.device) -> None:
        """Nothing to move."""


class NoCorrection(Unlearned):
    """Every click counts the same: the naive ranker, and training on grades."""

    def weights(self, contexts: Tensor | None = None) -> float:
        """One."""
        return 1.0

    def propensity(self) -> None:
        """Nothing is believed."""


def require_positions(propensity: Propensity, depth: int) -> None:
    """Refuse a curve that ends before the lists do."""
    if propensity.depth < depth:
        raise SettingsError(
            f"lists show {depth} documents, but the propensity knows {propensity.depth} positions"
        )


class GivenPropensity(Unlearned):
    """Inverse propensity weighting with examination that was measured elsewhere.

    Where sessions are told apart by a column with these `contexts`, each is weighted by the curve
    of its own; one that the propensity does not know, by the common curve.
    """

    def __init__(
        self,
        propensity: Propensity,
        depth: int,
        max_weight: float = torch.inf,
        contexts: Sequence[str] | None = None,
    ) -> None:
        known = propensity.by_context if contexts is not None else {}
        curves = [known.get(name, propensity) for name in contexts or ("",)]
        for curve in curves:
            require_positions(curve, depth)
        self._propensity = propensity
        weights = np.stack([curve.weights[:depth] for curve in curves])
        self._weights = torch.from_numpy(weights).float().clamp(max=max_weight)

    def weights(self, contexts: Tensor | None = None) -> Tensor:
        """P(o_1)/P(o_i) as measured."""
        return self._weights if contexts is None else self._weights[contexts]

    def to(self, device: torch.device) -> None:
        """Move the weights."""
        self._weights = self._weights.to(device)

    def propensity(self) -> Propensity:
        """What was given."""
        return self._propensity


class DualLearning:
    """The propensity model of the Dual Learning Algorithm, learned beside the ranker.

    Its loss is l̂_IRW of equation (10): clicks weighted by P_S(r_1)/P_S(r_x), the inverse relevance
    that the ranker sees at this step. With a_{l,i} for the weighted clicks on position i of list l,
    and g for the scores of the position model, the slope of the loss is

        ∂l/∂g_i = Σ_l ( Σ_j a_{l,j} · e^{g_i} / Σ_{j in l} e^{g_j}  −  a_{l,i} )

    which is written out here, because on ten numbers autograd spends its time around the work.
    """

    def __init__(
        self, depth: int, settings: TrainingSettings, model: PositionModel | None = None
    ) -> None:
        self.model = model or PositionVariables(depth)
        self._settings = settings
        self._optimizer = Optimizer(self.model, settings.propensity_rate, settings)

    def weights(self, contexts: Tensor | None = None) -> Tensor:
        """P_E(o_1)/P_E(o_i) as believed now."""
        with torch.no_grad():
            weights = ratio_to_first(self.model(), self._settings.max_weight)
        return weights if contexts is None else weights[contexts]

    @torch.no_grad()
    def evidence(
        self, log_relevance: Tensor, labels: Tensor, mask: Tensor, contexts: Tensor | None = None
    ) -> list[Tensor]:
        """∂l/∂g of l̂_IRW, and the sum of its weighted clicks."""
        clicks = ratio_to_first(log_relevance, self._settings.max_weight) * labels * mask
        return [_slope(self.model(), clicks, mask, contexts), clicks.sum()]

    def learn(self, evidence: Sequence[Tensor], drawn: int) -> None:
        """One step of φ."""
        slope, clicks = evidence
        gradients = self.model.gradients(self.model(), slope, drawn)
        self._optimizer.move(gradients, drawn, clicks)

    def to(self, device: torch.device) -> None:
        """Move φ."""
        self.model.to(device)
        self._optimizer.to(device)

    def propensity(self) -> Propensity:
        """The learned curve."""
        return self.model.propensity()

    def optimizer(self) -> Optimizer:
        """The state of φ."""
        return self._optimizer


def _slope(scores: Tensor, clicks: Tensor, mask: Tensor, contexts: Tensor | None) -> Tensor:
    """∂l/∂g, one row per context. The masks of lists are 0 and 1 from here on."""
    chances = torch.exp(scores - scores.amax(dim=1, keepdim=True))
    shown = mask.to(chances.dtype)
    if contexts is None:
        per_chance = clicks.sum(dim=1) / (shown @ chances[0])
        return (chances[0] * (per_chance @ shown) - clicks.sum(dim=0))[None]
    of_list = chances[contexts] * shown
    per_chance = clicks.sum(dim=1, keepdim=True) / of_list.sum(dim=1, keepdim=True)
    return torch.zeros_like(scores).index_add_(0, contexts, of_list * per_chance - clicks)
