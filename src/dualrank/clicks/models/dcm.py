"""The dependent click model: after a click at rank k, users go on with λ_k."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dualrank.clicks.browsing import Chain
from dualrank.clicks.models.chain_em import ChainCounts, expect
from dualrank.clicks.models.click_model import ClickModel
from dualrank.clicks.models.counting import click_through
from dualrank.clicks.models.em import HALF, Beta, Parameters, climb
from dualrank.clicks.models.fitted import Fitted, Layout
from dualrank.clicks.models.pair_parameter import PairParameter
from dualrank.data.click_log import ClickLog


class DependentClick(ClickModel):
    """A cascade that goes on after a click at rank k with λ_k (Guo et al. 2009).

    The usual estimator takes every user to leave at the last click (and to read everything where
    there is none), which gives a closed form:

        α = clicks / displayed at or above the last click,   λ_k = 1 − last clicks / clicks at k

    It calls documents too attractive and users too satisfied where many read on in vain after
    their last click; `dcm-em` does without the assumption. α is drawn to the log's
    click-through with the strength of `prior`, λ_k to one half with one trial.
    """

    name = "dcm"
    title = "dependent click"

    exact: ClassVar[bool] = False

    def _fit(self, log: ClickLog) -> Fitted:
        counts = ChainCounts.of_ranks(log)
        prior = self.prior.at(click_through(log))
        examined = counts.clicks + counts.skips + counts.without_clicks()
        attraction = prior.estimate(counts.clicks, examined)
        continuation = HALF.estimate(counts.went_on, counts.went_on + counts.last_clicks())
        if not self.exact:
            known = PairParameter.from_trials(attraction, counts.clicks, examined, prior.mean)
            return Fitted.on(log, {"attraction": known}, {"continuation": continuation})
        (attraction, continuation), path = climb(
            lambda now: _step(counts, prior, now), (attraction, continuation), self.em
        )
        hidden = expect(counts, attraction, continuation, 1.0)
        known = counts.attraction(attraction, hidden, prior.mean)
        return Fitted.on(log, {"attraction": known}, {"continuation": continuation}, path)

    def _browse(self, layout: Layout) -> Chain:
        attraction = layout.of_pairs("attraction")
        after_click = np.broadcast_to(layout.of_ranks("continuation"), attraction.shape)
        return Chain(attraction, after_click, after_skip=1.0)


class ExactDependentClick(DependentClick):
    """The same model without taking users to leave at their last click, by EM."""

    name = "dcm-em"
    title = "dependent click, by EM"
    exact = True


def _step(counts: ChainCounts, prior: Beta, now: Parameters) -> tuple[Parameters, float]:
    attraction, continuation = now
    hidden = expect(counts, attraction, continuation, 1.0)
    objective = hidden.log_likelihood + prior.log_density(attraction)
    objective += HALF.log_density(continuation)
    went_on = counts.went_on + hidden.went_on
    better = (
        prior.estimate(counts.clicks, counts.clicks + counts.skips + hidden.skips),
        HALF.estimate(went_on, went_on + hidden.stopped),
    )
    return better, objective
