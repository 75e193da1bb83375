"""The position-based model: a click is examination of the rank and attraction of the document."""

from __future__ import annotations

import numpy as np

from dualrank.clicks.browsing import Independent
from dualrank.clicks.models.click_model import ClickModel
from dualrank.clicks.models.counting import click_through, pair_count
from dualrank.clicks.models.fitted import Fitted, Layout
from dualrank.clicks.models.product_em import ProductCounts, attraction_of_pairs, fit_product
from dualrank.data.click_log import ClickLog


class PositionBased(ClickModel):
    """P(c_k = 1) = θ_k · α_d, with θ_1 = 1 (Craswell et al. 2008; Chuklin et al. 2015).

    Only products are seen, so θ is relative to the first rank and α is how likely the document is
    clicked there; a rank that is examined more than the first is held at 1. α is drawn to the
    click-through of the log with the strength of `prior`, θ_k to one half with one trial. (The
    estimator `pbm` of examination is the same climb without priors, and with intervals.)
    """

    name = "pbm"
    title = "position-based"
    follows = False

    def _fit(self, log: ClickLog) -> Fitted:
        counts = position_counts(log)
        prior = self.prior.at(click_through(log))
        fit = fit_product(counts, prior, self.em)
        attraction = attraction_of_pairs(counts, fit, prior.mean)
        return Fitted.on(
            log, {"attraction": attraction}, {"examination": fit.examination}, fit.climb
        )

    def _browse(self, layout: Layout) -> Independent:
        return Independent(layout.of_pairs("attraction") * layout.of_ranks("examination"))


def position_counts(log: ClickLog) -> ProductCounts:
    """Clicks and skips of every pair at every rank."""
    mask, clicks = log.lists.mask, log.clicks_per_list
    skips = log.sessions_per_list[:, None] - clicks
    rank = np.broadcast_to(np.arange(log.lists.depth), mask.shape)
    return ProductCounts.grouped(
        log.lists.documents[mask],
        rank[mask],
        clicks[mask],
        skips[mask],
        pairs=pair_count(log),
        cells=log.lists.depth,
    )
