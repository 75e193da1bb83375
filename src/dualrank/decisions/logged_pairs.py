"""What a log says of every query–document pair, once it is known what position does to clicks.

    P(click on d at k) = α_k r_d + β_k

α is examination and β is 0, but where users trust the top. Of a pair d with n_k displays at k,

    r̂_d = (c_d − Σ_k n_k β_k) / Σ_k n_k α_k

is its relevance without bias, on the scale of clicks at the first position. The denominator over
the sessions of the query is the propensity of the pair under what was displayed (the policy-aware
propensity of Oosterhuis and de Rijke, SIGIR 2020): lists may differ from session to session.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog
from dualrank.data.lists import RankedLists

LEVELLINGS = 50

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PositionEffect:
    """α (`slopes`) and β (`offsets`) of every position, a row for each context of the curve."""

    slopes: Floats
    offsets: Floats

    @classmethod
    def of_curves(cls, curves: Floats) -> PositionEffect:
        """Examination alone."""
        return cls(curves, np.zeros_like(curves))

    def with_levels(self, log: ClickLog, context: str | None) -> PositionEffect:
        """The same with the first position of each context examined as often as its clicks say.

        Curves are relative to their own first position. Where a pair is seen in two contexts, its
        clicks tell how these compare: s_c = C_c / Σ n_c α_c r̂, with r̂ by all contexts, in turn
        until both stand.
        """
        if context is None:
            return self
        codes, size = log.column(context).codes, len(log.column(context).names)
        mask = log.lists.mask
        documents = log.lists.documents[mask]
        clicks, exposure = [], []
        for code in range(size):
            part = log.take_rows(np.flatnonzero(codes == code))
            shown = part.sessions_per_list[:, None] * self.slopes[code]
            clicks.append(np.bincount(documents, part.clicks_per_list[mask]))
            exposure.append(np.bincount(documents, np.broadcast_to(shown, mask.shape)[mask]))
        levels = np.ones(size)
        for _ in range(LEVELLINGS):
            examined = levels @ np.array(exposure)
            r = np.sum(clicks, axis=0) / np.maximum(examined, 1e-300)
            explained = np.array(exposure) @ r
            some = (explained > 0) & (np.sum(clicks, axis=1) > 0)
            levels = np.where(some, np.sum(clicks, axis=1) / np.where(some, explained, 1), levels)
        levels /= levels.max()
        return PositionEffect(self.slopes * levels[:, None], self.offsets)


@dataclass(frozen=True, eq=False)
class Traffic:
    """Sessions of each logged list, and of each query, by the contexts of the curve."""

    of_lists: Floats
    of_queries: Floats

    @classmethod
    def of(
        cls, log: ClickLog, context: str | None, rows: NDArray[np.bool_] | None = None
    ) -> Traffic:
        """Of a log, or of these rows of it."""
        counts = log.counts.astype(np.float64)
        if rows is not None:
            counts = np.where(rows, counts, 0.0)
        codes, size = np.zeros(len(counts), dtype=np.int64), 1
        if context is not None:
            column = log.column(context)
            codes, size = column.codes.astype(np.int64), len(column.names)
        lists = len(log.lists)
        of_lists = np.bincount(log.list_of * np.int64(size) + codes, counts, lists * size)
        by_list: Floats = of_lists.reshape(lists, size).astype(np.float64)
        queries = int(log.lists.queries.max()) + 1
        by_query = [np.bincount(log.lists.queries, each, queries) for each in by_list.T]
        return cls(by_list, np.stack(by_query, axis=1))


@dataclass(frozen=True, eq=False)
class LoggedPairs:
    """Clicks on every pair (or what they are worth), α and β summed over its displays."""

    clicks: Floats
    exposure: Floats
    offset: Floats

    @classmethod
    def of(
        cls,
        lists: RankedLists,
        clicks: NDArray[np.number],
        traffic: Traffic,
        effect: PositionEffect,
        pairs: int,
    ) -> LoggedPairs:
        """Sum the clicks of every list and position over the lists that show a pair."""
        mask = lists.mask
        documents = lists.documents[mask]

        def total(values: NDArray[np.number]) -> Floats:
            return np.bincount(documents, values[mask], pairs).astype(np.float64)

        by_context = traffic.of_lists
        return cls(
            total(clicks), total(by_context @ effect.slopes), total(by_context @ effect.offsets)
        )

    @property
    def displayed(self) -> NDArray[np.bool_]:
        """Whether a pair was ever displayed where it could be examined."""
        return self.exposure > 0

    def relevance(self, least: Floats | float = 0.0) -> Floats:
        """r̂, where no exposure counts for less than `least`; 0 where nothing was displayed."""
        counted = np.maximum(self.exposure, least)
        found = np.zeros(len(self.clicks))
        np.divide(self.clicks - self.offset, counted, out=found, where=self.displayed)
        return found
