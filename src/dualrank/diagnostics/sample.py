"""Is there enough of the log, once clicks are weighted?

A click at rank k counts w_k = P(o_1)/P(o_k) times. Weighted clicks are worth fewer than they are,

    effective clicks = (Σ w)² / Σ w²,

and where a few heavy ones carry the sum, training follows their luck. Believed is the harvested
curve where it reaches the last position, or else the learned one, or else raw click-through (whose
weights are too large).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.models.counting import rank_sums
from dualrank.diagnostics.facts import LogFacts
from dualrank.diagnostics.point import Point, Question, Status, worst
from dualrank.propensity.grouped_clicks import shown_queries

NAME = "sample"
# Measured on generated web search data: with 30,000 sessions corrected rankers end well below naive
# ones, from about 100,000 on above them.
ENOUGH_SESSIONS, TOO_FEW_SESSIONS = 100_000, 10_000
# Corrections cost this share of the clicks before it is worth saying.
EFFECTIVE_SHARE = 0.2
HEAVIEST = 0.01
HEAVY_SHARE = 0.25


def sample(facts: LogFacts) -> Point:
    """Sessions, clicks, and what is left of them under the weights that are believed."""
    believed, sessions = facts.believed, facts.parts.sessions
    clicks, _ = rank_sums(facts.parts)
    total = clicks.sum()
    queries = lists = silent = 0
    for part in facts.parts:
        log = part.log
        queries += len(shown_queries(log))
        lists += int((log.sessions_per_list > 0).sum())
        silent += int(log.counts[~log.clicks.any(axis=1)].sum())
    quiet = silent / sessions
    numbers: dict[str, object] = {
        "sessions": sessions,
        "queries": queries,
        "lists": lists,
        "clicks": int(total),
        "compares_documents": facts.compares,
        "share_of_sessions_without_clicks": quiet,
    }
    asked = Question(NAME, numbers)
    if total == 0:
        return asked.answer(
            "failed",
            f"None of the {sessions:,} sessions has a click.",
            "Look at how clicks are logged.",
        )
    status: Status = "good"
    if facts.sessions < ENOUGH_SESSIONS:
        status = "failed" if facts.sessions < TOO_FEW_SESSIONS else "warning"
    said = f"{sessions:,} sessions, {quiet:.0%} without a click, have {int(total):,} clicks"
    advice = ""
    if status != "good":
        said += f": below about {ENOUGH_SESSIONS:,} sessions corrections overfit"
        method = "auto" if facts.compares else "stopping"
        advice = f"Log longer, use a linear ranker, or train with {method}. "
    if believed is None:
        return asked.answer(status, said + ".", advice.strip())
    weights = believed.weights
    effective = (clicks @ weights) ** 2 / (clicks @ weights**2)
    heavy = weight_of_heaviest(clicks, weights)
    numbers |= {
        "weights_by": believed.method,
        "effective_clicks": effective,
        "effective_share": effective / total,
        "largest_weight": weights.max(),
        "share_of_weight_on_heaviest_1%_of_clicks": heavy,
    }
    said += (
        f"; weighted by the {believed.method} curve they are worth {effective:,.0f} "
        f"({effective / total:.0%})"
    )
    if effective / total < EFFECTIVE_SHARE or heavy > HEAVY_SHARE:
        status = worst(status, "warning")
        said += (
            f", because single clicks weigh up to {weights.max():.1f} and the heaviest 1% carry "
            f"{heavy:.0%} of the weight"
        )
        advice += "Clip the weights (max_weight), or cut the lists where examination ends."
    return asked.answer(status, said + ".", advice.strip())


def weight_of_heaviest(clicks: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """The share of all weight that the heaviest 1% of the clicks carry."""
    order = np.argsort(-weights)
    before = np.cumsum(clicks[order]) - clicks[order]
    taken = np.clip(HEAVIEST * clicks.sum() - before, 0, clicks[order])
    return float(taken @ weights[order] / (clicks @ weights))
