"""Likelihood that stands on the logging ranker's score, as far as features and order tell it.

A document stood where it stood because the logging ranker liked it. What that ranker knew raises
both the position and the chance of a click, so it is exactly what position is confounded with:
likelihood and dual learning take it for examination, all the more the stronger the ranker is, and
the more it knew that features do not tell. Here it has a term of its own,

    P(k | a click) = softmax_k(g(x_k) + a · s_k + φ_k)

where s_k is the expected score of the document on rank k by the model that imitates the order (see
`imitation` and `logging_scores`). Lists differ in how far their scores lie apart, and that tells
a, the worth of the logging ranker, from φ, which is the same on all lists. The ranker that is
learned is g(x) + a · E[s | x].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from dualrank.corrections.correction import Basis
from dualrank.corrections.likelihood import Likelihood
from dualrank.evaluation.click_logit import ClickLogit
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.batch import Shown
from dualrank.rankers.optimizer import Optimizer
from dualrank.rankers.ranker import Signal, Step

LEAST_WORTH = 0.02
"""A logging ranker is thought to be worth a little, whatever a few clicks say."""


class GroundedLikelihood(Likelihood):
    """g, a and φ by the likelihood of where clicks fell; a and φ begin at their own optimum.

    With clicks c, p = softmax(g + a s + φ) and the slope p Σ c − c of every document as for
    `Likelihood`, the slope of a is Σ s (p Σ c − c) over all displayed documents.
    """

    worth: Tensor
    """a, one number."""

    @classmethod
    def build(cls, basis: Basis) -> GroundedLikelihood:
        """With a and φ as the clicks have them before any feature is looked at."""
        built = super().build(basis)
        assert isinstance(built, GroundedLikelihood)
        built.worth = torch.full((1,), LEAST_WORTH)
        if basis.log is not None and basis.ground is not None:
            clicks, mask = basis.log.clicks_per_list, basis.log.lists.mask
            inputs = np.where(mask, basis.ground, 0.0)[:, :, None]
            worth, *phi = ClickLogit(inputs.astype(float), clicks.astype(float), mask).fit()
            built.worth.clamp_(min=float(worth))
            built.believe(Propensity.of(np.exp(np.asarray(phi) - phi[0])))
        return built

    def start(self, device: torch.device) -> None:
        """Move φ and a."""
        super().start(device)
        self.worth = getattr(self, "worth", torch.zeros(1)).to(device)
        self._worth_optimizer = Optimizer([self.worth], self._settings.rate, self._settings)

    @torch.no_grad()
    def signal(self, scores: Tensor, shown: Shown) -> Signal:
        """The cross entropy of clicks under g + a s + φ."""
        if shown.ground is None:
            return super().signal(scores, shown)
        signal = super().signal(scores + self.worth * shown.ground, shown)
        by_worth = (signal.slope * shown.ground).sum()[None]
        return replace(signal, evidence=[*signal.evidence, by_worth])

    def learn(self, evidence: Sequence[Tensor], step: Step) -> None:
        """One step of φ and of a."""
        super().learn(evidence[:2], step)
        if len(evidence) > 2:
            self._worth_optimizer.move(evidence[2:], replace(step, clicks=evidence[1]))

    def worth_of_ground(self) -> float:
        """a."""
        return float(self.worth)

    def state(self) -> dict[str, Tensor]:
        """The states of φ and of a."""
        of_worth = {f"worth.{name}": value for name, value in self._worth_optimizer.state().items()}
        return super().state() | of_worth

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on with both."""
        super().load_state(state)
        prefix = "worth."
        held = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
        self._worth_optimizer.load_state(held)
