"""Two rankings before the clicks of a log: everything that an estimate under some curve needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog
from dualrank.data.lists import RankedLists
from dualrank.decisions.estimates_of_value import Fit, Values, values_of
from dualrank.decisions.group_sums import Groups, Setting, Target, in_folds
from dualrank.decisions.logged_pairs import LoggedPairs, PositionEffect, Traffic
from dualrank.decisions.rankings import Ranking
from dualrank.decisions.relevance_model import FOLDS, Basis, penalties, principal_directions
from dualrank.decisions.relevance_model import relative_to_query as relative

CLIP = 10.0
"""No propensity counts for less than this over √N (Oosterhuis, TOIS 2023)."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Judging:
    """A log whose documents are numbered by the pairs that matter, and two rankings of them.

    `clicks` are those of every list and position, or what they are worth; `squares` is the sum of
    their squares over sessions, by which their noise is known.
    """

    log: ClickLog
    clicks: Floats
    squares: float
    rankings: tuple[Ranking, Ranking]
    targets: tuple[Target, ...]
    query_of_pair: NDArray[np.int64]
    features: NDArray[np.float32]
    traffic: Traffic
    groups: Groups
    seed: int

    @cached_property
    def setting(self) -> Setting:
        """What does not change with the curve."""
        return Setting(self.rankings, self.targets, self.groups, self.query_of_pair)

    @cached_property
    def by_folds(self) -> Judging:
        """The same, where no interval is needed: in as many groups as there are folds."""
        folds = Groups(in_folds(self.groups.count)[self.groups.of_query], FOLDS)
        return replace(self, groups=folds)

    def pairs(self, effect: PositionEffect) -> LoggedPairs:
        """What the log says of every pair."""
        return LoggedPairs.of(
            self.log.lists, self.clicks, self.traffic, effect, len(self.query_of_pair)
        )

    @cached_property
    def _directions(self) -> NDArray[np.float32]:
        return principal_directions(self.features, self.seed)

    def basis(self, effect: PositionEffect, *, with_places: bool = True) -> Basis:
        """Features, scores, and (`with_places`) how far up the pair stands."""
        pairs = self.pairs(effect)
        sessions = self.traffic.of_queries.sum(axis=1)[self.query_of_pair]
        examined = pairs.exposure / np.maximum(sessions, 1.0)
        scores, places = [], []
        for ranking in self.rankings:
            place = ranking.examination(self.traffic, effect, len(examined))
            place = place / np.maximum(sessions, 1.0)
            known = place if ranking.scores is None else ranking.scores
            if ranking.scores is None and not with_places:
                continue
            one = relative(known, self.query_of_pair)
            one = np.clip(one / (one.std() or 1.0), -4.0, 4.0)
            scores += [one, one**2]
            places += [place, one * examined]
        blocks: list[Floats | NDArray[np.float32]] = [self._directions, np.stack(scores, axis=1)]
        if with_places:
            blocks.append(np.stack(places, axis=1))
        return Basis.of([each for each in blocks if each.shape[1]], pairs.exposure)

    def judge(self, effect: PositionEffect, draws: Floats, basis: Basis) -> Judged:
        """Every estimate under what position does, of the log and its resamples."""
        pairs = self.pairs(effect)
        gram, clicked = self.setting.normal_equations(pairs, basis)
        noise = max(self.squares / float(pairs.exposure.sum()), 1e-12)
        drawn = penalties(gram.sum(axis=0), clicked.sum(axis=0), noise, basis.blocks)
        fit = Fit.of(gram, clicked, drawn, noise, draws)
        group = self.groups.of_query[self.query_of_pair]
        fold = in_folds(self.groups.count)[group]
        model = np.einsum("dp,dp->d", basis.values, fit.weights[fold, 0])
        guess = np.clip(model, 0.0, None)
        sessions = self.traffic.of_queries.sum(axis=1)
        least = sessions[self.query_of_pair] * min(CLIP / np.sqrt(sessions.sum()), 1.0)
        sums = self.setting.sum_up(pairs, effect, least, basis, guess)
        found = [values_of(sums, fit, draws, t) for t in range(len(self.targets))]
        return Judged(pairs, guess, found, noise)


@dataclass(frozen=True, eq=False)
class Judged:
    """Estimates by target and name, with the pairs and the model's relevance behind them."""

    pairs: LoggedPairs
    model: Floats
    values: list[dict[str, Values]]
    noise: float


def renumbered(
    log: ClickLog,
    rankings: tuple[Ranking, Ranking],
    query_of_document: NDArray[np.int64],
    groups: Groups,
) -> tuple[ClickLog, tuple[Ranking, Ranking], NDArray[np.int64]]:
    """The same with only those documents numbered that are shown, and which they are.

    Those of a group stand together, and so do the groups of a fold, so that sums run over slices.
    """
    shown = np.zeros(len(query_of_document), dtype=bool)
    for lists in (log.lists, *(ranking.lists for ranking in rankings)):
        shown[lists.documents[lists.mask]] = True
    kept = np.flatnonzero(shown)
    group = groups.of_query[query_of_document[kept]]
    kept = kept[np.lexsort((group, in_folds(groups.count)[group]))]
    number = np.full(len(shown) + 1, -1, dtype=np.int32)
    number[kept] = np.arange(len(kept))

    def again(lists: RankedLists) -> RankedLists:
        return RankedLists(number[lists.documents], lists.queries)

    new, old = (
        replace(
            ranking,
            lists=again(ranking.lists),
            scores=None if ranking.scores is None else ranking.scores[kept],
        )
        for ranking in rankings
    )
    return replace(log, lists=again(log.lists)), (new, old), kept
