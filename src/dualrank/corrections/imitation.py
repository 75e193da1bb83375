"""Imitation: learn the order in which documents were displayed, whether they were clicked or not.

What the logging ranker thought of documents costs no click to learn, and where it is strong it is
nearly the best there is. The order is explained by Plackett and Luce's model (1959, 1975): the
document on each rank was drawn among all that were not drawn before, those included that were not
displayed,

    P(list) = Π_k e^{s_k} / Σ_{j ≥ k} e^{s_j}

Right by itself where the logging ranker is better than what clicks could teach; else a ground to
stand on. It is never better than the logging ranker.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from dualrank.corrections.correction import Basis, Correction
from dualrank.corrections.losses import plackett_luce_loss
from dualrank.rankers.batch import Shown
from dualrank.rankers.ranker import Signal


class Imitation(Correction):
    """Labels are 1 for what was displayed, in its order, and 0 for what stands after it.

    The ground of a document, where it has one, is the log of how many it stands for.
    """

    clicked_only = False
    is_likelihood = True
    suits: Mapping[str, float] = {"weight_decay": 1e-3}

    @classmethod
    def build(cls, basis: Basis) -> Imitation:
        """There is nothing to know."""
        return cls()

    def signal(self, scores: Tensor, shown: Shown) -> Signal:
        """The likelihood of the order displayed."""
        known = scores if shown.ground is None else scores + shown.ground
        loss = plackett_luce_loss(known, shown.labels, shown)
        return Signal(loss.value, loss.slope, loss.curvature, shown.labels.sum(), shown.labels)
