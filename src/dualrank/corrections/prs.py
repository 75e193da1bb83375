"""Propensity ratio scoring: a click against a document that was not clicked, by the ratio of both.

Wang, Qin, Wang and Wang, "Non-Clicks Mean Irrelevant? Propensity Ratio Scoring As a Correction"
(WSDM 2021). A document that was not clicked is either not relevant or was not examined;
against a click at i, it counts by how likely it was examined:

    l = Σ_i Σ_j c_i (1 − c_j) P(o_j)/P(o_i) · log(1 + e^{−(s_i − s_j)})

Inverse propensities alone (`ipw`) compare a click with every document of its list. Right where a
document is either relevant or not, and where examination depends on the position alone and was
measured rightly. Where relevance is a chance r_x, so that the same document is clicked by some who
examine it and not by others (click noise is enough), the two orders of a pair count
r_i e_j (1 − e_j r_j) and r_j e_i (1 − e_i r_i), and scores settle near log r_x − log e_x: corrected
twice, the bottom of the list is preferred to the top.
"""

from __future__ import annotations

from torch import Tensor

from dualrank.corrections.ipw import InversePropensity
from dualrank.corrections.losses import clicked_over_skipped, pairs_loss, share_of_others
from dualrank.rankers.batch import Shown
from dualrank.rankers.ranker import Signal


class PropensityRatio(InversePropensity):
    """Pairs by the propensity that was given, in the context of each list.

    Labels are mean clicks over the sessions of a list, and c_i (1 − c_j) of means is taken for the
    mean over sessions. That is its expectation where clicks of a session are independent of each
    other, as by the model of this correction they are, with less noise than single sessions have:
    c_i of one session also meets the c_j of all others. Where a click ends the session it is too
    low for pairs in which both documents are often clicked.
    """

    slopes_only = True

    def signal(self, scores: Tensor, shown: Shown) -> Signal:
        """Clicks over what was not clicked."""
        c, inverse = shown.labels, self.weights(shown)
        ratio = inverse[:, :, None] / inverse[:, None, :]
        weights = clicked_over_skipped(shown) * ratio
        loss = pairs_loss(scores, weights * share_of_others(shown), shown)
        return Signal(loss.value, loss.slope, loss.curvature, (c * inverse).sum())
