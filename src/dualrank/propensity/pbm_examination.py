"""The examination of the position-based click model that makes the log most likely.

Clicks on pair d at position k have probability p_k γ_d, and the log has the likelihood

    ℓ(p, γ) = Σ_{d,k}  c_dk log(p_k γ_d) + (n_dk − c_dk) log(1 − p_k γ_d)

over n_dk impressions and c_dk clicks. The click model's own EM climbs it (`clicks.models.pbm`),
without a prior and on the pairs that were seen at two positions or more: the others say nothing, as
their γ_d explains any click-through. From where EM comes to rest, one step of Newton's method leads
to the summit, and one with the scores and the curvature of the groups drawn to that of a resample.

Like every estimate with a parameter per document it is biased where documents have a few
impressions each; harvesting is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dualrank.clicks.models.em import EM, Beta, Climb
from dualrank.clicks.models.kept_counts import KeptCounts
from dualrank.clicks.models.product_em import ProductCounts, ProductFit, fit_product
from dualrank.errors import DataError
from dualrank.propensity.bootstrap import Evidence
from dualrank.propensity.grouped_clicks import Cells, GroupedClicks, Sums
from dualrank.propensity.grouped_parts import Grouped
from dualrank.propensity.harvesting import harvest, meetings

NO_PRIOR = Beta(0.0, 0.0, 0.5)
CLOSELY = EM(tolerance=1e-4)
CERTAIN = 1 - 1e-3
FARTHEST = 10.0

Floats = NDArray[np.float64]


def position_based_model(grouped: Grouped) -> Evidence:
    """The most likely curve, and the groups' scores at it."""
    harvested = harvest(grouped, "all-pairs")
    start = harvested.log_curve(harvested.statistics.sum(axis=0)[None])[0]
    connected = np.isfinite(start)
    if connected.sum() < 2:
        raise DataError(harvested.missing(1))
    fit = _climbed(grouped, connected, np.where(connected, start, -np.inf))
    groups, depth = grouped.group_count, grouped.depth
    free = np.flatnonzero(connected)[1:]
    attraction = iter(fit.attraction)

    def count(part: GroupedClicks) -> Sums:
        cells = _informative(part.cells.moved, connected)
        # Parts come in the same order again.
        found = _Likelihood.of(cells, next(attraction), fit.examination)
        if grouped.over == "queries":
            curvature = found.curvature(found.cells.group, groups)
        else:
            # A document's sessions are in all groups, its curvature in none: equal parts for each.
            at_once = found.curvature(np.zeros_like(found.document), 1)
            curvature = np.repeat(at_once / groups, groups, axis=0)
        support = np.bincount(cells.position, cells.impressions, depth).astype(np.int64)
        return found.scores(groups), curvature, support

    scores, curvature, support = grouped.total(count)
    whole = curvature.sum(axis=0)
    if np.linalg.matrix_rank(whole[np.ix_(free, free)]) < len(free):
        raise DataError(
            "the clicks fit many curves equally well, as where every document shown was clicked"
        )
    with np.errstate(divide="ignore"):
        log_p = np.log(fit.examination) - np.log(fit.examination[0])
    log_p = np.where(connected, log_p, np.nan)
    step = np.linalg.solve(whole[np.ix_(free, free)], scores.sum(axis=0)[free])
    log_p[free] += np.clip(step, -1, 1)
    # At the summit scores add up to nothing.
    scores -= scores.mean(axis=0)
    statistics = np.concatenate([scores[:, None], curvature], axis=1)

    def one_step(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        bend = sums[:, 1:][:, free][:, :, free]
        seen = np.diagonal(bend, axis1=1, axis2=2) > 0
        bend = bend + np.eye(len(free)) * (1e-9 * np.trace(bend, axis1=1, axis2=2)[:, None, None])
        curves = np.tile(log_p, (len(sums), 1))
        moved = np.linalg.solve(bend, sums[:, 0, free, None])[..., 0]
        curves[:, free] += np.where(seen, np.clip(moved, -FARTHEST, FARTHEST), np.nan)
        return curves

    return Evidence("pbm", statistics, one_step, support, harvested.missing)


def _climbed(grouped: Grouped, connected: NDArray[np.bool_], start: Floats) -> ProductFit:
    """Where EM comes to rest, from this curve, which is anchored where it is highest."""
    anchor = int(start.argmax())
    examination = np.exp(np.minimum(start - start[anchor], -1e-3))
    examination[anchor] = 1.0

    def count(part: GroupedClicks) -> ProductCounts:
        cells = _informative(part.cells.moved, connected)
        document = _numbered(cells)
        return ProductCounts(
            np.searchsorted(document, np.arange(document.max(initial=-1) + 2)),
            cells.position.astype(np.int32),
            cells.clicks,
            cells.impressions - cells.clicks,
            cells.depth,
        )

    parts = KeptCounts(grouped, count)
    attraction = []
    for counts in parts:
        examined = counts.per_pair((counts.clicks + counts.skips) * examination[counts.cell])
        clicks = counts.per_pair(counts.clicks)
        attraction.append(np.minimum(clicks / examined, 0.99))
    first = ProductFit(attraction, examination, Climb())
    return fit_product(
        parts, NO_PRIOR, CLOSELY, examination_prior=NO_PRIOR, anchor=anchor, start=first
    )


def _numbered(cells: Cells) -> NDArray[np.int64]:
    """The documents of cells, numbered from 0 without gaps."""
    follows = cells.document[1:] != cells.document[:-1]
    return np.append(0, np.cumsum(follows))[: len(cells.document)]


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """How the likelihood bends around p, with every γ following p as it likes best.

    `u` is p_k γ_d of each cell, and `share` by how much log γ_d falls where log p_k rises. γ is at
    most 1/max p; one that would be more keeps to that and follows nothing. Cells where a click is
    certain already (u = 1) are left out: no curve could make them any likelier.
    """

    cells: Cells
    document: NDArray[np.int64]
    u: NDArray[np.float64]
    share: NDArray[np.float64]

    @classmethod
    def of(cls, cells: Cells, attraction: Floats, examination: Floats) -> _Likelihood:
        """Around where EM came to rest."""
        document = _numbered(cells)
        u = attraction[document] * examination[cells.position]
        weight = _weight(cells, u)
        total = np.bincount(document, weight)
        gained = np.bincount(document, _residual(cells.impressions, cells.clicks, u))
        bound = (gained >= -np.log(attraction) * total)[document]
        share = np.where(bound, 0.0, weight / np.maximum(total[document], 1e-300))
        uncertain = ~bound | (u < CERTAIN)
        return cls(cells.take(uncertain), document[uncertain], u[uncertain], share[uncertain])

    def scores(self, groups: int) -> NDArray[np.float64]:
        """What each group's clicks say about log p, beyond what they say about the γ."""
        cells, depth = self.cells, self.cells.depth
        residual = _residual(cells.shown, cells.clicked, self.u[cells.cell])
        place = cells.group * depth + cells.position[cells.cell]
        direct = np.bincount(place, residual, groups * depth).reshape(groups, depth)
        documents = self.document.max(initial=0) + 1
        by_document = csr_array(
            (residual, (cells.group, self.document[cells.cell])), shape=(groups, documents)
        )
        share = csr_array((self.share, (self.document, cells.position)), shape=(documents, depth))
        return direct - (by_document @ share).toarray()

    def curvature(self, group: NDArray[np.integer], groups: int) -> NDArray[np.float64]:
        """The information on log p, by group of the cells: Σ_d diag(w_d) − w_d share_dᵀ."""
        cells, depth = self.cells, self.cells.depth
        weight = _weight(cells, self.u)
        every = np.arange(len(weight))
        parts = [(every, every, weight * (1 - self.share))]
        for upper, lower in meetings(cells):
            value = -weight[upper] * self.share[lower]
            parts += [(upper, lower, value), (lower, upper, value)]
        sums = np.zeros(groups * depth * depth)
        for row, column, value in parts:
            place = (group[row] * depth + cells.position[row]) * depth + cells.position[column]
            sums += np.bincount(place, value, len(sums))
        return sums.reshape(groups, depth, depth)


def _informative(cells: Cells, connected: NDArray[np.bool_]) -> Cells:
    """Cells of clicked documents that were seen at two connected positions or more."""
    cells = cells.take(connected[cells.position]).moved
    clicked = np.bincount(cells.document, cells.clicks)[cells.document] > 0
    return cells.take(clicked)


def _residual(
    shown: NDArray[np.float64], clicked: NDArray[np.float64], u: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The derivative of the likelihood in log u."""
    left = shown - clicked
    return clicked - left * np.divide(u, 1 - u, out=np.zeros_like(u), where=left > 0)


def _weight(cells: Cells, u: NDArray[np.float64]) -> NDArray[np.float64]:
    left = cells.impressions - cells.clicks
    return np.divide(left * u, (1 - u) ** 2, out=np.zeros_like(u), where=left > 0)
