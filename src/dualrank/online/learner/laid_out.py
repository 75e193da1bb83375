"""Lists as regressions of clicks take them: scores and clicks by position, and whose query it is.

The scores of a list are those of the ranker from before its clicks were learned. A ranker that has
seen them rates what happened to be clicked higher, and moves it up: judged by its own scores, users
would seem to look further down than they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog

REACH = 10.0
"""Usual distances from the median beyond which a score is taken for less: nearly seven standard
deviations of a normal one."""
MOST_LISTS = 40_000
"""As many of the last lists as are looked at; more would tell little more, and take longer."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LaidOut:
    """Lists that were clicked and show more than one document; scores have a deviation of 1."""

    scores: Floats
    clicks: Floats
    mask: NDArray[np.bool_]
    query: NDArray[np.uint64]
    """A number of the query, the same wherever it comes."""
    sessions: int

    @classmethod
    def of(
        cls, log: ClickLog, scores: NDArray[np.floating], numbers: NDArray[np.uint64]
    ) -> LaidOut:
        """By scores of all documents, and the numbers of all queries of the log's data set."""
        clicks, mask = log.clicks_per_list, log.lists.mask
        told = np.flatnonzero(clicks.any(axis=1) & (mask.sum(axis=1) > 1))
        documents, mask = log.lists.documents[told], mask[told]
        laid = np.where(mask, scores[documents], 0.0).astype(np.float64)
        if len(told):
            low, high = reach_of(laid[mask])
            laid = np.where(mask, laid.clip(low, high), 0.0)
            laid = np.where(mask, laid - laid[mask].mean(), 0.0)
            laid /= float(laid[mask].std()) or 1.0
        query = numbers[log.lists.queries[told]]
        return cls(laid, clicks[told].astype(np.float64), mask, query, log.sessions)

    def __len__(self) -> int:
        return len(self.clicks)

    @property
    def depth(self) -> int:
        """The longest list that there can be."""
        return self.clicks.shape[1]

    @property
    def queries(self) -> int:
        """How many there are."""
        return len(np.unique(self.query))

    def last(self, most: int) -> LaidOut:
        """The last of the lists."""
        scores, clicks, mask = self.scores[-most:], self.clicks[-most:], self.mask[-most:]
        return LaidOut(scores, clicks, mask, self.query[-most:], self.sessions)

    def padded(self, depth: int) -> LaidOut:
        """With padding down to this depth."""
        more = ((0, 0), (0, depth - self.depth))
        return LaidOut(
            np.pad(self.scores, more),
            np.pad(self.clicks, more),
            np.pad(self.mask, more),
            self.query,
            self.sessions,
        )


def reach_of(scores: NDArray[np.floating]) -> tuple[float, float]:
    """The lowest and highest that scores are taken for: `REACH` usual distances from their median.

    Scores are compared in deviations of all of them. One document with a feature that went wrong,
    whose score is a million, would make all others alike, and any ranker as good as another.

    >>> reach_of(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 1e30]))
    (-11.5, 18.5)
    """
    middle = float(np.median(scores))
    apart = np.abs(scores.astype(np.float64) - middle)
    apart = apart[apart > 0]
    reach = REACH * float(np.median(apart)) if len(apart) else 0.0
    return middle - reach, middle + reach


def joined(parts: Sequence[LaidOut], most: int = MOST_LISTS) -> LaidOut | None:
    """The last lists of all, if there are any."""
    if not parts:
        return None
    depth = max(each.depth for each in parts)
    deep = [each.padded(depth) for each in parts]
    return LaidOut(
        np.concatenate([each.scores for each in deep]),
        np.concatenate([each.clicks for each in deep]),
        np.concatenate([each.mask for each in deep]),
        np.concatenate([each.query for each in deep]),
        sum(each.sessions for each in parts),
    ).last(most)
