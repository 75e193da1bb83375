"""Relevance of query–document pairs from clicks, corrected for examination.

Where a pair d is shown n_k times at position k and clicked c_k times,

    c_k ~ Binomial(n_k, e_k r_d)        e_k = P(o_k)/P(o_1)

r_d is the probability that the pair is clicked at the first position: its relevance on the scale of
clicks. Weighing every click by 1/e_k would estimate it without bias, and with a variance that a
single click at the last position can ruin. The likelihood above uses the same clicks and the same
curve, and knows that a click at a position that is seldom examined was luck as well.

Pairs with little evidence are drawn to what is usual for their query (empirical Bayes): relevance
is the mean of the posterior under

    r_d ~ Beta(s m_q, s (1 − m_q))        log m_q/(1 − m_q) = δ + log r_q/(1 − r_q)

where r_q is the relevance of all documents of the query as if they were one, drawn in the same way
to that of all queries, and s and δ make the whole log most likely. Drawn to one value for all
queries, an unseen document of a poor query would be held for better than any that was seen.

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
from scipy.special import betaln, expit, log_expit, logit, logsumexp

from dualrank.certainty import LEVEL
from dualrank.clicks.models.pair_parameter import PairParameter
from dualrank.propensity.pair_counts import PairCounts

NODES = 64
ZOOMS = 3
WIDEST = 14.0
NEGLIGIBLE = 12.0
"""What is e^12 times less likely than the best is left out."""
PAIRS_PER_BLOCK = 20_000
PAIRS_FOR_PRIOR = 20_000
CERTAIN = 1 - 1e-9

Floats = NDArray[np.float64]


def corrected_click_through(counts: PairCounts, queries: NDArray[np.integer]) -> PairParameter:
    """Relevance of every pair, with its interval; `queries` says which pairs belong together."""
    prior = prior_by_query(counts, queries)
    size = len(counts.clicks)
    values, low, high = np.empty(size), np.empty(size), np.empty(size)
    for rows in _blocks(size):
        part = counts.take(rows)
        values[rows] = _posterior(part, prior.take(rows)).mean()
        alone = _posterior(part, JEFFREYS)
        low[rows] = np.where(part.clicks > 0, alone.quantile(LEVEL / 2), 0.0)
        high[rows] = alone.quantile(1 - LEVEL / 2)
    low, high = np.minimum(low, values), np.maximum(high, values)
    with np.errstate(divide="ignore"):
        below, above = (np.hypot(np.log(values / b), counts.reach) for b in (low, high))
        low, high = values * np.exp(-below), np.minimum(values * np.exp(above), 1.0)
    return PairParameter(values, low, high, float(prior.mean.mean()))


@dataclass(frozen=True, eq=False)
class PairPrior:
    """Beta(s m, s (1 − m)) with a mean for each pair and one strength for all."""

    mean: Floats
    strength: float

    def take(self, pairs: NDArray[np.integer]) -> PairPrior:
        """These pairs only."""
        return PairPrior(self.mean[pairs], self.strength)

    def log_density(self, x: Floats) -> Floats:
        """As a density of x = log r/(1 − r), without its constant."""
        mean = self.mean[:, None]
        found: Floats = self.strength * (mean * log_expit(x) + (1 - mean) * log_expit(-x))
        return found


JEFFREYS = PairPrior(np.array([0.5]), 1.0)


def prior_by_query(counts: PairCounts, queries: NDArray[np.integer]) -> PairPrior:
    """What is usual for the query of each pair."""
    names, query = np.unique(queries, return_inverse=True)
    whole = counts.summed(query, len(names))
    usual = fit_prior(whole, np.full(len(names), 0.5))
    of_query = np.concatenate(
        [_posterior(whole.take(rows), usual.take(rows)).mean() for rows in _blocks(len(names))]
    )
    return fit_prior(counts, of_query[query])


def fit_prior(counts: PairCounts, around: Floats) -> PairPrior:
    """The strength of the prior, and how far its means lie from `around` on the logit scale, under
    which the clicks of all pairs are most likely."""
    size = len(counts.clicks)
    chosen = np.linspace(0, size - 1, min(size, PAIRS_FOR_PRIOR)).astype(np.int64)
    x, likelihood = _nodes(counts.take(chosen), JEFFREYS)
    step = np.log(x[:, 1] - x[:, 0])
    place = logit(around)

    def prior(parameters: Floats, pairs: NDArray[np.integer] | slice) -> PairPrior:
        return PairPrior(expit(place[pairs] + parameters[0]), float(np.exp(parameters[1])))

    def surprise(parameters: Floats) -> float:
        tried = prior(parameters, chosen)
        known = logsumexp(likelihood + tried.log_density(x), axis=1) + step
        a, b = tried.strength * tried.mean, tried.strength * (1 - tried.mean)
        return -float((known - betaln(a, b)).mean())

    # Few pairs leave a flat likelihood, on which coarser slopes end wherever they began.
    found = minimize(
        surprise,
        np.zeros(2),
        method="L-BFGS-B",
        jac="3-point",
        bounds=[(-12, 12), (-4, 9)],
        options={"ftol": 1e-14, "gtol": 1e-10},
    )
    return prior(found.x, slice(None))


def _blocks(size: int) -> Iterator[NDArray[np.int64]]:
    for start in range(0, size, PAIRS_PER_BLOCK):
        yield np.arange(start, min(start + PAIRS_PER_BLOCK, size))


def _nodes(counts: PairCounts, prior: PairPrior) -> tuple[Floats, Floats]:
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
            found = likelihood + prior.log_density(x)
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


def _posterior(counts: PairCounts, prior: PairPrior) -> _Posterior:
    x, likelihood = _nodes(counts, prior)
    found = likelihood + prior.log_density(x)
    return _Posterior(x, np.exp(found - found.max(axis=1, keepdims=True)))
