"""Dual learning: examination is learned beside the ranker, each by the other's inverse weights.

Ai, Bi, Luo, Guo and Croft, "Unbiased Learning to Rank with Unbiased Propensity Estimation" (SIGIR
2018). Right where clicks are examination of the position times relevance of the document, and where
features tell relevance apart from what the logging ranker knew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from dualrank.corrections.correction import (
    Basis,
    Correction,
    label_signal,
    require_positions,
)
from dualrank.corrections.losses import LossOfLabels, ratio_to_first, softmax_loss
from dualrank.corrections.position_models import (
    POSITION_MODELS,
    ContextualPositions,
    PositionModel,
    PositionVariables,
)
from dualrank.corrections.whole_steps import bend_of_softmax, move_some_of_the_way
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.batch import Shown
from dualrank.rankers.optimizer import Optimizer
from dualrank.rankers.ranker import Signal, Step
from dualrank.settings import TrainingSettings


class DualLearning(Correction):
    """The propensity model of the Dual Learning Algorithm, learned beside the ranker.

    The ranker's loss is l̂_IPW, with the weights P_E(o_1)/P_E(o_i) as believed at this step. The
    loss of the belief is l̂_IRW of equation (10): clicks weighted by P_S(r_1)/P_S(r_x), the inverse
    relevance that the ranker sees at this step. With a_{l,i} for the weighted clicks on position i
    of list l, and g for the scores of the position model, its slope is

        ∂l/∂g_i = Σ_l ( Σ_j a_{l,j} · e^{g_i} / Σ_{j in l} e^{g_j}  −  a_{l,i} )

    A ranker that has learned these very clicks by heart would find all that was clicked relevant.
    """

    learns = True
    learns_from_unseen = True

    def __init__(
        self,
        depth: int,
        settings: TrainingSettings,
        model: PositionModel | None = None,
        loss: LossOfLabels = softmax_loss,
    ) -> None:
        self._loss = loss
        self.model = model or PositionVariables(depth)
        self._settings = settings
        self.start(torch.device("cpu"))

    @classmethod
    def build(cls, basis: Basis) -> DualLearning:
        """With the position model that was asked for; a context means a curve for each value."""
        settings, column = basis.settings, basis.contexts
        if column is None or basis.log is None:
            form = POSITION_MODELS[basis.position_model or "variables"]
            model = form(basis.depth, settings.seed)
        else:
            counts = np.bincount(column.codes, basis.log.counts, len(column.names)).astype(int)
            sessions = dict(zip(column.names, counts.tolist(), strict=True))
            model = ContextualPositions(basis.depth, sessions, str(basis.context))
        return cls(basis.depth, settings, model, basis.loss_of_labels)

    def start(self, device: torch.device) -> None:
        """Move φ."""
        super().start(device)
        self.model.to(device)
        parameters = list(self.model.parameters())
        self._optimizer = Optimizer(parameters, self._settings.propensity_rate, self._settings)

    def believe(self, propensity: Propensity) -> None:
        """Begin with this curve."""
        require_positions(propensity, len(self.model()[0]))
        self.model.believe(propensity)

    @torch.no_grad()
    def signal(self, scores: Tensor, shown: Shown) -> Signal:
        """Clicks by inverse propensity for the ranker, by inverse relevance for the belief."""
        weights = self.of_lists(ratio_to_first(self.model(), self._settings.max_weight), shown)
        evidence = self.position_evidence(scores, shown)
        return label_signal(self._loss, scores, shown.labels * weights, shown, evidence)

    @torch.no_grad()
    def position_evidence(self, scores: Tensor, shown: Shown) -> list[Tensor]:
        """The slope of l̂_IRW and the sum of the clicks in it; of all lists, its curvature too."""
        seen = ratio_to_first(scores, self._settings.max_weight) * shown.labels
        if not self.solves(shown):
            return [_slope(self.model(), seen, shown), seen.sum()]
        expected = _expected(self.model(), seen, shown)
        slope = (expected - seen).sum(dim=0, keepdim=True)
        return [slope, seen.sum(), bend_of_softmax(expected)]

    def solves(self, shown: Shown) -> bool:
        """Whether these are all lists, and φ a number per position, so that φ can be solved for."""
        return shown.sessions is not None and isinstance(self.model, PositionVariables)

    @staticmethod
    def of_lists(table: Tensor, shown: Shown) -> Tensor:
        """Values of a table by context and position, for each list in its context."""
        return table if shown.contexts is None else table[shown.contexts]

    def learn(self, evidence: Sequence[Tensor], step: Step) -> None:
        """One step of φ."""
        slope, clicks, *bend = evidence
        if bend:
            self.solve(list(self.model.parameters()), slope[0], bend[0])
            return
        gradients = self.model.gradients(slope, step.drawn)
        self._optimizer.move(gradients, replace(step, clicks=clicks))

    def solve(self, parameters: Sequence[Tensor], slope: Tensor, bend: Tensor) -> None:
        """Some of the way to where the loss of all lists is least."""
        rate = self._settings.propensity_rate
        self._optimizer.left_out += not move_some_of_the_way(parameters, slope, bend, rate)

    def propensity(self) -> Propensity | None:
        """The learned curve."""
        return self.model.propensity()

    def state(self) -> dict[str, Tensor]:
        """The state of φ."""
        return self._optimizer.state()

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on with φ."""
        self._optimizer.load_state(state)

    @property
    def left_out(self) -> int:
        """Steps of φ whose gradient was not finite."""
        return self._optimizer.left_out


def _slope(scores: Tensor, clicks: Tensor, shown: Shown) -> Tensor:
    """∂l/∂g, one row per context."""
    chances = torch.exp(scores - scores.amax(dim=1, keepdim=True))
    if shown.contexts is None and shown.full:
        expected = clicks.sum() / chances.sum() * chances
        return expected - clicks.sum(dim=0)
    apart = _expected(scores, clicks, shown) - clicks
    if shown.contexts is None:
        return apart.sum(dim=0, keepdim=True)
    return torch.zeros_like(scores).index_add_(0, shown.contexts, apart)


def _expected(scores: Tensor, clicks: Tensor, shown: Shown) -> Tensor:
    """As many clicks on each list, spread over its positions as they are thought to be examined."""
    chances = torch.exp(scores - scores.amax(dim=1, keepdim=True))
    of_list = (chances if shown.contexts is None else chances[shown.contexts]) * shown.weight
    total = clicks.sum(dim=1, keepdim=True)
    return of_list * (total / of_list.sum(dim=1, keepdim=True))
