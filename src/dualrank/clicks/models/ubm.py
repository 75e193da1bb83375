"""The user browsing model: examination by rank and by the distance to the last click."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dualrank.clicks.browsing import ByLastClick
from dualrank.clicks.models.click_model import ClickModel
from dualrank.clicks.models.counting import pair_count, tally
from dualrank.clicks.models.fitted import FittedParts, Layout
from dualrank.clicks.models.kept_counts import KeptCounts
from dualrank.clicks.models.pbm import fit_browsing
from dualrank.clicks.models.product_em import ProductCounts
from dualrank.data.click_log import ClickLog
from dualrank.data.lists import PADDING
from dualrank.data.log_parts import LogParts


class UserBrowsing(ClickModel):
    """P(c_k = 1 | c_<k) = γ_(k,r) · α_d, r the rank of the last click above (0: none), γ_(1,0) = 1.

    Dupret and Piwowarski (2008). As in the position-based model a common factor could stand on
    either side; the first rank is taken to be examined always. Priors are as there.
    """

    name = "ubm"
    title = "user browsing"

    def _fit_parts(self, log: LogParts) -> FittedParts:
        parts = KeptCounts(log, lambda part: browsing_counts(part.log))
        found = fit_browsing(log, parts, self.prior, self.em)
        # Nothing can have been clicked at or below the rank itself.
        examination = np.tril(found.shared["examination"].reshape(log.depth, -1))
        return replace(found, shared={"examination": examination})

    def _browse(self, layout: Layout) -> ByLastClick:
        attraction = layout.of_pairs("attraction")
        return ByLastClick(attraction, layout.of_ranks("examination")[:, : attraction.shape[1] + 1])


def browsing_counts(log: ClickLog) -> ProductCounts:
    """Clicks and skips of every pair by rank and last click above."""
    depth = log.lists.depth
    last = np.zeros(len(log.counts), dtype=np.int32)
    entries = []
    for k, clicked in enumerate(log.clicks.T):
        # Rank by rank, which needs no matrix of all rows.
        documents = log.lists.documents[:, k][log.list_of]
        shown = documents != PADDING
        key = documents[shown].astype(np.int64) * (depth + 1) + last[shown]
        found, entry = np.unique(key, return_inverse=True)
        counts = log.counts[shown]
        clicks = tally(entry, counts * clicked[shown], len(found))
        pair, above = np.divmod(found, depth + 1)
        skips = tally(entry, counts, len(found)) - clicks
        entries.append((pair, k * (depth + 1) + above, clicks, skips))
        last[clicked] = k + 1
    pair, cell, clicks, skips = (np.concatenate(each) for each in zip(*entries, strict=True))
    return ProductCounts.grouped(
        pair, cell, clicks, skips, pairs=pair_count(log), cells=depth * (depth + 1)
    )
