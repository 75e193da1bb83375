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
from dualrank.corrections.whole_steps import bend_of_softmax, by_context, some_of_the_way
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
    remembers = True

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
            counts = basis.context_sessions
            if counts is None:
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
        limit = self._settings.max_weight
        if shown.settled is None:
            weights = self.of_lists(ratio_to_first(self.model(), limit), shown)
        else:
            weights = ratio_to_first(shown.believed(self.of_lists(self.model(), shown)), limit)
        evidence = self.position_evidence(scores, shown)
        return label_signal(self._loss, scores, shown.labels * weights, shown, evidence)

    @torch.no_grad()
    def position_evidence(self, scores: Tensor, shown: Shown) -> list[Tensor]:
        """The slope of l̂_IRW and the sum of the clicks in it; of all lists, its bend too."""
        table = self.model()
        labels = shown.of_today(shown.labels)
        seen = ratio_to_first(scores, self._settings.max_weight, shown.first) * labels
        if shown.sessions is None:
            return [_slope(table, seen, shown), seen.sum()]
        expected = _expected(table, seen, shown)
        bend = by_context(expected, shown, len(table), bend_of_softmax)
        return [by_position(expected - seen, table, shown), seen.sum(), bend]

    @staticmethod
    def of_lists(table: Tensor, shown: Shown) -> Tensor:
        """Values of a table by context and position, for each list in its context."""
        return table if shown.contexts is None else table[shown.contexts]

    def learn(self, evidence: Sequence[Tensor], step: Step) -> None:
        """One step of φ: of gradient descent, or towards the least loss of all lists."""
        slope, clicks, *bend = evidence
        if bend:
            self.approach(slope, bend[0], slope.sum(dim=0), bend[0].sum(dim=0))
            return
        gradients = self.model.gradients(slope, step.drawn)
        self._optimizer.move(gradients, replace(step, clicks=clicks))

    def approach(self, slope: Tensor, bend: Tensor, common: Tensor, common_bend: Tensor) -> Tensor:
        """Go some of the way that lists point to: what contexts have in common, and each of them.

        Returned is how far what stands beside φ in the common slope is to go, too.
        """
        if not all(bool(torch.isfinite(each).all()) for each in (common, common_bend, bend)):
            self._optimizer.left_out += 1
            return torch.zeros_like(common)[slope.shape[1] :]
        rate = self._settings.propensity_rate
        way = some_of_the_way(common, common_bend, rate)
        self.model.follow_contexts(slope, bend, rate)
        self.model.follow(way[: slope.shape[1]])
        return way[slope.shape[1] :]

    def propensity(self) -> Propensity | None:
        """The learned curve."""
        return self.model.propensity()

    def state(self) -> dict[str, Tensor]:
        """The state of φ."""
        return self._optimizer.state()

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on with φ."""
        self._optimizer.load_state(state)

    def optimizer_state(self) -> dict[str, Tensor]:
        """φ and its optimiser's sums, unless the curve says all of it."""
        if self.model.can_begin and not self._optimizer.sums():
            return {}
        return {name: held for name, held in self.state().items() if name != "left_out"}

    def load_optimizer_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on with φ, where it has the same form."""
        self.load_state({**state, "left_out": torch.tensor(0)})

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
    return by_position(_expected(scores, clicks, shown) - clicks, scores, shown)


def by_position(values: Tensor, table: Tensor, shown: Shown) -> Tensor:
    """Sums over the lists of each context."""
    if shown.contexts is None:
        return values.sum(dim=0, keepdim=True)
    return torch.zeros_like(table).index_add_(0, shown.contexts, values)


def _expected(scores: Tensor, clicks: Tensor, shown: Shown) -> Tensor:
    """As many clicks on each list, spread over its positions as they are thought to be examined."""
    chances = torch.exp(scores - scores.amax(dim=1, keepdim=True))
    of_list = (chances if shown.contexts is None else chances[shown.contexts]) * shown.weight
    total = clicks.sum(dim=1, keepdim=True)
    return of_list * (total / of_list.sum(dim=1, keepdim=True))
