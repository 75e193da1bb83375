"""The queries that gain and lose most, with their documents, for a person to look at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrank.data.catalogue import Catalogue
from dualrank.decisions.click_metrics import CLICKS
from dualrank.decisions.judging import Judged, Judging
from dualrank.decisions.logged_pairs import PositionEffect
from dualrank.decisions.rankings import Ranking

MOST_MOVES = 20
MOST_DOCUMENTS = 5

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Placed:
    """A document at the top of a ranking: displays, clicks, and what they make of its relevance."""

    document: str
    displays: int
    clicks: float
    relevance: float


@dataclass(frozen=True)
class Move:
    """A query, what a session of it gains, and what stands on top under both rankings."""

    query: str
    sessions: int
    gain: float
    new: tuple[Placed, ...]
    old: tuple[Placed, ...]


def largest_moves(
    judging: Judging,
    judged: Judged,
    effect: PositionEffect,
    names: Catalogue,
    kept: NDArray[np.int64],
) -> tuple[Move, ...]:
    """Up to twenty queries that gain most clicks over the log's sessions, then those that lose.

    Of single queries there are few clicks, so that a pair's relevance is the mean of what they say
    and what the model says, weighed by how far the model is usually off.
    """
    pairs = judged.pairs
    relevance = _weighed(judged)
    moved = np.zeros(len(judging.traffic.of_queries))
    for sign, ranking in zip((1, -1), judging.rankings, strict=True):
        weights = ranking.weights(CLICKS, judging.traffic, effect)
        earned = (weights * relevance[ranking.lists.documents]).sum(axis=1)
        moved += sign * np.bincount(ranking.lists.queries, earned, len(moved))
    sessions = judging.traffic.of_queries.sum(axis=1)
    mask = judging.log.lists.mask
    displays = np.bincount(
        judging.log.lists.documents[mask],
        np.broadcast_to(judging.log.sessions_per_list[:, None], mask.shape)[mask],
        len(kept),
    )
    order = np.argsort(-moved, kind="stable")
    gaining = [q for q in order[:MOST_MOVES] if moved[q] > 0]
    losing = [q for q in order[::-1][:MOST_MOVES] if moved[q] < 0]

    def top(ranking: Ranking, query: int) -> tuple[Placed, ...]:
        rows = np.flatnonzero(ranking.lists.queries == query)
        row = rows[np.argmax(ranking.sessions(judging.traffic)[rows].sum(axis=1))]
        shown = [d for d in ranking.lists.documents[row] if d >= 0][:MOST_DOCUMENTS]
        return tuple(
            Placed(
                str(names.doc_ids[kept[d]]),
                int(displays[d]),
                float(pairs.clicks[d]),
                float(relevance[d]),
            )
            for d in shown
        )

    new, old = judging.rankings
    return tuple(
        Move(
            str(names.query_ids[q]),
            int(sessions[q]),
            float(moved[q] / sessions[q]),
            top(new, q),
            top(old, q),
        )
        for q in (*gaining, *losing)
    )


def _weighed(judged: Judged) -> Floats:
    """(κ m + c)/(κ + E), κ being the noise of clicks over how far relevance is from the model."""
    pairs, model = judged.pairs, judged.model
    exposure = pairs.exposure
    unexplained = (pairs.clicks - pairs.offset - exposure * model) ** 2
    beyond = float((unexplained - judged.noise * exposure).sum())
    spread = max(beyond / float((exposure**2).sum()), 1e-6)
    kappa = judged.noise / spread
    found: Floats = (kappa * model + pairs.clicks - pairs.offset) / (kappa + exposure)
    return np.maximum(found, 0.0)
