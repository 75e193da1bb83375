"""The click chain model: who has found something relevant goes on more rarely."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dualrank.clicks.browsing import Chain
from dualrank.clicks.models.chain_em import ChainCounts, expect
from dualrank.clicks.models.click_model import ClickModel
from dualrank.clicks.models.counting import Floats, click_through, ratio
from dualrank.clicks.models.em import HALF, Beta, Parameters, climb
from dualrank.clicks.models.fitted import FittedParts, Layout
from dualrank.clicks.models.kept_counts import KeptCounts
from dualrank.clicks.models.pair_parameter import PairParameter
from dualrank.data.log_parts import LogParts

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

    def _fit_parts(self, log: LogParts) -> FittedParts:
        parts = KeptCounts(log, lambda part: ChainCounts.of_documents(part.log))
        prior = self.prior.at(click_through(log))
        trials = (counts.until_last_click() for counts in parts)
        start: list[tuple[Floats, ...]] = [
            (prior.estimate(each.clicks, each.trials),) for each in trials
        ]
        found, path = climb(
            lambda now: _step(parts, prior, now), Parameters(start, (START,)), self.em
        )
        (tau,) = found.shared
        values = [{"attraction": relevance} for (relevance,) in found.pairs]

        def evidence(number: int) -> dict[str, PairParameter]:
            counts, relevance = parts[number], values[number]["attraction"]
            hidden = expect(counts, relevance, _after_click(relevance, tau), tau[0])
            return {"attraction": counts.attraction(relevance, hidden, prior.mean)}

        shared = {
            "after_skip": tau[:1],
            "after_irrelevant_click": tau[1:2],
            "after_relevant_click": tau[2:],
        }
        return FittedParts(log, shared, values, {"attraction": prior.mean}, evidence, path)

    def _browse(self, layout: Layout) -> Chain:
        r = layout.of_pairs("attraction")
        tau_2 = layout.shared("after_irrelevant_click")
        tau_3 = layout.shared("after_relevant_click")
        return Chain(r, tau_2 * (1 - r) + tau_3 * r, layout.shared("after_skip"))


def _after_click(relevance: Floats, tau: Floats) -> Floats:
    return tau[1] * (1 - relevance) + tau[2] * relevance


def _step(parts: Sequence[ChainCounts], prior: Beta, now: Parameters) -> tuple[Parameters, float]:
    """One iteration; a click found something relevant (R) or not, which decides between τ₂ and τ₃.

    P(R | went on) = τ₃ r / h,   P(R | stopped) = (1 − τ₃) r / (1 − h),   h = τ₂ (1 − r) + τ₃ r
    """
    (tau,) = now.shared
    objective = HALF.log_density(tau)
    pairs = list[tuple[Floats, ...]]()
    onward, ended = np.zeros(3), np.zeros(3)
    for counts, (r,) in zip(parts, now.pairs, strict=True):
        h = _after_click(r, tau)
        hidden = expect(counts, r, h, tau[0])
        objective += hidden.log_likelihood + prior.log_density(r)
        went_on = counts.went_on + hidden.went_on
        relevant_on = went_on * ratio(tau[2] * r, h)
        relevant_off = hidden.stopped * ratio((1 - tau[2]) * r, 1 - h)
        irrelevant_on, irrelevant_off = went_on - relevant_on, hidden.stopped - relevant_off
        skip_on = counts.skips.sum() + hidden.skip_went_on
        onward += [skip_on, irrelevant_on.sum(), relevant_on.sum()]
        ended += [hidden.skip_stopped, irrelevant_off.sum(), relevant_off.sum()]
        examined = counts.clicks + counts.skips + hidden.skips
        better = prior.estimate(
            counts.clicks + relevant_on + relevant_off, examined + went_on + hidden.stopped
        )
        pairs.append((better,))
    return Parameters(pairs, (HALF.estimate(onward, onward + ended),)), objective
