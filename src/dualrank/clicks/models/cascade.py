"""The cascade model: read from the top, click the first attractive document, leave."""

from __future__ import annotations

import numpy as np

from dualrank.clicks.browsing import Chain
from dualrank.clicks.models.click_model import ClickModel
from dualrank.clicks.models.counting import PairTrials, click_through, per_pair, tally
from dualrank.clicks.models.ctr import rates_of_pairs
from dualrank.clicks.models.fitted import FittedParts, Layout
from dualrank.clicks.models.kept_counts import KeptCounts
from dualrank.data.log_parts import LogPart, LogParts


class Cascade(ClickModel):
    """P(c_k = 1 | no click above) = α_d, and no click after the first (Craswell et al. 2008).

    In closed form: clicks among the sessions that had no click above. It holds further clicks to
    be impossible; `log_likelihood` charges each of them ln 10⁻⁶. The prior is the log's
    click-through.
    """

    name = "cascade"
    title = "cascade"

    def _fit_parts(self, log: LogParts) -> FittedParts:
        prior = self.prior.at(click_through(log))
        return rates_of_pairs(log, KeptCounts(log, _until_first_click), prior)

    def _browse(self, layout: Layout) -> Chain:
        attraction = layout.of_pairs("attraction")
        return Chain(attraction, np.zeros_like(attraction), after_skip=1.0)


def _until_first_click(part: LogPart) -> PairTrials:
    """Displays at and above the first click, and first clicks."""
    log = part.log
    clicks, trials = (np.zeros((len(log.lists), log.lists.depth)) for _ in range(2))
    reading = np.ones(len(log.counts), dtype=bool)
    for k, clicked in enumerate(log.clicks.T):
        for sums, rows in ((trials, reading), (clicks, reading & clicked)):
            sums[:, k] = tally(log.list_of[rows], log.counts[rows], len(log.lists))
        reading &= ~clicked
    return PairTrials(per_pair(log, clicks), per_pair(log, trials))
