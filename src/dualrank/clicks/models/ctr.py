"""Click-through rates as models: what a click model has to beat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dualrank.clicks.browsing import Independent
from dualrank.clicks.models.click_model import ClickModel
from dualrank.clicks.models.counting import Floats, PairTrials, click_through, rank_sums
from dualrank.clicks.models.em import Beta, Prior
from dualrank.clicks.models.fitted import FittedParts, Layout
from dualrank.clicks.models.kept_counts import KeptCounts
from dualrank.clicks.models.pair_parameter import PairParameter
from dualrank.data.log_parts import LogParts


class DocumentClickThrough(ClickModel):
    """P(c = 1) = α_d: every document at its own rate, wherever it stands.

    The prior is the click-through of the whole log.
    """

    name = "document-ctr"
    title = "document click-through"
    follows = False

    def _fit_parts(self, log: LogParts) -> FittedParts:
        prior = self.prior.at(click_through(log))
        return rates_of_pairs(log, KeptCounts(log, PairTrials.of), prior)

    def _browse(self, layout: Layout) -> Independent:
        return Independent(layout.of_pairs("attraction"))


class RankClickThrough(ClickModel):
    """P(c_k = 1) = ρ_k: every rank at its own rate, whatever stands there.

    Of documents it knows nothing: all have the same relevance, with an interval from 0 to 1.
    """

    name = "rank-ctr"
    title = "rank click-through"
    follows = False

    def _fit_parts(self, log: LogParts) -> FittedParts:
        mean = click_through(log)
        alike = [np.full(len(PairTrials.of(part).trials), mean) for part in log]

        def evidence(number: int) -> dict[str, PairParameter]:
            values = alike[number]
            unknown = PairParameter(values, np.zeros_like(values), np.ones_like(values), mean)
            return {"attraction": unknown}

        values, unseen = [{"attraction": each} for each in alike], {"attraction": mean}
        return FittedParts(log, {"rate": self._rate(log)}, values, unseen, evidence)

    def _rate(self, log: LogParts) -> Floats:
        return Prior().at(click_through(log)).estimate(*rank_sums(log))

    def _browse(self, layout: Layout) -> Independent:
        return Independent(np.where(layout.mask, layout.of_ranks("rate"), 0.0))


class RandomClickThrough(RankClickThrough):
    """P(c = 1) = ρ: one rate for everything."""

    name = "random-ctr"
    title = "random click-through"
    follows = False

    def _rate(self, log: LogParts) -> Floats:
        return np.full(log.depth, click_through(log))


def rates_of_pairs(
    log: LogParts,
    trials: Sequence[PairTrials],
    prior: Beta,
    shared: dict[str, Floats] | None = None,
) -> FittedParts:
    """Attraction as clicks among trials, which are those that a model takes for examined."""
    values = [{"attraction": prior.estimate(each.clicks, each.trials)} for each in trials]

    def evidence(number: int) -> dict[str, PairParameter]:
        rate, counts = values[number]["attraction"], trials[number]
        known = PairParameter.from_trials(rate, counts.clicks, counts.trials, prior.mean)
        return {"attraction": known}

    return FittedParts(log, shared or {}, values, {"attraction": prior.mean}, evidence)
