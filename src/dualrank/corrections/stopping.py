"""Likelihood for users who read from the top and stop after a click.

Where a click mostly ends the session, what is examined depends on the documents above, and no
weight by position is right. But then it is known what was examined: everything down to the last
click, and everything where there was none. Among that,

    P(click at k | k was examined) = σ(f(x_k) + φ_k)

What stands below the last click says nothing, whether it was read or not. φ takes up what else
position does, such as users who tire. This is the dependent click model (Guo, Liu and Wang, WSDM
2009) with features in the place of a parameter per document, and for correcting rankings the
counterpart of Vardasbi, de Rijke and Markov's cascade-based propensities (SIGIR 2020). Wrong where
users come back up, or read on after their last click: of what they read there, clicks are counted
and skips are not, so that documents below attractive ones look better than they are.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from dualrank.corrections.correction import Basis
from dualrank.corrections.likelihood import Likelihood
from dualrank.corrections.losses import Loss
from dualrank.corrections.whole_steps import bend_of_each, border_of_each, by_context
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.batch import Shown


class Stopping(Likelihood):
    """f and φ by the likelihood of clicks among what was examined.

    With n_x for the sessions that examined x, c_x for those that clicked it, and p = σ(f + φ),

        l = Σ_x n_x log(1 + e^{f_x + φ_x}) − c_x (f_x + φ_x),    ∂l/∂f_x = n_x p_x − c_x
    """

    clicked_only = False
    remembers = False
    suits: Mapping[str, float] = {"learning_rate": 0.4, "weight_decay": 1e-3}

    def begin(self, basis: Basis) -> None:
        """From the least worth: slopes of skips find the rest within some steps."""

    def loss(self, utilities: Tensor, shown: Shown) -> Loss:
        """Minus the log-likelihood of clicks and skips."""
        examined = shown.weight if shown.examined is None else shown.examined * shown.weight
        p = torch.sigmoid(utilities)
        missed = torch.nn.functional.softplus(utilities)
        return Loss(
            value=(examined * missed - shown.labels * utilities).sum(),
            slope=examined * p - shown.labels,
            curvature=lambda: examined * p * (1 - p),
        )

    def bends(self, loss: Loss, shown: Shown, contexts: int, ground: Tensor | None) -> list[Tensor]:
        """Every document has a curvature of its own."""
        curvature = shown.of_today(loss.curvature())
        border = [] if ground is None else border_of_each(curvature, ground)
        return [by_context(curvature, shown, contexts, bend_of_each), *border]

    def propensity(self) -> Propensity | None:
        """None: examination depends on the documents above."""
        return None
