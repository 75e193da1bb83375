"""The user browsing model: examination by rank and by the distance to the last click."""

from __future__ import annotations

import numpy as np

from dualrank.clicks.browsing import ByLastClick
from dualrank.clicks.models.click_model import ClickModel
from dualrank.clicks.models.counting import click_through, pair_count
from dualrank.clicks.models.fitted import Fitted, Layout
from dualrank.clicks.models.product_em import ProductCounts, attraction_of_pairs, fit_product
from dualrank.data.click_log import ClickLog


class UserBrowsing(ClickModel):
    """P(c_k = 1 | c_<k) = γ_(k,r) · α_d, r the rank of the last click above (0: none), γ_(1,0) = 1.

    Dupret and Piwowarski (2008). As in the position-based model a common factor could stand on
    either side; the first rank is taken to be examined always. Priors are as there.
    """

    name = "ubm"
    title = "user browsing"

    def _fit(self, log: ClickLog) -> Fitted:
        counts = browsing_counts(log)
        prior = self.prior.at(click_through(log))
        fit = fit_product(counts, prior, self.em)
        attraction = attraction_of_pairs(counts, fit, prior.mean)
        # Nothing can have been clicked at or below the rank itself.
        examination = np.tril(fit.examination.reshape(log.lists.depth, -1))
        return Fitted.on(log, {"attraction": attraction}, {"examination": examination}, fit.climb)

    def _browse(self, layout: Layout) -> ByLastClick:
        attraction = layout.of_pairs("attraction")
        return ByLastClick(attraction, layout.of_ranks("examination")[:, : attraction.shape[1] + 1])


def browsing_counts(log: ClickLog) -> ProductCounts:
    """Clicks and skips of every pair by rank and last click above."""
    depth = log.lists.depth
    clicked_rank = np.where(log.clicks, np.arange(1, depth + 1), 0)
    last = np.zeros_like(clicked_rank)
    last[:, 1:] = np.maximum.accumulate(clicked_rank, axis=1)[:, :-1]
    cell = last + np.arange(depth) * (depth + 1)
    documents = log.lists.documents[log.list_of]
    mask = log.lists.mask[log.list_of]
    counts = np.broadcast_to(log.counts[:, None], mask.shape)
    return ProductCounts.grouped(
        documents[mask],
        cell[mask],
        (counts * log.clicks)[mask],
        (counts * ~log.clicks)[mask],
        pairs=pair_count(log),
        cells=depth * (depth + 1),
    )
