"""Does the log contradict the curve that estimates stand on?

Two witnesses. Documents that the log shows at several positions give a curve of their own, which
needs no features. And where features tell relevance, clicks at every position must be as many as
curve and relevance explain: with Ê_k = Σ n_k e_k r̂(d) for the model fitted without positions, the
ratio C_k/Ê_k is 1 at every k, whatever the curve's scale; a curve that falls too fast leaves ratios
that rise. Errors are over queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrank.certainty import alarm_errors
from dualrank.decisions.curve_choice import HARVESTED, Curve, harvested
from dualrank.decisions.estimates_of_value import Fit
from dualrank.decisions.group_sums import in_folds
from dualrank.decisions.judging import Judging
from dualrank.decisions.logged_pairs import PositionEffect
from dualrank.decisions.relevance_model import penalties
from dualrank.errors import DataError

WORTH_SAYING = 1.1
"""A factor below which a contradiction does not matter."""
FEATURES_MISS = 1.25
"""The same where features are the witness, which never tell all of relevance."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Contradiction:
    """A witness against the curve: at `position`, it is off by this factor."""

    witness: str
    position: int
    factor: float
    low: float
    high: float


def contradictions(judging: Judging, curve: Curve, effect: PositionEffect) -> list[Contradiction]:
    """What the log says against the curve: at most one by each witness, the worst."""
    found = [_by_moved_documents(judging, curve), _by_features(judging, effect)]
    return [each for each in found if each is not None]


def _by_moved_documents(judging: Judging, curve: Curve) -> Contradiction | None:
    if curve.source == HARVESTED or curve.propensity.context is not None:
        return None
    try:
        other = harvested(judging.log, judging.seed)
    except DataError:
        return None
    depth = min(other.propensity.depth, curve.propensity.depth)
    if other.covariance is None or depth < 2:
        return None
    off = np.log(other.propensity.examination[:depth] / curve.propensity.examination[:depth])
    variance = np.diag(other.covariance)[:depth].copy()
    if curve.covariance is not None:
        variance += np.diag(curve.covariance)[:depth]
    return _worst("documents shown at several positions", off, np.sqrt(variance))


def _by_features(judging: Judging, effect: PositionEffect) -> Contradiction | None:
    """Clicks by position against what relevance by features and the curve explain."""
    pairs, basis = judging.pairs(effect), judging.basis(effect, with_places=False)
    gram, clicked = judging.setting.normal_equations(pairs, basis)
    noise = max(judging.squares / float(pairs.exposure.sum()), 1e-12)
    drawn = penalties(gram.sum(axis=0), clicked.sum(axis=0), noise, basis.blocks)
    groups = judging.groups
    fit = Fit.of(gram, clicked, drawn, noise, np.ones((1, groups.count)))
    group = groups.of_query[judging.query_of_pair]
    weights = fit.weights[in_folds(groups.count)[group], 0]
    relevance = np.clip(np.einsum("dp,dp->d", basis.values, weights), 0.0, None)
    lists = judging.log.lists
    explained = np.where(lists.mask, relevance[lists.documents], 0.0)
    explained *= judging.traffic.of_lists @ effect.slopes
    of_list = groups.of_query[lists.queries]

    def by_group(values: Floats) -> Floats:
        return np.stack([np.bincount(of_list, each, groups.count) for each in values.T], axis=1)

    observed, expected = by_group(judging.clicks), by_group(explained)
    some = (observed.sum(axis=0) > 0) & (expected.sum(axis=0) > 0)
    ratio = observed.sum(axis=0)[some] / expected.sum(axis=0)[some]
    # The error of a ratio of sums over groups.
    left = observed[:, some] - ratio * expected[:, some]
    errors = np.sqrt((left**2).sum(axis=0)) / observed.sum(axis=0)[some]
    found = _worst("features", np.log(ratio), errors, FEATURES_MISS)
    if found is None:
        return None
    positions = np.flatnonzero(some) + 1
    return Contradiction(
        found.witness, int(positions[found.position - 1]), found.factor, found.low, found.high
    )


def _worst(
    witness: str, off: Floats, errors: Floats, least: float = WORTH_SAYING
) -> Contradiction | None:
    """The position that is off by most errors, if by enough of them and by enough."""
    needed = alarm_errors(len(off))
    with np.errstate(divide="ignore", invalid="ignore"):
        surely = np.where(errors > 0, (np.abs(off) - needed * errors), 0.0)
    k = int(np.argmax(surely))
    if not surely[k] > 0 or np.abs(off[k]) < np.log(least):
        return None
    bounds = np.exp(off[k] + np.array([-needed, needed]) * errors[k])
    return Contradiction(witness, k + 1, float(np.exp(off[k])), float(bounds[0]), float(bounds[1]))
