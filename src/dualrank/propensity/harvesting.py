"""Examination harvested from documents that were shown at several positions.

A query–document pair is as relevant at one position as at another, so where a log shows it at k and
at k' (because rankers differed, changed, or were compared), the ratio of its click-through at both
is the ratio of examination: Agarwal et al., "Estimating Position Bias without Intrusive
Interventions" (WSDM 2019). Over the pairs S_{kk'} that were seen at both,

    ĉ_k^{kk'} = Σ_{(q,d) ∈ S_kk'}  v_qd · clicks_qd(k) / impressions_qd(k)
    P(o_k)/P(o_k') = E[ĉ_k^{kk'}] / E[ĉ_k'^{kk'}]

for weights v that are the same on both sides and do not look at clicks. The paper divides clicks by
the traffic of the rankers that put the document there, which lets a pair count as often as its
query is asked. The default here is v = n_k n_k'/(n_k + n_k'), where n are the impressions of the
pair: a pair seen a thousand times at both says more than one seen once. The ratio of sums is then
that of Mantel and Haenszel, which stays consistent however few impressions each pair has, and needs
no knowledge of the rankers. With v = 1 every pair counts once.

Three ways lead from the sums to the curve:

- *pivot*: P(o_k)/P(o_1) from the pairs seen at k and at 1;
- *adjacent chain*: P(o_k)/P(o_{k−1}) from neighbours, multiplied up;
- *all pairs*: the curve that explains the sums of all (k, k') best.

It assumes that examination depends on the position only, and that what moves a document does not
know more about its relevance of the day than its query and name say.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dualrank.propensity.bootstrap import Evidence, LogCurve, log_ratio
from dualrank.propensity.grouped_clicks import Cells, GroupedClicks, Sums
from dualrank.propensity.grouped_parts import Grouped

Way = Literal["pivot", "adjacent", "all-pairs"]
Weights = Literal["harmonic", "equal"]
NEWTON_STEPS = 50
TOLERANCE = 1e-9


def harvest(grouped: Grouped, way: Way = "all-pairs", weights: Weights = "harmonic") -> Evidence:
    """The sums of one way of harvesting, per group."""
    partners = _partners(grouped.depth, way)

    def count(part: GroupedClicks) -> Sums:
        cells = part.cells.moved
        sums = interventional_sums(cells, part.group_count, weights)
        return sums, _impressions_met(cells, partners), _pairs_seen_at_both(cells)

    both_ways, met, shared = grouped.total(count)
    seen = both_ways.sum(axis=0)
    ways: dict[Way, LogCurve] = {
        "pivot": _pivot,
        "adjacent": _adjacent,
        "all-pairs": log_curve_of_all_pairs,
    }

    def missing(k: int) -> str:
        other = k - 1 if way == "adjacent" else 0
        if way == "all-pairs":
            if not met[k]:
                return f"no query–document pair was seen at position {k + 1} and at another one"
            return f"position {k + 1} is connected to the first through no clicked document"
        if not shared[other, k]:
            return f"no query–document pair was seen at positions {other + 1} and {k + 1}"
        quiet = k if seen[k, other] == 0 else other
        return (
            f"the documents seen at positions {other + 1} and {k + 1} were never clicked "
            f"at {quiet + 1}"
        )

    return Evidence(f"harvest-{way}", both_ways, ways[way], met, missing)


def interventional_sums(
    cells: Cells, groups: int, weights: Weights = "harmonic"
) -> NDArray[np.float64]:
    """ĉ_k^{kk'} as `[group, k, k']`, 0 where no pair was seen at both."""
    depth = cells.depth
    sums = np.zeros(groups * depth * depth)
    for upper, lower in meetings(cells):
        n, m = cells.impressions[upper], cells.impressions[lower]
        v = n * m / (n + m) if weights == "harmonic" else np.ones(len(n))
        for one, other, seen in ((upper, lower, n), (lower, upper, m)):
            share = np.zeros(len(cells.document))
            share[one] = v / seen
            at = np.zeros(len(cells.document), dtype=np.int64)
            at[one] = cells.position[one] * depth + cells.position[other]
            entries = np.flatnonzero((share[cells.cell] > 0) & (cells.clicked > 0))
            cell = cells.cell[entries]
            sums += np.bincount(
                cells.group[entries] * depth * depth + at[cell],
                share[cell] * cells.clicked[entries],
                len(sums),
            )
    return sums.reshape(groups, depth, depth)


def meetings(cells: Cells) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Pairs of cells of one document at two positions, the upper one first."""
    found = []
    # Cells of a document stand together: those `apart` places apart, for every distance.
    for apart in range(1, cells.depth):
        upper = np.flatnonzero(cells.document[apart:] == cells.document[:-apart])
        if len(upper) == 0:
            break
        found.append((upper, upper + apart))
    return found


def _pivot(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    curve = log_ratio(np.stack([sums[..., :, 0], sums[..., 0, :]], axis=-2))
    curve[..., 0] = 0.0
    return curve


def _adjacent(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    lower, upper = (np.diagonal(sums, offset, axis1=-2, axis2=-1) for offset in (-1, 1))
    steps = log_ratio(np.stack([lower, upper], axis=-2))
    with np.errstate(invalid="ignore"):
        return np.concatenate([np.zeros_like(steps[..., :1]), np.cumsum(steps, axis=-1)], axis=-1)


def log_curve_of_all_pairs(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """The curve of greatest likelihood over all interventional sets.

    The paper maximises Σ_{kk'} ĉ log(p_k r_kk') + (1 − ĉ) log(1 − p_k r_kk') over the curve p and
    a relevance r_kk' of each set. Clicks are rare, and for rare clicks (Poisson instead of
    Bernoulli) r_kk' drops out: what remains is how the clicks of a set fall on its two positions,

        Σ_{k<k'} ĉ_k^{kk'} log p_k/(p_k + p_k') + ĉ_k'^{kk'} log p_k'/(p_k + p_k'),

    the likelihood of Bradley and Terry, which is concave in log p. Newton's method, for all
    resamples at once. Positions that clicks do not connect to the first are nan.
    """
    # What is not connected in all of them together is not in any: far down, lists have few clicks.
    some = _connected_to_first(sums.sum(axis=tuple(range(sums.ndim - 2))))
    if not some.all():
        curve = np.full(sums.shape[:-1], np.nan)
        curve[..., some] = log_curve_of_all_pairs(sums[..., some, :][..., some])
        return curve
    depth = sums.shape[-1]
    connected = _connected_to_first(sums)
    inside = connected[..., :, None] & connected[..., None, :]
    wins = np.where(inside, sums, 0.0)
    met = wins + np.swapaxes(wins, -1, -2)
    won = wins.sum(axis=-1)
    fixed = ~connected | (np.arange(depth) == 0)
    log_p = np.zeros(sums.shape[:-1])
    for _ in range(NEWTON_STEPS):
        # p_k/(p_k + p_k') as `[…, k, k']`.
        share = expit(log_p[..., :, None] - log_p[..., None, :])
        slope = np.where(fixed, 0.0, won - (met * share).sum(axis=-1))
        bend = met * share * np.swapaxes(share, -1, -2)
        curvature = -bend
        np.einsum("...kk->...k", curvature)[...] += bend.sum(axis=-1)
        curvature = np.where(fixed[..., :, None] | fixed[..., None, :], 0.0, curvature)
        np.einsum("...kk->...k", curvature)[...] += fixed
        step = np.linalg.solve(curvature, slope[..., None])[..., 0]
        # Far from the optimum a full step may overshoot; no curve moves by more than e² at once.
        log_p += np.clip(step, -2, 2)
        if np.abs(step).max() < TOLERANCE:
            break
    return np.where(connected, log_p, np.nan)


def _connected_to_first(sums: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Positions between which and the first clicks run both ways, through any others.

    Without clicks from k' to k as well as from k to k' the likelihood has no maximum.
    """
    depth = sums.shape[-1]
    reach = (sums > 0) | np.eye(depth, dtype=bool)
    for _ in range(int(np.ceil(np.log2(max(depth, 2))))):
        reach = np.matmul(reach.astype(np.float32), reach.astype(np.float32)) > 0
    return reach[..., 0, :] & reach[..., :, 0]


def _partners(depth: int, way: Way) -> NDArray[np.bool_]:
    """Which pairs of positions a way compares."""
    k = np.arange(depth)
    if way == "pivot":
        return (k[:, None] == 0) ^ (k == 0)
    if way == "adjacent":
        return np.abs(k[:, None] - k) == 1
    return k[:, None] != k


def _impressions_met(cells: Cells, partners: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Impressions at each position of pairs that were seen at one of its partners too."""
    counted = np.zeros(len(cells.document), dtype=bool)
    for upper, lower in meetings(cells):
        compared = partners[cells.position[upper], cells.position[lower]]
        counted[upper[compared]] = counted[lower[compared]] = True
    return np.bincount(cells.position[counted], cells.impressions[counted], cells.depth).astype(
        np.int64
    )


def _pairs_seen_at_both(cells: Cells) -> NDArray[np.int64]:
    """How many query–document pairs were seen at k and below it at k', as `[k, k']`."""
    seen = np.zeros(cells.depth**2, dtype=np.int64)
    for upper, lower in meetings(cells):
        place = cells.position[upper] * cells.depth + cells.position[lower]
        seen += np.bincount(place, minlength=len(seen))
    return seen.reshape(cells.depth, cells.depth)
