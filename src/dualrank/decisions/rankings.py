"""A ranking of the logged queries: what it would show, to whom, and by which scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import PADDING, RankedLists, top_lists
from dualrank.decisions.click_metrics import CLICKS, first_click, gains
from dualrank.decisions.logged_pairs import PositionEffect, Traffic

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ranking:
    """Lists, the scores behind them (None for what was logged), and a name.

    `in_place_of` has for every logged list the one that is shown instead; None where it is itself.
    """

    name: str
    lists: RankedLists
    scores: Floats | None
    in_place_of: NDArray[np.int64] | None = None

    @classmethod
    def by_scores(
        cls,
        name: str,
        scores: NDArray[np.floating],
        dataset: Dataset,
        log: ClickLog,
        candidates: NDArray[np.bool_],
    ) -> Ranking:
        """The logged queries ranked by scores, in the very places that each session had.

        A session that was shown three results would be shown three by any ranker, and where the log
        has a gap, there is one: longer lists earn more, whoever fills them. `candidates` are the
        documents that may be shown. What has no score (a run left it out) is not shown.
        """
        depth = log.lists.depth
        values = np.where(candidates, scores, -np.inf).astype(np.float64)
        best = top_lists(dataset, values, depth).documents
        pattern = _numbered(log.lists.mask)
        same = log.lists.queries.astype(np.int64) * (pattern.max() + 1) + pattern
        _, first, in_place_of = np.unique(same, return_index=True, return_inverse=True)
        queries, places = log.lists.queries[first], log.lists.mask[first]
        documents = best[queries[:, None], np.maximum(np.cumsum(places, axis=1) - 1, 0)]
        shown = places & (documents != PADDING) & (values[documents] > -np.inf)
        lists = RankedLists(np.where(shown, documents, PADDING).astype(np.int32), queries)
        return cls(name, lists, np.asarray(scores, dtype=np.float64), in_place_of)

    @classmethod
    def as_logged(cls, log: ClickLog) -> Ranking:
        """What the log displayed."""
        return cls("logged", log.lists, None)

    def sessions(self, traffic: Traffic) -> Floats:
        """Sessions of each of its lists, by the contexts of the curve."""
        if self.in_place_of is None:
            return traffic.of_lists
        size = len(self.lists)
        by_context = [np.bincount(self.in_place_of, each, size) for each in traffic.of_lists.T]
        return np.stack(by_context, axis=1).astype(np.float64)

    def weights(self, metric: str, traffic: Traffic, effect: PositionEffect) -> Floats:
        """What the relevance of the document at each place adds to a linear metric, by list."""
        worth = gains(metric, self.lists.depth)
        found: Floats = (self.sessions(traffic) @ effect.slopes) * worth * self.lists.mask
        return found

    def from_trust(self, metric: str, traffic: Traffic, effect: PositionEffect) -> Floats:
        """What is clicked for standing there, whatever its relevance, by list."""
        worth = gains(metric, self.lists.depth)
        offsets = (self.sessions(traffic) @ effect.offsets) * worth
        found: Floats = np.where(self.lists.mask, offsets, 0.0).sum(axis=1)
        return found

    def first_clicks(
        self, relevance: Floats, traffic: Traffic, effect: PositionEffect
    ) -> tuple[Floats, Floats]:
        """The reciprocal rank of the first click, summed over the sessions of each list, and its
        slope in the relevance of every document there."""
        mask = self.lists.mask
        r = np.where(mask, relevance[self.lists.documents], 0.0)
        values, slopes = np.zeros(len(r)), np.zeros(r.shape)
        for context, sessions in enumerate(self.sessions(traffic).T):
            clicked = effect.slopes[context] * r + np.where(mask, effect.offsets[context], 0.0)
            value, slope = first_click(clicked)
            values += sessions * value
            slopes += sessions[:, None] * slope * effect.slopes[context]
        return values, np.where(mask, slopes, 0.0)

    def examination(self, traffic: Traffic, effect: PositionEffect, pairs: int) -> Floats:
        """How often each pair would be examined in a session of its query, were it at rank 1."""
        weights = self.weights(CLICKS, traffic, effect)
        mask = self.lists.mask
        return np.bincount(self.lists.documents[mask], weights[mask], pairs).astype(np.float64)


def _numbered(masks: NDArray[np.bool_]) -> NDArray[np.int64]:
    """A number for every row, the same for rows that are alike."""
    bits = np.packbits(masks, axis=1)
    whole = bits.view(np.dtype((np.void, bits.shape[1]))).ravel()
    return np.unique(whole, return_inverse=True)[1].astype(np.int64)
