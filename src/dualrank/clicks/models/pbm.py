"""The position-based model: a click is examination of the rank and attraction of the document."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dualrank.clicks.browsing import Independent
from dualrank.clicks.models.click_model import ClickModel
from dualrank.clicks.models.counting import click_through, pair_count
from dualrank.clicks.models.em import EM, Prior
from dualrank.clicks.models.fitted import FittedParts, Layout
from dualrank.clicks.models.kept_counts import KeptCounts
from dualrank.clicks.models.pair_parameter import PairParameter
from dualrank.clicks.models.product_em import ProductCounts, attraction_of_pairs, fit_product
from dualrank.data.click_log import ClickLog
from dualrank.data.log_parts import LogPart, LogParts


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

    def _fit_parts(self, log: LogParts) -> FittedParts:
        return fit_browsing(log, KeptCounts(log, counts_of_part), self.prior, self.em)

    def _browse(self, layout: Layout) -> Independent:
        return Independent(layout.of_pairs("attraction") * layout.of_ranks("examination"))


def fit_browsing(
    log: LogParts, parts: Sequence[ProductCounts], prior: Prior, em: EM
) -> FittedParts:
    """Attraction of pairs and examination of cells, by EM."""
    of_pairs = prior.at(click_through(log))
    fit = fit_product(parts, of_pairs, em)

    def evidence(number: int) -> dict[str, PairParameter]:
        counts, values = parts[number], fit.attraction[number]
        known = attraction_of_pairs(counts, values, fit.examination, of_pairs.mean)
        return {"attraction": known}

    values = [{"attraction": each} for each in fit.attraction]
    unseen, shared = {"attraction": of_pairs.mean}, {"examination": fit.examination}
    return FittedParts(log, shared, values, unseen, evidence, fit.climb)


def counts_of_part(part: LogPart) -> ProductCounts:
    """The same of a part of a log, as an engine has counted it or counted now."""
    if part.sums is None:
        return position_counts(part.log)
    log_depth = part.log.lists.depth
    document, place, sessions, clicks = part.sums().rows.T
    return ProductCounts(
        np.searchsorted(document, np.arange(int(document.max(initial=-1)) + 2)),
        (place - 1).astype(np.int32),
        clicks.astype(np.float64),
        (sessions - clicks).astype(np.float64),
        log_depth,
    )


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
