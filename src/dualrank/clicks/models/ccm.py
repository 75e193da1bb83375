"""The click chain model: who has found something relevant goes on more rarely."""

from __future__ import annotations

import numpy as np

from dualrank.clicks.browsing import Chain
from dualrank.clicks.models.chain_em import ChainCounts, expect
from dualrank.clicks.models.click_model import ClickModel
from dualrank.clicks.models.counting import Floats, click_through, ratio
from dualrank.clicks.models.em import HALF, Beta, Parameters, climb
from dualrank.clicks.models.fitted import Fitted, Layout
from dualrank.data.click_log import ClickLog

START = np.array([0.9, 0.7, 0.3])
"""Where the search for τ₁, τ₂, τ₃ begins."""


class ClickChain(ClickModel):
    """A cascade with one relevance r for the click and for what follows it (Guo et al. 2009).

        P(c_k = 1 | E_k = 1) = r_d
        P(E_(k+1) = 1 | E_k = 1, c_k) = τ₁ after a skip, τ₂ (1 − r_d) + τ₃ r_d after a click

    The paper integrates r out under a uniform prior; here it is estimated with the others, by EM.
    r is drawn to the log's click-through with the strength of `prior`, each τ to one half with
    one trial. The interval of r counts its clicks and skips, not what happened after.
    """

    name = "ccm"
    title = "click chain"

    def _fit(self, log: ClickLog) -> Fitted:
        counts = ChainCounts.of_documents(log)
        prior = self.prior.at(click_through(log))
        examined = counts.clicks + counts.skips + counts.without_clicks()
        start = prior.estimate(counts.clicks, examined), START
        (relevance, tau), path = climb(lambda now: _step(counts, prior, now), start, self.em)
        hidden = expect(counts, relevance, _after_click(relevance, tau), tau[0])
        return Fitted.on(
            log,
            {"attraction": counts.attraction(relevance, hidden, prior.mean)},
            {
                "after_skip": tau[:1],
                "after_irrelevant_click": tau[1:2],
                "after_relevant_click": tau[2:],
            },
            path,
        )

    def _browse(self, layout: Layout) -> Chain:
        r = layout.of_pairs("attraction")
        tau_2 = layout.shared("after_irrelevant_click")
        tau_3 = layout.shared("after_relevant_click")
        return Chain(r, tau_2 * (1 - r) + tau_3 * r, layout.shared("after_skip"))


def _after_click(relevance: Floats, tau: Floats) -> Floats:
    return tau[1] * (1 - relevance) + tau[2] * relevance


def _step(counts: ChainCounts, prior: Beta, now: Parameters) -> tuple[Parameters, float]:
    """One iteration; a click found something relevant (R) or not, which decides between τ₂ and τ₃.

    P(R | went on) = τ₃ r / h,   P(R | stopped) = (1 − τ₃) r / (1 − h),   h = τ₂ (1 − r) + τ₃ r
    """
    r, tau = now
    h = _after_click(r, tau)
    hidden = expect(counts, r, h, tau[0])
    objective = hidden.log_likelihood + prior.log_density(r) + HALF.log_density(tau)
    went_on = counts.went_on + hidden.went_on
    relevant_on = went_on * ratio(tau[2] * r, h)
    relevant_off = hidden.stopped * ratio((1 - tau[2]) * r, 1 - h)
    irrelevant_on, irrelevant_off = went_on - relevant_on, hidden.stopped - relevant_off
    skip_on = counts.skips.sum() + hidden.skip_went_on
    onward = np.array([skip_on, irrelevant_on.sum(), relevant_on.sum()])
    ended = np.array([hidden.skip_stopped, irrelevant_off.sum(), relevant_off.sum()])
    examined = counts.clicks + counts.skips + hidden.skips
    better = (
        prior.estimate(
            counts.clicks + relevant_on + relevant_off, examined + went_on + hidden.stopped
        ),
        HALF.estimate(onward, onward + ended),
    )
    return better, objective
