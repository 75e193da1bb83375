"""The simplified dynamic Bayesian network: only satisfaction ends a session."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import numpy as np

from dualrank.clicks.models.chain_em import ChainCounts
from dualrank.clicks.models.dbn import (
    DynamicBayesian,
    Network,
    bayesian_fit,
    bayesian_priors,
    closed_form,
    step,
)
from dualrank.clicks.models.em import Climb, Parameters, climb
from dualrank.clicks.models.fitted import Fitted
from dualrank.data.click_log import ClickLog


class SimplifiedBayesian(DynamicBayesian):
    """The dynamic Bayesian network with γ = 1 (Chapelle and Zhang 2009, section 5).

    The usual closed form takes every user to be satisfied by the last click (and to have read
    everything where there is none):

        α = clicks / displayed at or above the last click,   s = last clicks / clicks

    Where many read on in vain after their last click, both are too high; `sdbn-em` does without
    the assumption.
    """

    name = "sdbn"
    title = "simplified Bayesian network"

    exact: ClassVar[bool] = False

    def _fit(self, log: ClickLog) -> Fitted:
        counts = ChainCounts.of_documents(log)
        priors = bayesian_priors(self.prior, log, counts)
        found: Parameters = (*closed_form(counts, *priors), np.array([1.0]))
        path = Climb()
        if self.exact:
            again = partial(step, counts, *priors, persistent=True)
            found, path = climb(again, found, self.em)
        return bayesian_fit(log, counts, *priors, Network(*found), path)


class ExactSimplifiedBayesian(SimplifiedBayesian):
    """The same model without taking users to be satisfied by their last click, by EM."""

    name = "sdbn-em"
    title = "simplified network, by EM"
    exact = True
