"""Do users trust the top of the page beyond looking at it?

If a click needs examination and relevance alone, the examination curve is the same whichever
documents it is harvested from. If users believe that what stands on top must be good, documents
that are not gain most from standing there (Agarwal et al., "Addressing Trust Bias for Unbiased
Learning-to-Rank", WWW 2019): the curve of less relevant documents falls faster.

So the query–document pairs that moved are split into less and more relevant ones, a curve is
harvested from either, and the two are compared:

    advantage = exp mean_k (log h_k^more − log h_k^less),

1 where there is no trust bias, above 1 where there is; positions count in proportion to how
precisely they are known.

A split by the clicks that are compared would find a difference where there is none: a document that
was clicked by luck at a low rank would count as relevant. The sessions of every pair are therefore
dealt out at random into two halves; clicks of one tell which documents are relevant, and clicks of
the other make the curves.

Where nothing moved, the scores of dual learning stand in for relevance (see `trust_by_features`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from dualrank.certainty import ALARM, SURELY, alarm_errors, seen
from dualrank.diagnostics.facts import LogFacts
from dualrank.diagnostics.point import Point, Question, Status, two_sided
from dualrank.diagnostics.trust_by_features import slope_along_the_list
from dualrank.propensity.bootstrap import resampled_sums
from dualrank.propensity.grouped_clicks import Cells
from dualrank.propensity.harvesting import interventional_sums, log_curve_of_all_pairs
from dualrank.propensity.propensity import Propensity

NAME = "trust in the top"
# The top's advantage for less relevant documents, beyond which it is worth knowing, or large.
NOTABLE, LARGE = 1.1, 4 / 3
# Users known to trust the top give it 1.3 to 1.5: less must not be missed where none is claimed.
TELLING = 1.5
# The same by features: growth of the slope per doubling of the rank, as a share of it.
NOTABLE_GROWTH, LARGE_GROWTH = 0.1, 0.5
# A pair's clicks are drawn towards the mean as if it had been seen so many more times at the top.
PRIOR = 2.0


def trust(facts: LogFacts) -> Point:
    """The curve of less relevant documents against that of more relevant ones."""
    curve = facts.harvested
    if not isinstance(curve, Propensity):
        return _by_features(facts, curve)
    sums = _sums_by_relevance(facts, curve)
    # The compared logarithms: [resample, position], the first row being the whole log.
    both = np.concatenate([sums.sum(axis=0)[None], resampled_sums(sums, seed=facts.seed)])
    less, more = (log_curve_of_all_pairs(both[:, side]) for side in (0, 1))
    difference = (more - less)[:, 1 : curve.depth]
    known = np.isfinite(difference).mean(axis=0) >= 0.95
    known &= np.isfinite(difference[0])
    if not known.any():
        return Question(NAME).answer(
            "not measured",
            "Too few documents were clicked at several positions to compare less with more "
            "relevant ones.",
        )
    difference = difference[:, known]
    difference = difference[np.isfinite(difference).all(axis=1)]
    weight = 1 / difference[1:].var(axis=0)
    means = difference @ (weight / weight.sum())
    advantage, error = float(np.exp(means[0])), float(means[1:].std(ddof=1))
    freedom = facts.grouped.group_count - 1
    needed = float(student.isf(ALARM / 2, freedom))
    low, high = (float(advantage * np.exp(side * needed * error)) for side in (-1, 1))
    # What the interval holds is not excluded, whatever would have been seen as a rule.
    blind = max(float(np.exp(seen(needed) * error)), high, 1 / low)
    numbers = {
        "advantage": advantage,
        "low": low,
        "high": high,
        "level": ALARM,
        "p_value": two_sided(abs(means[0]) / error, freedom),
        "would_have_been_seen": blind,
        "less_relevant": np.exp(less[0] - less[0, 0]),
        "more_relevant": np.exp(more[0] - more[0, 0]),
    }
    asked = Question(NAME, numbers)
    gains = (
        f"The top gives less relevant documents {advantage:.2f} times ({SURELY} interval "
        f"{low:.2f}–{high:.2f}) the advantage that it gives more relevant ones"
    )
    size = max(advantage, 1 / advantage)
    if low <= 1 <= high:
        if blind > TELLING:
            return asked.answer(
                "not measured",
                f"{gains}: whether that is trust or luck cannot be told, as a factor of "
                f"{blind:.1f} could have been missed.",
                "Log longer, or swap more results; meanwhile compare click models, such as pbm and "
                "pbm-trust.",
            )
        return asked.answer(
            "good",
            f"{gains}: no clear sign of trust beyond examination, and a factor of "
            f"{max(blind, NOTABLE):.2f} would have been seen.",
        )
    if size <= NOTABLE:
        return asked.answer("good", f"{gains}: too little to matter.")
    status: Status = "failed" if size > LARGE else "warning"
    if advantage > 1:
        return asked.answer(
            status,
            f"{gains}: users click what stands on top because it stands there, or what they find "
            "decides how far they look; no weight per position can correct that.",
            "Compare click models of other habits, such as pbm-trust and dbn, and expect every "
            "correction by position to leave some of the bias.",
        )
    return asked.answer(
        status,
        f"{gains}: examination depends on the document, as where users stop once they have found "
        "something or where results below look different.",
        "See whether clicks are independent, and compare click models.",
    )


def _by_features(facts: LogFacts, why: str) -> Point:
    """Whether scores tell less about clicks at the top than below."""
    found = None
    if not isinstance(facts.trained, str):
        found = slope_along_the_list(facts.trained.held_out, facts.trained.dual)
    if found is None or not found.slope > 0:
        return Question(NAME).answer(
            "not measured",
            f"Trust and examination cannot be told apart here: {why}.",
            "Collect some swaps (see plan_swaps), which show the same document at the top and "
            "below.",
        )
    numbers = {
        "slope": found.slope,
        "growth_per_doubling_of_rank": found.growth,
        "standard_error": found.error,
        "relative_growth": found.relative,
    }
    asked = Question(NAME, numbers)
    error, needed = found.error / found.slope, alarm_errors()
    blind = max(seen(needed) * error, found.relative + needed * error)
    numbers["would_have_been_seen"] = blind
    tells = (
        f"With every doubling of the rank a document's score tells {found.relative:+.0%} "
        f"(± {needed * error:.0%}, a {SURELY} interval) more about clicks"
    )
    if found.relative <= needed * error and blind > LARGE_GROWTH:
        return asked.answer(
            "not measured",
            f"{tells}: whether users trust the top cannot be told, as {blind:+.0%} could have been "
            "missed.",
            "Log longer, or collect some swaps (see plan_swaps), which show the same document at "
            "the top and below.",
        )
    if found.relative <= needed * error:
        shown = f"{max(blind, NOTABLE_GROWTH):+.0%} would have been seen"
        return asked.answer("good", f"{tells}: no clear sign of trust in the top; {shown}.")
    if found.relative <= NOTABLE_GROWTH:
        return asked.answer("good", f"{tells}: too little trust in the top to matter.")
    return asked.answer(
        "failed" if found.relative > LARGE_GROWTH else "warning",
        f"{tells}: at the top users click what stands there, relevant or not, which no weight per "
        "position can correct.",
        "Collect some swaps to be sure (see plan_swaps), and compare click models, such as pbm and "
        "pbm-trust.",
    )


def _sums_by_relevance(facts: LogFacts, curve: Propensity) -> NDArray[np.float64]:
    """What harvesting sums, `[group, less or more relevant, k, k']`, by both halves in turn."""
    cells = facts.grouped.cells.moved
    cells = replace(cells.take(cells.position < curve.depth).moved, depth=curve.depth)
    groups = facts.grouped.group_count
    rng = np.random.default_rng([facts.seed, 0x_7205])
    sums = np.zeros((groups, 2, cells.depth, cells.depth))
    halves = deal_out(cells, rng)
    for judging, compared in (halves, halves[::-1]):
        more = _more_relevant(judging, curve.examination)
        for side, chosen in enumerate((~more, more)):
            # Cells stand in the same order in both halves, but some have no session in one.
            kept = compared.take(chosen & (compared.impressions > 0)).moved
            sums[:, side] += interventional_sums(kept, groups)
    return sums


def deal_out(cells: Cells, rng: np.random.Generator) -> tuple[Cells, Cells]:
    """The sessions of every cell in two random halves; which were clicked is left to chance."""
    shown, clicked = cells.shown.astype(np.int64), cells.clicked.astype(np.int64)
    half = rng.binomial(shown, 0.5)
    clicked_half = rng.hypergeometric(clicked, shown - clicked, half)
    count = len(cells.document)
    one, other = (
        replace(
            cells,
            shown=n.astype(np.float64),
            clicked=c.astype(np.float64),
            impressions=np.bincount(cells.cell, n, count).astype(np.float64),
            clicks=np.bincount(cells.cell, c, count).astype(np.float64),
        )
        for n, c in ((half, clicked_half), (shown - half, clicked - clicked_half))
    )
    return one, other


def _more_relevant(cells: Cells, examination: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Of every cell, whether its pair is among the more relevant that have half of the clicks."""
    _, pair = np.unique(cells.document, return_inverse=True)
    clicks = np.bincount(pair, cells.clicks)
    examined = np.bincount(pair, cells.impressions * examination[cells.position])
    if clicks.sum() == 0:
        return np.zeros(len(pair), dtype=bool)
    relevance = (clicks + PRIOR * clicks.sum() / examined.sum()) / (examined + PRIOR)
    order = np.argsort(relevance, kind="stable")
    below = np.cumsum(clicks[order]) <= clicks.sum() / 2
    more = np.ones(len(relevance), dtype=bool)
    more[order[below]] = False
    return more[pair]
