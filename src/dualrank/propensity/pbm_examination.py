"""The examination of the position-based click model that makes the log most likely.

Clicks on pair d at position k have probability p_k γ_d. The EM algorithm of Craswell et al. and its
successors climbs the likelihood

    ℓ(p, γ) = Σ_{d,k}  c_dk log(p_k γ_d) + (n_dk − c_dk) log(1 − p_k γ_d)

over n_dk impressions and c_dk clicks, slowly where few documents move. The same summit is reached
here by Newton's method on the curve alone: for every p the best γ_d solves one equation, and what
remains depends on as many numbers as there are positions. A pair that was seen at one position only
says nothing, as its γ_d explains any click-through there.

Like every estimate with a parameter per document it is biased where documents have a few
impressions each; harvesting is not. A resample is one Newton step from the summit, with the scores
and the curvature of the groups drawn, instead of climbing again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dualrank.errors import DataError
from dualrank.propensity.bootstrap import Evidence
from dualrank.propensity.grouped_clicks import Cells, GroupedClicks
from dualrank.propensity.harvesting import harvest, meetings

STEPS = 100
TOLERANCE = 1e-8


def position_based_model(grouped: GroupedClicks) -> Evidence:
    """The most likely curve, and the groups' scores at it."""
    harvested = harvest(grouped, "all-pairs")
    start = harvested.log_curve(harvested.statistics.sum(axis=0)[None])[0]
    connected = np.isfinite(start)
    if connected.sum() < 2:
        raise DataError(harvested.missing(1))
    cells = _informative(grouped.cells.moved, connected)
    summit = _climb(cells, np.where(connected, start, 0.0), connected)
    groups, depth = grouped.group_count, grouped.depth
    if grouped.over == "queries":
        curvature = summit.curvature_by_group(groups)
    else:
        # A document's sessions are in all groups, its curvature in none: each has an equal part.
        curvature = np.broadcast_to(summit.curvature() / groups, (groups, depth, depth))
    statistics = np.concatenate([summit.scores(groups)[:, None], curvature], axis=1)
    free = np.flatnonzero(connected)[1:]
    log_p = np.where(connected, summit.log_p, np.nan)
    support = np.bincount(cells.position, cells.impressions, depth).astype(np.int64)

    def one_step(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        bend = sums[:, 1:][:, free][:, :, free]
        seen = np.diagonal(bend, axis1=1, axis2=2) > 0
        bend = bend + np.eye(len(free)) * (1e-9 * np.trace(bend, axis1=1, axis2=2)[:, None, None])
        curves = np.tile(log_p, (len(sums), 1))
        moved = np.linalg.solve(bend, sums[:, 0, free, None])[..., 0]
        curves[:, free] += np.where(seen, moved, np.nan)
        return curves

    return Evidence("pbm", statistics, one_step, support, harvested.missing)


@dataclass(frozen=True, eq=False)
class _Profile:
    """The likelihood at a curve, with the best γ for every document.

    γ_d may be as large as 1/max p_k over the positions where d was seen; where that bound holds
    (every impression there was clicked), γ_d follows p at that position instead of all of them.
    """

    cells: Cells
    log_p: NDArray[np.float64]
    document: NDArray[np.int64]
    u: NDArray[np.float64]
    share: NDArray[np.float64]

    @classmethod
    def at(cls, cells: Cells, log_p: NDArray[np.float64]) -> _Profile:
        """Solve for γ: C_d = Σ_k (n − c) u/(1 − u) with u = p_k γ_d."""
        document = np.cumsum(np.append(0, np.diff(cells.document) != 0))
        starts = np.flatnonzero(np.append(True, np.diff(document)))
        theta = log_p[cells.position]
        x, bound = _best_relevance(
            theta, cells.impressions, cells.clicks, np.append(starts, len(theta))
        )
        at_bound = bound - x < 1e-6
        u = np.exp(theta + np.where(at_bound, bound, x)[document])
        limit = at_bound[document] & (u > 1 - 1e-9)
        u = np.where(limit, 1.0, u)
        weight = _weight(cells, u)
        total = np.add.reduceat(weight, starts)
        # The first of the positions that hold γ at its bound, where several do.
        holds = limit & (np.add.accumulate(limit) - _before(limit, starts, document) == 1)
        share = np.where(at_bound[document], holds, weight / np.maximum(total[document], 1e-300))
        return cls(cells, log_p, document, u, share)

    @property
    def likelihood(self) -> float:
        """ℓ at the curve."""
        left = self.cells.impressions - self.cells.clicks
        with np.errstate(divide="ignore"):
            missed = np.where(left > 0, np.log1p(-self.u), 0.0)
        return float(self.cells.clicks @ np.log(self.u) + left @ missed)

    def slope(self) -> NDArray[np.float64]:
        """The derivative of ℓ in log p; what the γ gain by following is nothing at their best.

        Where the γ is at its bound, it follows p there, which takes from that position what the
        others of the document gain.
        """
        residual = _residual(self.cells.impressions, self.cells.clicks, self.u)
        total = np.bincount(self.document, residual)[self.document]
        gained = residual - self.share * total
        return np.bincount(self.cells.position, gained, self.cells.depth).astype(np.float64)

    def scores(self, groups: int) -> NDArray[np.float64]:
        """What each group's clicks say about log p, beyond what they say about the γ."""
        cells, depth = self.cells, self.cells.depth
        residual = _residual(cells.shown, cells.clicked, self.u[cells.cell])
        place = cells.group * depth + cells.position[cells.cell]
        direct = np.bincount(place, residual, groups * depth).reshape(groups, depth)
        documents = self.document[-1] + 1
        per_document = csr_array(
            (residual, (cells.group, self.document[cells.cell])), shape=(groups, documents)
        )
        return direct - (per_document @ self._by_document(self.share)).toarray()

    def curvature(self) -> NDArray[np.float64]:
        """The information on log p: Σ_dk w_dk (e_k − share_d)(e_k − share_d)ᵀ."""
        weight = _weight(self.cells, self.u)
        share, w = self._by_document(self.share), self._by_document(weight)
        crossed = (w.T @ share).toarray()
        per_document = np.bincount(self.document, weight)
        within = (share.T @ (share * per_document[:, None])).toarray()
        diagonal = np.diag(np.bincount(self.cells.position, weight, self.cells.depth))
        return diagonal - crossed - crossed.T + within

    def curvature_by_group(self, groups: int) -> NDArray[np.float64]:
        """The same, apart for each group, where a document belongs to one."""
        cells, depth, share = self.cells, self.cells.depth, self.share
        weight = _weight(cells, self.u)
        total = np.bincount(self.document, weight)[self.document]
        every = np.arange(len(weight))
        sums = np.zeros(groups * depth * depth)
        for here, there in [(every, every), *meetings(cells)]:
            value = total[here] * share[here] * share[there]
            value -= weight[here] * share[there] + share[here] * weight[there]
            if here is there:
                value += weight
            both = [(here, there)] if here is there else [(here, there), (there, here)]
            for one, other in both:
                place = (cells.group[one] * depth + cells.position[one]) * depth
                sums += np.bincount(place + cells.position[other], value, len(sums))
        return sums.reshape(groups, depth, depth)

    def _by_document(self, values: NDArray[np.float64]) -> csr_array:
        shape = (self.document[-1] + 1, self.cells.depth)
        return csr_array((values, (self.document, self.cells.position)), shape=shape)


def _climb(cells: Cells, log_p: NDArray[np.float64], connected: NDArray[np.bool_]) -> _Profile:
    """Newton's method on the profile likelihood, never downhill."""
    free = np.flatnonzero(connected)[1:]
    here = _Profile.at(cells, log_p)
    for _ in range(STEPS):
        step = np.zeros(len(log_p))
        try:
            step[free] = np.linalg.solve(here.curvature()[np.ix_(free, free)], here.slope()[free])
        except np.linalg.LinAlgError as error:
            raise DataError(
                "the clicks fit many curves equally well, as where every document shown was clicked"
            ) from error
        step = np.clip(step, -1, 1)
        for _ in range(20):
            there = _Profile.at(cells, here.log_p + step)
            if there.likelihood >= here.likelihood - 1e-9 * abs(here.likelihood):
                break
            step = step / 2
        here = there
        if np.abs(step).max() < 1e-6:
            break
    return here


def _informative(cells: Cells, connected: NDArray[np.bool_]) -> Cells:
    """Cells of clicked documents that were seen at two connected positions or more."""
    cells = cells.take(connected[cells.position]).moved
    clicked = np.bincount(cells.document, cells.clicks)[cells.document] > 0
    return cells.take(clicked)


@numba.njit(cache=True)
def _best_relevance(
    theta: NDArray[np.float64],
    impressions: NDArray[np.float64],
    clicks: NDArray[np.float64],
    offsets: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """log γ of every document by Newton's method, and its bound −max log p."""
    documents = len(offsets) - 1
    x, bound = np.empty(documents), np.empty(documents)
    for d in range(documents):
        cells = range(offsets[d], offsets[d + 1])
        highest, clicked, seen = -np.inf, 0.0, 0.0
        for i in cells:
            highest = max(highest, theta[i])
            clicked += clicks[i]
            seen += impressions[i] * np.exp(theta[i])
        bound[d] = -highest
        x[d] = min(np.log(clicked / seen), bound[d] - 1e-3)
        for _ in range(STEPS):
            slope, bend = clicked, 0.0
            for i in cells:
                u = np.exp(theta[i] + x[d])
                missed = (impressions[i] - clicks[i]) * u / (1 - u)
                slope -= missed
                bend += missed / (1 - u)
            # Newton's steps may leap over the bound: go half the way to it instead.
            step = (bound[d] - x[d]) / 2
            if bend > 0:
                step = min(step, slope / bend)
            x[d] += step
            if abs(step) < TOLERANCE:
                break
    return x, bound


def _residual(
    shown: NDArray[np.float64], clicked: NDArray[np.float64], u: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The derivative of the likelihood in log u."""
    left = shown - clicked
    return clicked - left * np.divide(u, 1 - u, out=np.zeros_like(u), where=left > 0)


def _weight(cells: Cells, u: NDArray[np.float64]) -> NDArray[np.float64]:
    left = cells.impressions - cells.clicks
    return np.divide(left * u, (1 - u) ** 2, out=np.zeros_like(u), where=left > 0)


def _before(
    flags: NDArray[np.bool_], starts: NDArray[np.int64], document: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many flags stand before the cells of each document."""
    return np.append(0, np.cumsum(flags))[starts][document]
