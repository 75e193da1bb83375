"""Likelihood: where on its list a click fell, explained by relevance and position together.

Dual learning's model of clicks, P(click at k) = e_k · r(x_k), says where a click on a list fell:

    P(k | a click) = softmax_k(f(x_k) + φ_k),        f = log r,  φ = log e

which has a likelihood. Both f and φ climb it at every step. No click is weighted by an inverse, so
that nothing multiplies noise; the clicks of a session may depend on each other, as long as their
means factorise so; and the likelihood of held-out clicks says when to stop. As for dual learning,
features must tell relevance apart from what the logging ranker knew. `docs/methods.md` has the
theory.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from dualrank.corrections.dual import DualLearning
from dualrank.corrections.losses import softmax_loss
from dualrank.rankers.batch import Shown
from dualrank.rankers.ranker import Signal


class Likelihood(DualLearning):
    """f and φ by the likelihood of where clicks fell.

    With c_x for the clicks on x and p_x = softmax_x(f + φ), the slope is the same for both,

        ∂l/∂f_x = ∂l/∂φ_x = p_x Σ_z c_z − c_x

    summed over documents for the one and over positions for the other.
    """

    is_likelihood = True
    suits: Mapping[str, float] = {"learning_rate": 0.6, "weight_decay": 1e-3}

    @torch.no_grad()
    def signal(self, scores: Tensor, shown: Shown) -> Signal:
        """The cross entropy of clicks under f + φ."""
        table = self.model()
        loss = softmax_loss(scores + self.of_lists(table, shown), shown.labels, shown)
        if shown.contexts is None:
            by_position = loss.slope.sum(dim=0, keepdim=True)
        else:
            by_position = torch.zeros_like(table).index_add_(0, shown.contexts, loss.slope)
        clicks = shown.labels.sum()
        evidence = [by_position, clicks]
        return Signal(loss.value, loss.slope, loss.curvature, clicks, shown.labels, evidence)
