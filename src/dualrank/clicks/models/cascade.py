"""The cascade model: read from the top, click the first attractive document, leave."""

from __future__ import annotations

import numpy as np

from dualrank.clicks.browsing import Chain
from dualrank.clicks.models.click_model import ClickModel
from dualrank.clicks.models.counting import click_through, pair_count, tally
from dualrank.clicks.models.fitted import Fitted, Layout
from dualrank.clicks.models.pair_parameter import PairParameter
from dualrank.data.click_log import ClickLog


class Cascade(ClickModel):
    """P(c_k = 1 | no click above) = α_d, and no click after the first (Craswell et al. 2008).

    In closed form: clicks among the sessions that had no click above. It holds further clicks to
    be impossible; `log_likelihood` charges each of them ln 10⁻⁶. The prior is the log's
    click-through.
    """

    name = "cascade"
    title = "cascade"

    def _fit(self, log: ClickLog) -> Fitted:
        first = np.where(log.clicks.any(axis=1), log.clicks.argmax(axis=1), log.lists.depth)
        reached = np.arange(log.lists.depth) <= first[:, None]
        reached &= log.lists.mask[log.list_of]
        documents = log.lists.documents[log.list_of][reached]
        counts = np.broadcast_to(log.counts[:, None], reached.shape)[reached]
        trials = tally(documents, counts, pair_count(log))
        clicks = tally(documents, counts * log.clicks[reached], pair_count(log))
        prior = self.prior.at(click_through(log))
        attraction = PairParameter.from_trials(
            prior.estimate(clicks, trials), clicks, trials, prior.mean
        )
        return Fitted.on(log, {"attraction": attraction})

    def _browse(self, layout: Layout) -> Chain:
        attraction = layout.of_pairs("attraction")
        return Chain(attraction, np.zeros_like(attraction), after_skip=1.0)
