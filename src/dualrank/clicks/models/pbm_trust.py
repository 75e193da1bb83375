"""The position-based model with trust bias: what stands on top is believed to be relevant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.browsing import Independent
from dualrank.clicks.models.click_model import ClickModel
from dualrank.clicks.models.counting import Floats
from dualrank.clicks.models.em import HALF, Beta, Parameters, climb
from dualrank.clicks.models.fitted import FittedParts, Layout
from dualrank.clicks.models.kept_counts import KeptCounts
from dualrank.clicks.models.pair_parameter import PairParameter
from dualrank.clicks.models.pbm import counts_of_part
from dualrank.clicks.models.product_em import ProductCounts
from dualrank.data.log_parts import LogParts

_START = 1 / 3
_NEVER = 1e-9


class _Trust(NamedTuple):
    """Clicks on relevant and on irrelevant documents per rank."""

    relevant: Floats
    irrelevant: Floats


class TrustBias(ClickModel):
    """P(c_k = 1) = a_k γ_d + b_k (1 − γ_d), with a_k = θ_k ε⁺_k and b_k = θ_k ε⁻_k.

    Agarwal et al. (2019): relevant documents are clicked with ε⁺ once examined, irrelevant ones,
    from trust in the ranking, with ε⁻. Clicks tell neither θ from ε nor, as P is linear in γ,
    where the scale of γ begins and ends. Reported is the widest scale: γ = 0 and γ = 1 are as far
    apart as some b_k ≥ 0 and some a_k ≤ 1 allow. γ is drawn to a third (from where the search
    starts) with the strength of `prior`, a_k and b_k to one half with one trial.
    """

    name = "pbm-trust"
    title = "position-based, trust bias"
    follows = False

    def _fit_parts(self, log: LogParts) -> FittedParts:
        parts = KeptCounts(log, counts_of_part)
        prior = self.prior.at(_START)
        found, path = climb(lambda now: _step(parts, prior, now), _start(parts), self.em)
        trust = _Trust(*found.shared)
        zero, one = _widest(trust)
        rise = trust.relevant - trust.irrelevant
        # Rounding may put what should be 0 or 1 a little beyond.
        wide = _Trust(
            np.clip(trust.irrelevant + rise * one, 0.0, 1.0),
            np.clip(trust.irrelevant + rise * zero, 0.0, 1.0),
        )
        values = [
            {"attraction": np.clip((gamma - zero) / (one - zero), 0.0, 1.0)}
            for (gamma,) in found.pairs
        ]
        unseen = (prior.mean - zero) / (one - zero)

        def evidence(number: int) -> dict[str, PairParameter]:
            gamma = values[number]["attraction"]
            return {"attraction": _evidence(parts[number], gamma, wide, unseen)}

        return FittedParts(log, wide._asdict(), values, {"attraction": unseen}, evidence, path)

    def _browse(self, layout: Layout) -> Independent:
        a, b = layout.of_ranks("relevant"), layout.of_ranks("irrelevant")
        clicked = b + (a - b) * layout.of_pairs("attraction")
        return Independent(np.where(layout.mask, clicked, 0.0))


def _start(parts: Sequence[ProductCounts]) -> Parameters:
    """Ranks at their click-through where γ is a third, and pairs by how they compare to that."""
    clicks, shows = np.zeros(parts[0].cells), np.zeros(parts[0].cells)
    for counts in parts:
        clicks += counts.per_cell(counts.clicks)
        shows += counts.per_cell(counts.clicks + counts.skips)
    through = (clicks + 0.5) / (shows + 1)
    pairs = list[tuple[Floats, ...]]()
    for counts in parts:
        expected = counts.per_pair((counts.clicks + counts.skips) * through[counts.cell])
        ratio = (counts.per_pair(counts.clicks) + 1) / (expected + 1)
        pairs.append((np.clip((ratio - 0.5) / 1.5, 0.05, 0.95),))
    return Parameters(pairs, _Trust(np.minimum(2 * through, 0.95), 0.5 * through))


def _step(parts: Sequence[ProductCounts], prior: Beta, now: Parameters) -> tuple[Parameters, float]:
    """One iteration; hidden is whether the document was relevant.

    P(relevant | click) = γ a / p,   P(relevant | skip) = γ (1 − a) / (1 − p),   p = P(click)
    """
    relevant, irrelevant = now.shared
    objective = HALF.log_density(relevant) + HALF.log_density(irrelevant)
    pairs = list[tuple[Floats, ...]]()
    sums = np.zeros((4, len(relevant)))
    for counts, (gamma,) in zip(parts, now.pairs, strict=True):
        found, clicks, skips, log_likelihood = _expect(
            counts.offsets, counts.cell, counts.clicks, counts.skips, gamma, relevant, irrelevant
        )
        objective += log_likelihood + prior.log_density(gamma)
        pairs.append((prior.estimate(found, counts.per_pair(counts.clicks + counts.skips)),))
        others = counts.per_cell(counts.clicks) - clicks, counts.per_cell(counts.skips) - skips
        sums += np.stack([clicks, skips, *others])
    clicks, skips, other_clicks, other_skips = sums
    better = _Trust(
        HALF.estimate(clicks, clicks + skips),
        HALF.estimate(other_clicks, other_clicks + other_skips),
    )
    return Parameters(pairs, better), objective


def _widest(trust: _Trust) -> tuple[float, float]:
    """How far γ can go below 0 and above 1 until some click is impossible or certain."""
    rise, base = trust.relevant - trust.irrelevant, trust.irrelevant
    moves = np.abs(rise) > _NEVER
    if not moves.any():
        return 0.0, 1.0
    ends = np.stack([-base[moves] / rise[moves], (1 - base[moves]) / rise[moves]])
    return float(min(ends.min(axis=0).max(), 0.0)), float(max(ends.max(axis=0).min(), 1.0))


def _evidence(counts: ProductCounts, gamma: Floats, trust: _Trust, unseen: float) -> PairParameter:
    """γ with the Fisher information Σ n (a − b)² / (p (1 − p))."""
    a, b = trust.relevant[counts.cell], trust.irrelevant[counts.cell]
    p = np.clip(b + (a - b) * gamma[counts.pair], 1e-6, 1 - 1e-6)
    information = (counts.clicks + counts.skips) * (a - b) ** 2 / (p * (1 - p))
    return PairParameter.from_information(gamma, counts.per_pair(information), unseen)


@numba.njit(cache=True)
def _expect(
    offsets: NDArray[np.int64],
    cell: NDArray[np.int32],
    clicks: Floats,
    skips: Floats,
    gamma: Floats,
    relevant: Floats,
    irrelevant: Floats,
) -> tuple[Floats, Floats, Floats, float]:
    """Relevant displays per pair, relevant clicks and skips per cell, and the log-likelihood."""
    found = np.zeros(len(gamma))
    found_clicks, found_skips = np.zeros(len(relevant)), np.zeros(len(relevant))
    log_likelihood = 0.0
    for pair in range(len(gamma)):
        g = gamma[pair]
        for entry in range(offsets[pair], offsets[pair + 1]):
            k = cell[entry]
            p = g * relevant[k] + (1.0 - g) * irrelevant[k]
            if clicks[entry] > 0:
                share = clicks[entry] * g * relevant[k] / p
                found[pair] += share
                found_clicks[k] += share
                log_likelihood += clicks[entry] * math.log(p)
            if skips[entry] > 0:
                share = skips[entry] * g * (1.0 - relevant[k]) / (1.0 - p)
                found[pair] += share
                found_skips[k] += share
                log_likelihood += skips[entry] * math.log(1.0 - p)
    return found, found_clicks, found_skips, log_likelihood
