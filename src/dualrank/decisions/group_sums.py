"""All that estimates are made of, summed over groups of queries: a resample is a weighted sum.

For a target (a metric over some sessions) and a ranking, the estimate of what is earned is

    base + slope·w

where w are the weights of the model of relevance. Inverse propensity has a base only, the model
alone ("direct") a slope only. What is added up per group, for all targets and both rankings at
once, is therefore a base by estimator, the slope of the model, and the two sides of its normal
equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualrank.decisions.click_metrics import FIRST
from dualrank.decisions.logged_pairs import LoggedPairs, PositionEffect, Traffic
from dualrank.decisions.rankings import Ranking
from dualrank.decisions.relevance_model import FOLDS, Basis

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Target:
    """A metric over some sessions: those of the whole log, or of a part."""

    metric: str
    traffic: Traffic
    part: str = ""


@dataclass(frozen=True, eq=False)
class Groups:
    """Queries thrown together at random, so that a resample draws groups; `count` at most."""

    of_query: NDArray[np.int64]
    count: int

    @classmethod
    def of(cls, queries: NDArray[np.integer], most: int, seed: int) -> Groups:
        """Groups of as many of these queries each, give or take one."""
        asked = np.unique(queries)
        count = min(most, len(asked))
        group = np.zeros(int(asked.max()) + 1, dtype=np.int64)
        group[asked] = np.random.default_rng([seed, 0x_6209]).permutation(len(asked)) % count
        return cls(group, count)

    def total(self, queries: NDArray[np.integer], values: Floats) -> Floats:
        """Values of queries, summed into groups."""
        return np.bincount(self.of_query[queries], values, self.count).astype(np.float64)


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums by group, for targets t and rankings s (new, old), all of shape `[t, s, group, …]`.

    `base` and `slope` by estimate of relevance: `ips` and `clipped` have a base only, `direct` is
    the model, and `filled` inverse propensity where a pair was displayed and the model where not.
    `worth` is what relevance of 1 everywhere would earn, `supported` the part of it that falls on
    displayed pairs, and `sessions` (the same for both rankings) what all is divided by.
    """

    sessions: Floats
    base: dict[str, Floats]
    slope: dict[str, Floats]
    worth: Floats
    supported: Floats


@dataclass(frozen=True, eq=False)
class Setting:
    """What does not change with the curve: who ranks what, for whom, and in which groups."""

    rankings: tuple[Ranking, Ranking]
    targets: Sequence[Target]
    groups: Groups
    query_of_pair: NDArray[np.int64]

    @cached_property
    def _slices(self) -> list[tuple[int, slice]]:
        """The pairs of every group that has any: they stand together (see `renumbered`)."""
        group = self.groups.of_query[self.query_of_pair]
        starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
        ends = np.append(starts[1:], len(group))
        return [(int(group[a]), slice(a, b)) for a, b in zip(starts, ends, strict=True)]

    def normal_equations(self, pairs: LoggedPairs, basis: Basis) -> tuple[Floats, Floats]:
        """Σ E φφᵀ and Σ c φ of every group."""
        gram = np.zeros((self.groups.count, basis.size, basis.size))
        clicked = np.zeros((self.groups.count, basis.size))
        for g, rows in self._slices:
            phi = basis.values[rows].astype(np.float64)
            gram[g] = (phi * pairs.exposure[rows, None]).T @ phi
            clicked[g] = (pairs.clicks[rows] - pairs.offset[rows]) @ phi
        return gram, clicked

    def sum_up(
        self, pairs: LoggedPairs, effect: PositionEffect, least: Floats, basis: Basis, guess: Floats
    ) -> GroupSums:
        """Every sum. What is not linear in relevance is taken to be, around the `guess`."""
        size = (len(self.targets), 2, self.groups.count)
        by_clicks = pairs.relevance()
        relevance = {
            "ips": by_clicks,
            "clipped": pairs.relevance(least),
            "filled": np.where(pairs.displayed, by_clicks, guess),
            "direct": guess,
        }
        base = {name: np.zeros(size) for name in relevance}
        weights = np.zeros((*size[:2], len(guess)))
        sessions = np.zeros(size[::2])
        for t, target in enumerate(self.targets):
            by_query = target.traffic.of_queries.sum(axis=1)
            sessions[t] = self.groups.total(np.arange(len(by_query)), by_query)
            for s, ranking in enumerate(self.rankings):
                place = _by_place(ranking, target, effect, guess)
                mask = ranking.lists.mask
                weights[t, s] = np.bincount(ranking.lists.documents[mask], place[mask], len(guess))
                for name, r in relevance.items():
                    earned = _earned(ranking, target, effect, r, place)
                    base[name][t, s] = self.groups.total(ranking.lists.queries, earned)
        slope = {name: np.zeros((*size, basis.size)) for name in ("filled", "direct")}
        worth, supported = np.zeros(size), np.zeros(size)
        flat = weights.reshape(-1, len(guess))
        for g, rows in self._slices:
            phi = basis.values[rows].astype(np.float64)
            part, unseen = flat[:, rows], ~pairs.displayed[rows]
            # value(r) = value(guess) + slope·(r − guess)
            for name, chosen in (("direct", slice(None)), ("filled", unseen)):
                some = part[:, chosen]
                slope[name][:, :, g] = (some @ phi[chosen]).reshape(*size[:2], -1)
                base[name][:, :, g] -= (some @ guess[rows][chosen]).reshape(size[:2])
            worth[:, :, g] = part.sum(axis=1).reshape(size[:2])
            supported[:, :, g] = part[:, ~unseen].sum(axis=1).reshape(size[:2])
        return GroupSums(sessions, base, slope, worth, supported)


def _by_place(ranking: Ranking, target: Target, effect: PositionEffect, guess: Floats) -> Floats:
    """The slope of what is earned in the relevance of the document at every place."""
    if target.metric == FIRST:
        return ranking.first_clicks(guess, target.traffic, effect)[1]
    return ranking.weights(target.metric, target.traffic, effect)


def _earned(
    ranking: Ranking, target: Target, effect: PositionEffect, relevance: Floats, place: Floats
) -> Floats:
    """What each list of a ranking earns; `place` is the slope, which is all where it is linear."""
    if target.metric == FIRST:
        return ranking.first_clicks(relevance, target.traffic, effect)[0]
    found: Floats = np.einsum("lk,lk->l", place, relevance[ranking.lists.documents])
    if effect.offsets.any():
        found = found + ranking.from_trust(target.metric, target.traffic, effect)
    return found


def in_folds(count: int) -> NDArray[np.int64]:
    """The fold of every group; groups are random already."""
    return np.arange(count) % FOLDS
