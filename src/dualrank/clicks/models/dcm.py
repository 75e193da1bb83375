"""The dependent click model: after a click at rank k, users go on with λ_k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from dualrank.clicks.browsing import Chain
from dualrank.clicks.models.chain_em import ChainCounts, expect
from dualrank.clicks.models.click_model import ClickModel
from dualrank.clicks.models.counting import Floats, PairTrials, click_through
from dualrank.clicks.models.ctr import rates_of_pairs
from dualrank.clicks.models.em import HALF, Beta, Parameters, climb
from dualrank.clicks.models.fitted import FittedParts, Layout
from dualrank.clicks.models.kept_counts import KeptCounts
from dualrank.clicks.models.pair_parameter import PairParameter
from dualrank.data.log_parts import LogParts


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

    def _fit_parts(self, log: LogParts) -> FittedParts:
        parts = KeptCounts(log, lambda part: ChainCounts.of_ranks(part.log))
        prior = self.prior.at(click_through(log))
        went_on, last = np.zeros(log.depth), np.zeros(log.depth)
        trials = list[PairTrials]()
        for counts in parts:
            went_on += counts.went_on
            last += counts.last_clicks()
            trials.append(counts.until_last_click())
        continuation = HALF.estimate(went_on, went_on + last)
        if not self.exact:
            return rates_of_pairs(log, trials, prior, {"continuation": continuation})
        start: list[tuple[Floats, ...]] = [
            (prior.estimate(each.clicks, each.trials),) for each in trials
        ]
        found, path = climb(
            lambda now: _step(parts, prior, now), Parameters(start, (continuation,)), self.em
        )
        (continuation,) = found.shared
        values = [{"attraction": attraction} for (attraction,) in found.pairs]

        def evidence(number: int) -> dict[str, PairParameter]:
            counts, attraction = parts[number], values[number]["attraction"]
            hidden = expect(counts, attraction, continuation, 1.0)
            return {"attraction": counts.attraction(attraction, hidden, prior.mean)}

        unseen, shared = {"attraction": prior.mean}, {"continuation": continuation}
        return FittedParts(log, shared, values, unseen, evidence, path)

    def _browse(self, layout: Layout) -> Chain:
        attraction = layout.of_pairs("attraction")
        after_click = np.broadcast_to(layout.of_ranks("continuation"), attraction.shape)
        return Chain(attraction, after_click, after_skip=1.0)


class ExactDependentClick(DependentClick):
    """The same model without taking users to leave at their last click, by EM."""

    name = "dcm-em"
    title = "dependent click, by EM"
    exact = True


def _step(parts: Sequence[ChainCounts], prior: Beta, now: Parameters) -> tuple[Parameters, float]:
    (continuation,) = now.shared
    objective = HALF.log_density(continuation)
    pairs = list[tuple[Floats, ...]]()
    went_on, stopped = np.zeros_like(continuation), np.zeros_like(continuation)
    for counts, (attraction,) in zip(parts, now.pairs, strict=True):
        hidden = expect(counts, attraction, continuation, 1.0)
        objective += hidden.log_likelihood + prior.log_density(attraction)
        went_on += counts.went_on + hidden.went_on
        stopped += hidden.stopped
        examined = counts.clicks + counts.skips + hidden.skips
        pairs.append((prior.estimate(counts.clicks, examined),))
    return Parameters(pairs, (HALF.estimate(went_on, went_on + stopped),)), objective
