"""Likelihood: where on its list a click fell, explained by relevance and position together.

Dual learning's model of clicks, P(click at k) = e_k · r(x_k), says where a click on a list fell:

    P(k | a click) = softmax_k(f(x_k) + φ_k),        f = log r,  φ = log e

which has a likelihood. Both f and φ climb it at every step. No click is weighted by an inverse, so
that nothing multiplies noise; the clicks of a session may depend on each other, as long as their
means factorise so; and the likelihood of held-out clicks says when to stop.

As for dual learning, features must tell relevance apart from what the logging ranker knew. Where
they do not, likelihood can stand on a ground. A document stood where it stood because the logging
ranker liked it, and what that ranker knew raises both the position and the chance of a click: it is
exactly what position is confounded with. With a term of its own,

    P(k | a click) = softmax_k(g(x_k) + a · s_k + φ_k)

where s_k is the expected logging score of the document on rank k, by features and order together
(see `logging_scores`). Lists differ in how far their scores lie apart, and that tells a, the worth
of the logging ranker, from φ, which is the same on all lists. The ranker that is learned is
f(x) = g(x) + a · E[s | x].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from dualrank.corrections.correction import Basis
from dualrank.corrections.dual import DualLearning, by_position
from dualrank.corrections.losses import Loss, softmax_loss
from dualrank.corrections.whole_steps import (
    bend_of_softmax,
    border_of_softmax,
    bordered,
    by_context,
)
from dualrank.evaluation.click_logit import RIDGE, ClickLogit
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.batch import Shown
from dualrank.rankers.optimizer import Optimizer
from dualrank.rankers.ranker import Signal, Step

LEAST_WORTH = 0.02
"""A logging ranker is thought to be worth a little, whatever clicks say."""
HELD = 1e12
"""A ridge that no number of clicks moves a weight against."""


class Likelihood(DualLearning):
    """f and φ by the likelihood of where clicks fell.

    With c_x for the clicks on x and p_x = softmax_x(f + φ), the slope is the same for both,

        ∂l/∂f_x = ∂l/∂φ_x = p_x Σ_z c_z − c_x

    summed over documents for the one and over positions for the other; that of a is its sum over
    all documents, each times s_x. With a ground, a and φ begin where clicks alone have them.
    """

    is_likelihood = True
    learns_from_unseen = False
    suits: Mapping[str, float] = {"learning_rate": 0.6, "weight_decay": 1e-3}
    worth: Tensor | None = None
    """a, where there is a ground."""

    @classmethod
    def build(cls, basis: Basis) -> Likelihood:
        """With the position model that was asked for, as for dual learning."""
        built = super().build(basis)
        assert isinstance(built, Likelihood)
        if basis.ground is not None:
            built.worth = torch.tensor([LEAST_WORTH])
            built.begin(basis)
        return built

    def begin(self, basis: Basis) -> None:
        """Take a and φ from the clicks, before any feature is looked at."""
        assert basis.log is not None
        assert basis.ground is not None
        assert self.worth is not None
        clicks, mask = basis.log.clicks_per_list.astype(float), basis.log.lists.mask
        inputs = np.where(mask, basis.ground, 0.0)[:, :, None].astype(float)
        logit, means = ClickLogit(inputs, clicks, mask).centred()
        found = logit.fit()
        if found[0] < LEAST_WORTH:
            ridge, around = np.full(len(found), RIDGE), np.zeros(len(found))
            ridge[0], around[0] = HELD, LEAST_WORTH
            found = logit.fit(ridge, around)
        worth, phi = found[0], found[1:] - means[:, 0] * found[0]
        self.worth.fill_(float(worth))
        if self.model.can_begin:
            self.model.believe(Propensity.of(np.exp(phi - phi[0])))

    def start(self, device: torch.device) -> None:
        """Move φ and a."""
        super().start(device)
        if self.worth is not None:
            self.worth = self.worth.to(device)
            self._worth_optimizer = Optimizer([self.worth], self._settings.rate, self._settings)

    def loss(self, utilities: Tensor, shown: Shown) -> Loss:
        """Minus the log-likelihood of the clicks, where f + φ are the utilities."""
        return softmax_loss(utilities, shown.labels, shown)

    @torch.no_grad()
    def signal(self, scores: Tensor, shown: Shown) -> Signal:
        """The loss of the clicks under f + φ, or g + a s + φ."""
        table, clicks = self.model(), shown.labels.sum()
        utilities = scores + shown.believed(self.of_lists(table, shown))
        if self.worth is not None and shown.ground is not None:
            utilities = utilities + self.worth * shown.ground
        loss = self.loss(utilities, shown)
        slope = shown.of_today(loss.slope)
        evidence = [by_position(slope, table, shown), shown.of_today(shown.labels).sum()]
        ground = None if self.worth is None else shown.ground
        if ground is not None:
            evidence.append((slope * ground).sum()[None])
        if shown.sessions is not None:
            evidence += self.bends(loss, shown, len(table), ground)
        return Signal(loss.value, loss.slope, loss.curvature, clicks, shown.labels, evidence)

    def bends(self, loss: Loss, shown: Shown, contexts: int, ground: Tensor | None) -> list[Tensor]:
        """How the loss bends in φ by context, and in a where there is a ground."""
        expected = shown.of_today(loss.slope + shown.labels)
        border = [] if ground is None else border_of_softmax(expected, ground)
        return [by_context(expected, shown, contexts, bend_of_softmax), *border]

    def position_evidence(self, scores: Tensor, shown: Shown) -> list[Tensor]:
        """The slopes of φ, and of a where there is a ground."""
        return self.signal(scores, shown).evidence

    def learn(self, evidence: Sequence[Tensor], step: Step) -> None:
        """One step of φ, and of a where there is a ground."""
        slope, clicks, *more = evidence
        if self.worth is None or not more:
            super().learn(evidence, step)
            return
        of_worth, *bends = more
        if not bends:
            super().learn([slope, clicks], step)
            self._worth_optimizer.move([of_worth], replace(step, clicks=clicks))
        else:
            bend, across, corner = bends
            common = torch.cat([slope.sum(dim=0), of_worth])
            whole = bordered(bend.sum(dim=0), across, corner)
            self.worth += self.approach(slope, bend, common, whole)
        # A step too far would leave g to make up for it among what was displayed, and the worst of
        # all other candidates on top.
        self.worth.clamp_(min=LEAST_WORTH)

    @property
    def has_ground(self) -> bool:
        """Whether it was built on one."""
        return self.worth is not None

    def worth_of_ground(self) -> float:
        """a."""
        return 1.0 if self.worth is None else float(self.worth)

    def state(self) -> dict[str, Tensor]:
        """The states of φ and of a."""
        if self.worth is None:
            return super().state()
        of_worth = {f"worth.{name}": value for name, value in self._worth_optimizer.state().items()}
        return super().state() | of_worth

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on with both."""
        super().load_state(state)
        if self.worth is not None:
            held = {k.removeprefix("worth."): v for k, v in state.items() if k.startswith("worth.")}
            self._worth_optimizer.load_state(held)
