"""What features say about where clicks fall, once position is accounted for.

If a feature x says nothing, a click that was made on a list fell on rank k with P(k) = softmax_k φ,
whatever x is, and the slope of the log-likelihood in a weight w of x (see `click_logit`),

    u = Σ_k (clicks_k − clicks · P(k)) (x_k − x̄_k),        x̄_k the mean of x at rank k,

is 0 but for luck. Its sum over queries, in standard errors over queries, is a test of w = 0 (Rao's
score test) that trains nothing: it needs no held-out queries and cannot overfit, so that a log far
too small for a network of the features still tells whether there is something to learn. The slopes
of all features together (Hotelling's T²) tell what is spread thinly over many of them. Both see
what rises or falls with features; what is neither is left to rankers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as fisher
from scipy.stats import t as student

from dualrank.certainty import ALARM, seen
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.diagnostics.point import two_sided
from dualrank.evaluation.click_logit import ClickLogit, Floats

# Slopes of all features are tested together where so many queries stand behind each.
QUERIES_PER_FEATURE = 5
SAME = 1e-9


@dataclass(frozen=True)
class FeatureWorth:
    """How likely luck alone would tell as much as the features do, and what would have been seen.

    `p_value` is that of all features: the better of two tests, of the feature that tells most and
    of all together. `blind`: by which factor the clicks of documents that are one standard
    deviation apart in a feature would have to differ for that to be seen, in the median feature.
    """

    most_telling: int
    in_errors: float
    p_value: float
    blind: float


def feature_worth(log: ClickLog, dataset: Dataset) -> FeatureWorth | None:
    """Test every feature; None where no feature differs, or fewer than two queries have clicks."""
    lists = log.lists
    clicks = log.clicks_per_list.astype(np.float64)
    useful = np.flatnonzero(clicks.any(axis=1) & (lists.mask.sum(axis=1) > 1))
    _, query = np.unique(lists.queries[useful], return_inverse=True)
    queries = int(query.max(initial=-1)) + 1
    if queries < 2:
        return None
    clicks, mask = clicks[useful], lists.mask[useful]
    position_alone = ClickLogit(np.zeros((*mask.shape, 0)), clicks, mask)
    residual = position_alone.slopes(position_alone.fit())
    expected = clicks - residual
    shown = lists.documents[useful][mask]
    found = []
    for feature, column in enumerate(dataset.features.T):
        x = np.zeros(mask.shape)
        # Ranks in place of values, of which a few may be far from all others.
        x[mask] = np.unique(column[shown], return_inverse=True)[1]
        slopes, information = _slopes(x, residual, expected, mask, query)
        if information > 0:
            found.append((feature, slopes, information))
    if not found:
        return None
    by_query = np.array([slopes for _, slopes, _ in found])
    errors = np.sqrt(queries) * by_query.std(axis=1, ddof=1)
    if not (errors > 0).any():
        return None
    in_errors = np.divide(
        np.abs(by_query.sum(axis=1)), errors, out=np.zeros(len(errors)), where=errors > 0
    )
    most = int(in_errors.argmax())
    single = len(found) * two_sided(float(in_errors[most]), queries - 1)
    p_value = min(2 * min(single, _together(by_query)), 1.0)
    needed = float(student.isf(ALARM / (2 * len(found)), queries - 1))
    with np.errstate(over="ignore"):  # beyond all numbers is unbounded
        blind = np.exp(seen(needed) * errors / [information for _, _, information in found])
    return FeatureWorth(found[most][0], float(in_errors[most]), p_value, float(np.median(blind)))


def _together(by_query: Floats) -> float:
    """The p-value of Hotelling's T² of `[feature, query]`, or 1 where queries are too few."""
    count, queries = by_query.shape
    if queries < QUERIES_PER_FEATURE * count:
        return 1.0
    values, directions = np.linalg.eigh(np.atleast_2d(np.cov(by_query)))
    # Features that are sums of others add nothing.
    kept = values > SAME * values.max()
    rank = int(kept.sum())
    along = directions[:, kept].T @ by_query.mean(axis=1)
    t_squared = queries * float((along**2 / values[kept]).sum())
    scaled = t_squared * (queries - rank) / (rank * (queries - 1))
    return float(max(fisher.sf(scaled, rank, queries - rank), np.finfo(np.float64).tiny))


def _slopes(
    x: Floats,
    residual: Floats,
    expected: Floats,
    mask: NDArray[np.bool_],
    query: NDArray[np.integer],
) -> tuple[Floats, float]:
    """The slope in a feature's weight, query by query, and the information about it."""
    total = np.where(mask, expected.sum(axis=1, keepdims=True), 0.0)
    means = (total * x).sum(axis=0) / np.maximum(total.sum(axis=0), 1.0)
    x = np.where(mask, x - means, 0.0)
    x /= float(x[mask].std()) or 1.0
    middle = (expected * x).sum(axis=1) / expected.sum(axis=1)
    information = (expected * (x - middle[:, None]) ** 2).sum()
    slopes = np.bincount(query, (residual * x).sum(axis=1)).astype(np.float64)
    return slopes, float(information)
