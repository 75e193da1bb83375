"""Users who stop: clicks out of the sessions that came so far down the list.

Guo, Liu and Wang, "Efficient Multiple-Click Models in Web Search" (WSDM 2009), have users read from
the top and go on after a click at rank k with λ_k (the dependent click model; the cascade has
λ = 0). What is examined then depends on the clicks of the session, which no weight by position can
say. As Vardasbi, de Rijke and Markov, "Cascade Model-based Propensity Estimation for Counterfactual
Learning to Rank" (SIGIR 2020), clicks are set against the examination of their own session,

    label_k = (Σ c_k + s m) / (Σ P(E_k = 1 | c_1 … c_(k−1)) + s)        over the sessions of a list,

which is relevance in the mean: E[c_k | c_<k] = P(E_k = 1 | c_<k) r_k. They take the mean of
c_k / P(E_k), which is the same where λ is large; where λ is 0, nobody clicks below a click, and
only the share among those who came so far is right. A document to which few came is drawn to the
mean m, with the strength s of a click model's prior.

λ comes from the click model (`dcm-em`), as does the chance that a user who clicked nothing since
the last click has stopped. Where users do not stop it finds λ near 1, and labels are clicks as they
are: nothing else is corrected, and nothing is lost.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.models.click_model import ROWS_PER_BLOCK
from dualrank.clicks.models.dcm import DependentClick, ExactDependentClick
from dualrank.corrections.correction import Basis
from dualrank.corrections.losses import LossOfLabels, softmax_loss
from dualrank.corrections.naive import Naive
from dualrank.data.click_log import ClickLog
from dualrank.errors import SettingsError


class StoppedLabels(Naive):
    """Labels by a dependent click model that has been fitted."""

    remembers = False

    def __init__(self, model: DependentClick, loss: LossOfLabels = softmax_loss) -> None:
        super().__init__(loss)
        self._model = model

    @classmethod
    def build(cls, basis: Basis) -> StoppedLabels:
        """With the λ of the log."""
        if basis.log is None:
            raise SettingsError("method dcm learns from a click log")
        return cls(ExactDependentClick().fit(basis.log), basis.loss_of_labels)

    def labels(self, log: ClickLog) -> NDArray[np.float64]:
        """The share of clicks among the sessions that came so far."""
        clicks, examined, mask = log.clicks_per_list, self.examined(log), log.lists.mask
        prior = self._model.prior.at(clicks[mask].sum() / max(examined[mask].sum(), 1))
        return np.where(mask, prior.estimate(clicks.astype(np.float64), examined), 0.0)

    def examined(self, log: ClickLog) -> NDArray[np.float64]:
        """Sessions expected to have examined each position, by the clicks above it."""
        pages = self._model.browse(log.lists, log.catalogue)
        total = np.zeros(log.lists.documents.shape)
        for start in range(0, len(log.counts), ROWS_PER_BLOCK):
            rows = slice(start, start + ROWS_PER_BLOCK)
            list_of, counts = log.list_of[rows], log.counts[rows]
            here = pages.take(list_of)
            clicked = here.conditional(log.clicks[rows])
            reached = np.divide(
                clicked, here.attraction, out=np.zeros_like(clicked), where=here.attraction > 0
            )
            for k, column in enumerate(reached.T):
                total[:, k] += np.bincount(list_of, counts * column, len(total))
        return total
