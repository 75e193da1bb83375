"""Click-through rates as models: what a click model has to beat."""

from __future__ import annotations

import numpy as np

from dualrank.clicks.browsing import Independent
from dualrank.clicks.models.click_model import ClickModel
from dualrank.clicks.models.counting import Floats, click_through, displays, pair_count, per_pair
from dualrank.clicks.models.em import Prior
from dualrank.clicks.models.fitted import Fitted, Layout
from dualrank.clicks.models.pair_parameter import PairParameter
from dualrank.data.click_log import ClickLog


class DocumentClickThrough(ClickModel):
    """P(c = 1) = α_d: every document at its own rate, wherever it stands.

    The prior is the click-through of the whole log.
    """

    name = "document-ctr"
    title = "document click-through"
    follows = False

    def _fit(self, log: ClickLog) -> Fitted:
        clicks, trials = per_pair(log, log.clicks_per_list), per_pair(log, displays(log))
        prior = self.prior.at(click_through(log))
        rate = prior.estimate(clicks, trials)
        attraction = PairParameter.from_trials(rate, clicks, trials, prior.mean)
        return Fitted.on(log, {"attraction": attraction})

    def _browse(self, layout: Layout) -> Independent:
        return Independent(layout.of_pairs("attraction"))


class RankClickThrough(ClickModel):
    """P(c_k = 1) = ρ_k: every rank at its own rate, whatever stands there.

    Of documents it knows nothing: all have the same relevance, with an interval from 0 to 1.
    """

    name = "rank-ctr"
    title = "rank click-through"
    follows = False

    def _fit(self, log: ClickLog) -> Fitted:
        mean = click_through(log)
        alike = np.full(pair_count(log), mean)
        unknown = PairParameter(alike, np.zeros_like(alike), np.ones_like(alike), mean)
        return Fitted.on(log, {"attraction": unknown}, {"rate": self._rate(log)})

    def _rate(self, log: ClickLog) -> Floats:
        clicks, shown = log.clicks_per_list.sum(axis=0), displays(log).sum(axis=0)
        prior = Prior().at(click_through(log))
        return prior.estimate(clicks.astype(np.float64), shown.astype(np.float64))

    def _browse(self, layout: Layout) -> Independent:
        return Independent(np.where(layout.mask, layout.of_ranks("rate"), 0.0))


class RandomClickThrough(RankClickThrough):
    """P(c = 1) = ρ: one rate for everything."""

    name = "random-ctr"
    title = "random click-through"
    follows = False

    def _rate(self, log: ClickLog) -> Floats:
        return np.full(log.lists.depth, click_through(log))
