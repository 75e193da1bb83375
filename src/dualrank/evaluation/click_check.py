"""Does one ranker predict clicks better than another, once position is accounted for?

If a click needs examination, which depends on the position, and relevance, which depends on the
document, then P(click) = e_k r(x), and a click that was made somewhere on a list fell on rank k
with probability

    P(k | a click) = softmax_k(b f(x_k) + φ_k),        b f = log r,  φ = log e.

Here φ is free. It is fitted to the clicks, with the scale b ≥ 0 of the scores f, on half of the
held-out queries, and the likelihood is read off the other half. Whatever position does goes into φ:
a ranker gains nothing by having learned the position bias, and loses nothing by a wrong belief of
it. What is left is whether its scores tell which documents are clicked more than their positions
explain. No propensities are needed, and a ranker that has learned noise predicts no better than
none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.dependence import read_down
from dualrank.data.click_log import ClickLog
from dualrank.errors import DataError
from dualrank.evaluation.click_logit import ClickLogit, ReadLogit

HELD_OUT_SEED = 0x_5A1
CLEAR = 2.0

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Lead:
    """By how much one ranker predicts held-out clicks better than another.

    `gain` is in log-likelihood per click, `error` its standard error over queries.
    """

    gain: float
    error: float
    queries: int
    clicks: int

    @classmethod
    def of(cls, difference: Floats, clicks: float) -> Lead:
        """From the difference in log-likelihood of every query."""
        queries = len(difference)
        error = np.sqrt(queries) * difference.std(ddof=1) / clicks if queries > 1 else np.inf
        return cls(float(difference.sum() / clicks), float(error), queries, int(clicks))

    @property
    def in_errors(self) -> float:
        """The gain in standard errors."""
        return self.gain / self.error if self.error > 0 else 0.0

    @property
    def is_clear(self) -> bool:
        """Whether it is unlikely to be luck."""
        return self.in_errors > CLEAR

    @property
    def is_behind(self) -> bool:
        """Whether it is clearly none: the other ranker predicts better."""
        return self.in_errors < -CLEAR


class ClickCheck:
    """Held-out lists with their clicks, against which rankers are checked.

    Where users read from the top and stop after a click (`reads`), it is the likelihood of clicks
    among what they read that counts. `values` by list and position may stand for clicks.
    """

    def __init__(
        self,
        held_out: ClickLog,
        seed: int = 0,
        *,
        reads: bool = False,
        values: NDArray[np.floating] | None = None,
    ) -> None:
        clicks = held_out.clicks_per_list if values is None else values
        useful = np.flatnonzero(clicks.any(axis=1) & (held_out.lists.mask.sum(axis=1) > 1))
        self._documents = held_out.lists.documents[useful]
        self._mask = held_out.lists.mask[useful]
        self._clicks = clicks[useful].astype(np.float64)
        self._examined = None
        if reads:
            rows, read = held_out.list_of, read_down(held_out)
            sums = [np.bincount(rows[on], held_out.counts[on], len(clicks)) for on in read.T]
            self._examined = np.stack(sums, axis=1)[useful].astype(np.float64)
        queries, self._query = np.unique(held_out.lists.queries[useful], return_inverse=True)
        self._queries = len(queries)
        if self._queries < 2:
            raise DataError(
                "clicks on two held-out queries at least are needed to compare rankers; hold out a "
                "larger share, or train by one method"
            )
        # Halves of the queries, of equal size.
        rng = np.random.default_rng([seed, 0x_C4EC])
        self._half = (rng.permutation(self._queries) % 2)[self._query]

    def explain(self, scores: NDArray[np.floating]) -> Floats:
        """The log-likelihood of the clicks of every query under these scores of all documents."""
        laid_out = np.where(self._mask, scores[self._documents], 0.0).astype(np.float64)
        laid_out /= float(laid_out[self._mask].std()) or 1.0
        likelihood = np.empty(len(laid_out))
        for half in (0, 1):
            judged, known = self._half == half, laid_out
            fitted = self._logit(known, ~judged).fit()
            if fitted[0] < 0:
                # More score would mean fewer clicks: then the scores tell nothing.
                known = np.zeros_like(laid_out)
                fitted = self._logit(known, ~judged).fit()
            likelihood[judged] = self._logit(known, judged).log_likelihood(fitted)
        return np.bincount(self._query, likelihood, self._queries).astype(np.float64)

    def _logit(self, laid_out: Floats, chosen: NDArray[np.bool_]) -> ClickLogit:
        inputs, clicks, mask = laid_out[chosen, :, None], self._clicks[chosen], self._mask[chosen]
        if self._examined is None:
            return ClickLogit(inputs, clicks, mask)
        return ReadLogit(inputs, clicks, mask, self._examined[chosen])

    def lead(self, scores: NDArray[np.floating], over: NDArray[np.floating]) -> Lead:
        """How much better the first scores predict than the second."""
        return Lead.of(self.explain(scores) - self.explain(over), float(self._clicks.sum()))


def hold_out(log: ClickLog, share: float, seed: int) -> tuple[ClickLog, ClickLog | None]:
    """Split by query, so that no list of a held-out query is trained on.

    The same seed holds the same queries out, whatever is trained; a share of 0 holds none out.
    """
    if share == 0:
        return log, None
    queries = np.unique(log.lists.queries)
    rng = np.random.default_rng([seed, HELD_OUT_SEED])
    # With one query no ranker could be told from another.
    wanted = max(min(2, len(queries) - 1), round(share * len(queries)), 1)
    chosen = rng.choice(queries, wanted, replace=False)
    held = np.isin(log.lists.queries, chosen)
    held_out = log.take_lists(np.flatnonzero(held))
    if not held_out.clicks.any() or held.all():
        raise DataError(
            "too few queries with clicks to hold some out; give validation=0 or judged queries"
        )
    return log.take_lists(np.flatnonzero(~held)), held_out
