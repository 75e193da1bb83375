"""How much of what a ranking shows the log can tell anything about."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrank.decisions.logged_pairs import LoggedPairs, PositionEffect, Traffic
from dualrank.decisions.rankings import Ranking

MOST_MISSING = 0.05
"""The share of examination on documents that were never displayed beyond which clicks cannot tell
what a ranking earns."""
HEAVIEST = 10

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Support:
    """What stands behind the estimates of a ranking.

    `top` is the share of sessions whose first document the log ever displayed for that query, and
    `examined` that of all that would be examined. `effective_clicks` is how many clicks of one
    weight would tell as much, of `clicks`; `heaviest` the weight of the ten heaviest.
    """

    ranking: str
    top: float
    examined: float
    clicks: float
    effective_clicks: float
    heaviest: float

    @classmethod
    def of(
        cls, ranking: Ranking, pairs: LoggedPairs, traffic: Traffic, effect: PositionEffect
    ) -> Support:
        """Of a ranking of the logged queries."""
        first = ranking.lists.documents[:, 0]
        sessions = ranking.sessions(traffic).sum(axis=1)
        seen = np.where(first >= 0, pairs.displayed[first], True)
        shown = ranking.examination(traffic, effect, len(pairs.clicks))
        weight = np.divide(shown, pairs.exposure, out=np.zeros(len(shown)), where=pairs.displayed)
        counted = pairs.clicks * weight
        squared = float((pairs.clicks * weight**2).sum())
        return cls(
            ranking.name,
            float(sessions @ seen / sessions.sum()),
            float(shown[pairs.displayed].sum() / max(shown.sum(), 1e-300)),
            float(pairs.clicks.sum()),
            float(counted.sum() ** 2 / squared) if squared else 0.0,
            _heaviest(pairs.clicks, weight),
        )

    @property
    def missing(self) -> float:
        """The share of examination that would fall on what was never displayed."""
        return 1 - self.examined

    @property
    def is_enough(self) -> bool:
        """Whether clicks can tell what the ranking earns."""
        return self.missing <= MOST_MISSING


def _heaviest(clicks: Floats, weight: Floats) -> float:
    """The share of all weight that the ten heaviest clicks have."""
    clicked = np.flatnonzero(clicks > 0)
    order = clicked[np.argsort(-weight[clicked], kind="stable")][:HEAVIEST]
    before = np.concatenate([[0.0], np.cumsum(clicks[order])[:-1]])
    taken = np.clip(HEAVIEST - before, 0.0, clicks[order])
    total = float(clicks @ weight)
    return float(taken @ weight[order] / total) if total else 0.0
