"""Have users changed how they look at lists? The curve of the latest round against that before.

Where a click falls on its list, P(k | a click) = softmax_k(b f(x_k) + φ_k), with the scores f of
one ranker for all lists. The lists of the new round have a term of their own,

    P(k | a click) = softmax_k(b f(x_k) + φ_k + δ_k),        δ_1 = 0,

and δ is 0 where nothing has changed. Both are fitted together (`evaluation.click_logit`), the
errors of δ are over queries. Unlike `diagnostics.stability`, which compares the same document at
the same position and is immune to a wrong f, this has power where most queries are rare; as f is
never quite right, a change counts only where it is also notable.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from dualrank.certainty import NORMAL_95
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.diagnostics.stability import NOTABLE
from dualrank.evaluation.click_logit import ClickLogit
from dualrank.learning.model import Model

FALSE_ALARMS = 1e-6
"""How often a round raises a false alarm: with a round a minute, once in two years."""
FEWEST_QUERIES = 10
FEWEST_CLICKS = 20
"""Clicks at a position, before and after together, below which nothing is said of it."""
MOST_LISTS = 40_000
"""Of the lists before, as many as are compared with; more would tell no more."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Movement:
    """By how much examination changed, relative to the first position: e^δ, with its errors."""

    factor: Floats
    error: Floats
    needed: float
    """Standard errors on either side of the interval of all positions together."""

    @property
    def is_clear(self) -> bool:
        """Whether some position moved beyond its interval, and notably."""
        return bool(self._clear.any())

    @property
    def _clear(self) -> NDArray[np.bool_]:
        size = np.abs(np.log(self.factor))
        return (size > self.needed * self.error) & (size > np.log(NOTABLE))

    @property
    def said(self) -> str:
        """What moved most, in words."""
        strength = np.where(self._clear, np.abs(np.log(self.factor)), 0.0)
        k = int(strength.argmax())
        size = float(np.exp(np.abs(np.log(self.factor[k]))))
        reach = float(np.exp(self.needed * self.error[k]))
        more = "more" if self.factor[k] > 1 else "less"
        return (
            f"users look {size:.2f} times {more} at position {k + 1} than before (interval "
            f"{size / reach:.2f}–{size * reach:.2f}): what was learned about position before "
            "counts no longer"
        )


def movement(
    before: ClickLog,
    after: ClickLog,
    scores_before: NDArray[np.floating],
    scores_after: NDArray[np.floating],
    queries: tuple[NDArray[np.integer], NDArray[np.integer]],
    level: float = FALSE_ALARMS,
) -> Movement | None:
    """The change from one log to another; nothing where there is too little to tell.

    Scores are of all documents that each log's lists point to; `queries` names the query of every
    list of either log by a number that is the same in both.
    """
    one = _Laid.of(before, scores_before, queries[0])
    other = _Laid.of(after, scores_after, queries[1])
    depth = max(one.depth, other.depth)
    one, other = one.padded(depth), other.padded(depth)
    if min(len(np.unique(each.query)) for each in (one, other)) < FEWEST_QUERIES:
        return None
    clicks = np.stack([one.clicks.sum(axis=0), other.clicks.sum(axis=0)])
    tested = np.flatnonzero((clicks.sum(axis=0) >= FEWEST_CLICKS) & (clicks[0] > 0))
    tested = tested[tested > 0]
    if len(tested) == 0 or clicks[:, 0].min() == 0:
        return None
    scores = np.concatenate([one.scores, other.scores])
    scores = scores / (float(scores.std()) or 1.0)
    inputs = np.zeros((*scores.shape, 1 + len(tested)))
    inputs[:, :, 0] = scores
    for j, k in enumerate(tested):
        inputs[len(one.clicks) :, k, 1 + j] = 1.0
    mask = np.concatenate([one.mask, other.mask])
    inputs *= mask[:, :, None]
    logit = ClickLogit(inputs, np.concatenate([one.clicks, other.clicks]), mask)
    fitted = logit.fit()
    query = np.concatenate([one.query, other.query])
    errors = logit.errors(fitted, query)
    factor, error = np.ones(depth), np.full(depth, np.inf)
    with np.errstate(over="ignore"):
        factor[tested] = np.exp(np.clip(fitted[1 : 1 + len(tested)], -20, 20))
    error[tested] = errors[1 : 1 + len(tested)]
    error[0] = 0.0
    few = min(len(np.unique(each.query)) for each in (one, other)) - 1
    needed = float(student.isf(level / (2 * len(tested)), few))
    return Movement(factor, error, needed)


def moved_since(
    before: tuple[ClickLog, Dataset], after: tuple[ClickLog, Dataset], model: Model
) -> str | None:
    """What changed from lists to later ones, in words, by the scores of a model."""
    names = np.concatenate([before[1].query_ids, after[1].query_ids])
    number = np.unique(names, return_inverse=True)[1]
    numbers = number[: len(before[1])], number[len(before[1]) :]
    moved = movement(
        before[0],
        after[0],
        model.predict(before[1]),
        model.predict(after[1]),
        (numbers[0][before[0].lists.queries], numbers[1][after[0].lists.queries]),
    )
    return moved.said if moved is not None and moved.is_clear else None


def width_of_curve(
    log: ClickLog, scores: NDArray[np.floating], queries: NDArray[np.integer] | None = None
) -> Floats:
    """By which factor a 95% interval reaches to either side of the curve, position by position."""
    laid = _Laid.of(log, scores, log.lists.queries if queries is None else queries)
    depth = log.lists.depth
    if len(laid.clicks) == 0:
        return np.full(depth, np.inf)
    values = laid.scores / (float(laid.scores.std()) or 1.0)
    logit = ClickLogit(values[:, :, None], laid.clicks, laid.mask)
    errors = logit.errors(logit.fit(), laid.query)[1:]
    errors[laid.clicks.sum(axis=0) == 0] = np.inf
    errors[0] = 0.0
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(NORMAL_95 * errors))


@dataclass(frozen=True, eq=False)
class _Laid:
    """The lists of a log that can tell something, with their scores."""

    scores: Floats
    clicks: Floats
    mask: NDArray[np.bool_]
    query: NDArray[np.integer]

    @classmethod
    def of(cls, log: ClickLog, scores: NDArray[np.floating], query: NDArray[np.integer]) -> _Laid:
        clicks, mask = log.clicks_per_list, log.lists.mask
        told = np.flatnonzero(clicks.any(axis=1) & (mask.sum(axis=1) > 1))[-MOST_LISTS:]
        documents, mask = log.lists.documents[told], mask[told]
        laid = np.where(mask, scores[documents], 0.0).astype(np.float64)
        return cls(laid, clicks[told].astype(np.float64), mask, query[told])

    @property
    def depth(self) -> int:
        return self.clicks.shape[1]

    def padded(self, depth: int) -> _Laid:
        more = ((0, 0), (0, depth - self.depth))
        return _Laid(
            np.pad(self.scores, more),
            np.pad(self.clicks, more),
            np.pad(self.mask, more),
            self.query,
        )
