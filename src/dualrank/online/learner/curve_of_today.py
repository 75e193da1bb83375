"""How likely users examine each position today, from all lists of today's habits at once.

A step of gradient descent sees a few hundred lists, and what it believes of rarely clicked
positions is mostly noise. Given the scores of a ranker, the curve of greatest likelihood is a
regression with a handful of parameters, which Newton's method finds for all lists together:

    P(k | a click) = softmax_k(b f(x_k) + φ_k + [the list is from before a change] δ_k)

Scores and positions go down a list together, so that b, what a score is worth, and φ are hard to
tell apart from the few clicks after a change. The lists from before it tell b; position was another
matter then, which δ takes up. φ is drawn towards what was believed before, unless users changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dualrank.certainty import NORMAL_95
from dualrank.evaluation.click_logit import RIDGE, ClickLogit
from dualrank.online.learner.laid_out import LaidOut
from dualrank.propensity.propensity import Propensity

PRIOR = 100.0
"""For how many clicks at a position the belief before counts: its logarithm is off by a tenth."""
FEWEST_QUERIES = 10
MOST_BEFORE = 10_000
"""Lists from before a change that tell what a score is worth."""


def curve_of_today(
    curve: Propensity,
    today: LaidOut,
    before: LaidOut | None = None,
    believed: Sequence[float] = (),
) -> Propensity | None:
    """The curve, with its 95% interval over queries; nothing where there are too few clicks.

    `today` are lists of today's habits, `before` those of earlier ones. `curve` is that of a moment
    ago, and `believed` the one that was known before `today`, where users did not change since.
    """
    depth = curve.depth
    deepest = max(each.depth for each in (today, before) if each is not None)
    if deepest > depth or today.queries < FEWEST_QUERIES or not today.clicks[:, 0].any():
        return None
    parts = [today.padded(depth)]
    if before is not None and len(before):
        parts.append(before.last(MOST_BEFORE).padded(depth))
    mask = np.concatenate([each.mask for each in parts])
    numbers = 1 + (depth - 1) * (len(parts) - 1)
    inputs = np.zeros((*mask.shape, numbers))
    inputs[:, :, 0] = np.concatenate([each.scores for each in parts])
    for k in range(1, numbers):
        inputs[len(today) :, k, k] = mask[len(today) :, k]
    logit = ClickLogit(inputs, np.concatenate([each.clicks for each in parts]), mask)
    never = ~today.padded(depth).clicks.any(axis=0)
    ridge, around = np.full(numbers + depth, RIDGE), np.zeros(numbers + depth)
    around[numbers:] = np.log(curve.examination)
    # Where nobody clicked, nothing new is known.
    ridge[numbers:][never] = PRIOR
    if len(believed) == depth:
        around[numbers:], ridge[numbers:] = np.log(believed), PRIOR
    fitted = logit.fit(ridge, around)
    error = logit.errors(fitted, np.concatenate([each.query for each in parts]))[numbers:]
    error[never] = np.inf
    error[0] = 0.0
    examination = np.exp(fitted[numbers:] - fitted[numbers])
    with np.errstate(over="ignore"):
        reach = np.exp(NORMAL_95 * error)
    return replace(
        curve,
        examination=examination,
        low=examination / reach,
        high=examination * reach,
        sessions=today.sessions,
    )
