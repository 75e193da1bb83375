"""Relevance of query–document pairs from clicks, corrected for examination.

Where a pair d is shown n_k times at position k and clicked c_k times,

    c_k ~ Binomial(n_k, e_k r_d)        e_k = P(o_k)/P(o_1)

r_d is the probability that the pair is clicked at the first position: its relevance on the scale of
clicks. Weighing every click by 1/e_k would estimate it without bias, and with a variance that a
single click at the last position can ruin. The likelihood above uses the same clicks and the same
curve, and knows that a click at a position that is seldom examined was luck as well.

Pairs with little evidence are drawn to what is usual: r_d ~ Beta(a, b), with a and b that make the
whole log most likely (empirical Bayes). Relevance is the mean of that posterior.

The interval is that of the evidence alone, the middle 95% under Jeffreys' Beta(½, ½): with the
fitted prior it would cover 95% of all pairs, and hardly any of the few that are far more relevant
than usual. It is widened by what the interval of the curve leaves open. For that the errors of the
curve count as one: a pair that stood at k is off by the factor that e_k is off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import betaln, expit, log_expit, logsumexp

from dualrank.clicks.models.pair_parameter import PairParameter
from dualrank.data.click_log import ClickLog
from dualrank.propensity.propensity import Propensity

NODES = 64
ZOOMS = 3
WIDEST = 14.0
NEGLIGIBLE = 12.0
"""What is e^12 times less likely than the best is left out."""
PAIRS_PER_BLOCK = 20_000
PAIRS_FOR_PRIOR = 20_000
CERTAIN = 1 - 1e-9
JEFFREYS = (0.5, 0.5)

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PairCounts:
    """How often each pair was clicked, and not clicked at which `examination`.

    `skips[d, j]` are the displays of pair d without a click where examination is `examination[j]`:
    a column for every position, and by context for each curve. `sessions` counts displays at
    positions that the curve knows. `reach[d]` is how far, as a logarithm, the 95% interval of the
    curve lets the pair's examination be off.
    """

    clicks: Floats
    skips: Floats
    examination: Floats
    sessions: NDArray[np.int64]
    reach: Floats

    @classmethod
    def of(cls, log: ClickLog, propensity: Propensity) -> PairCounts:
        """Count a log; displays below the end of the curve say nothing."""
        pairs = int(log.lists.documents.max(initial=-1)) + 1
        clicks, sessions, seen, off = (np.zeros(pairs) for _ in range(4))
        skips: list[Floats] = []
        examination: list[float] = []
        for part, curve in parts_by_context(log, propensity):
            shown, clicked = part.sessions_per_list, part.clicks_per_list
            reach = _reach_of(curve)
            for k in range(min(curve.depth, log.lists.depth)):
                on = part.lists.mask[:, k]
                document = part.lists.documents[on, k]
                times = np.bincount(document, shown[on], pairs)
                hits = np.bincount(document, clicked[on, k], pairs)
                clicks += hits
                sessions += times
                skips.append((times - hits).astype(np.float64))
                examination.append(float(curve.examination[k]))
                seen += times * examination[-1]
                off += np.where(times > 0, times * examination[-1] * reach[k], 0.0)
        return cls(
            clicks,
            np.stack(skips, axis=1),
            np.array(examination),
            sessions.astype(np.int64),
            np.divide(off, seen, out=np.zeros(pairs), where=seen > 0),
        )

    def take(self, pairs: NDArray[np.integer]) -> PairCounts:
        """These pairs only."""
        return PairCounts(
            self.clicks[pairs],
            self.skips[pairs],
            self.examination,
            self.sessions[pairs],
            self.reach[pairs],
        )


def corrected_click_through(counts: PairCounts) -> PairParameter:
    """Relevance of every pair, with its interval; `unseen` is the mean of the prior."""
    size = len(counts.clicks)
    chosen = np.linspace(0, size - 1, min(size, PAIRS_FOR_PRIOR)).astype(np.int64)
    prior = fit_prior(counts.take(chosen))
    values, low, high = np.empty(size), np.empty(size), np.empty(size)
    for rows in _blocks(size):
        part = counts.take(rows)
        values[rows] = _posterior(part, prior).mean()
        alone = _posterior(part, JEFFREYS)
        low[rows] = np.where(part.clicks > 0, alone.quantile(0.025), 0.0)
        high[rows] = alone.quantile(0.975)
    low, high = np.minimum(low, values), np.maximum(high, values)
    with np.errstate(divide="ignore"):
        below, above = (np.hypot(np.log(values / b), counts.reach) for b in (low, high))
        low, high = values * np.exp(-below), np.minimum(values * np.exp(above), 1.0)
    return PairParameter(values, low, high, prior[0] / sum(prior))


def fit_prior(counts: PairCounts) -> tuple[float, float]:
    """The a and b of Beta(a, b) under which the clicks of all pairs are most likely."""
    parts = [_nodes(counts.take(rows), JEFFREYS) for rows in _blocks(len(counts.clicks))]
    x = np.concatenate([part[0] for part in parts])
    likelihood = np.concatenate([part[1] for part in parts])
    step = np.log(x[:, 1] - x[:, 0])

    def surprise(logs: Floats) -> float:
        a, b = np.exp(logs)
        known = logsumexp(likelihood + _log_prior(x, (a, b)), axis=1) + step
        return -float((known - betaln(a, b)).mean())

    found = minimize(surprise, np.log(JEFFREYS), method="L-BFGS-B", bounds=[(-5, 7), (-5, 9)])
    a, b = np.exp(found.x)
    return float(a), float(b)


def parts_by_context(log: ClickLog, propensity: Propensity) -> list[tuple[ClickLog, Propensity]]:
    """The parts of a log that have curves of their own, or the whole with the common one."""
    if propensity.context is None:
        return [(log, propensity)]
    curves, column = propensity.by_context, log.column(propensity.context)
    return [
        (log.take_rows(np.flatnonzero(column.codes == code)), curves.get(name, propensity))
        for code, name in enumerate(column.names)
    ]


def _reach_of(curve: Propensity) -> Floats:
    if curve.high is None:
        return np.zeros(curve.depth)
    reach: Floats = np.log(curve.high / curve.examination)
    return reach


def _blocks(size: int) -> Iterator[NDArray[np.int64]]:
    for start in range(0, size, PAIRS_PER_BLOCK):
        yield np.arange(start, min(start + PAIRS_PER_BLOCK, size))


def _log_prior(x: Floats, prior: tuple[float, float]) -> Floats:
    """Beta(a, b) of r as a density of x = log r/(1 − r), without its constant."""
    density: Floats = prior[0] * log_expit(x) + prior[1] * log_expit(-x)
    return density


def _nodes(counts: PairCounts, prior: tuple[float, float]) -> tuple[Floats, Floats]:
    """For each pair equidistant x = log r/(1 − r) around where r may lie, with log likelihoods.

    Evidence differs by orders of magnitude between pairs, so that every pair has nodes of its own:
    three times, they are drawn together to where the posterior is not negligible.
    """
    size = len(counts.clicks)
    least, most = np.full(size, -WIDEST), np.full(size, WIDEST)
    for zoom in range(ZOOMS):
        x = least[:, None] + (most - least)[:, None] * np.linspace(0, 1, NODES)
        likelihood = _log_likelihood(counts, x)
        if zoom < ZOOMS - 1:
            found = likelihood + _log_prior(x, prior)
            likely = found > found.max(axis=1, keepdims=True) - NEGLIGIBLE
            first = np.maximum(likely.argmax(axis=1) - 1, 0)
            last = NODES - 1 - np.maximum(likely[:, ::-1].argmax(axis=1) - 1, 0)
            rows = np.arange(size)
            least, most = x[rows, first], x[rows, last]
    return x, likelihood


def _log_likelihood(counts: PairCounts, x: Floats) -> Floats:
    log_r = log_expit(x)
    relevance = np.exp(log_r)
    found: Floats = counts.clicks[:, None] * log_r
    for skips, examined in zip(counts.skips.T, counts.examination, strict=True):
        some = np.flatnonzero(skips)
        clicked = np.minimum(examined * relevance[some], CERTAIN)
        found[some] += skips[some, None] * np.log1p(-clicked)
    return found


@dataclass(frozen=True, eq=False)
class _Posterior:
    """Densities of x = log r/(1 − r), one a row, at equidistant nodes."""

    x: Floats
    density: Floats

    def mean(self) -> Floats:
        """The mean relevance."""
        found: Floats = (self.density * expit(self.x)).sum(axis=1) / self.density.sum(axis=1)
        return found

    def quantile(self, share: float) -> Floats:
        """The relevance below which lies this share."""
        below = np.cumsum((self.density[:, 1:] + self.density[:, :-1]) / 2, axis=1)
        below = np.concatenate([np.zeros((len(below), 1)), below / below[:, -1:]], axis=1)
        rows, after = np.arange(len(below)), np.maximum((below < share).sum(axis=1), 1)
        before = below[rows, after - 1]
        part = (share - before) / (below[rows, after] - before)
        start = self.x[rows, after - 1]
        found: Floats = expit(start + part * (self.x[rows, after] - start))
        return found


def _posterior(counts: PairCounts, prior: tuple[float, float]) -> _Posterior:
    x, likelihood = _nodes(counts, prior)
    found = likelihood + _log_prior(x, prior)
    return _Posterior(x, np.exp(found - found.max(axis=1, keepdims=True)))
