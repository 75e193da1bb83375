"""Clicks and skips per query–document pair, with how likely each display was examined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog
from dualrank.propensity.propensity import Propensity

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PairCounts:
    """How often each pair was clicked, and not clicked at which `examination`.

    `skips[d, j]` are the displays of pair d without a click where examination is `examination[j]`:
    a column for every position, and by context for each curve. `sessions` counts displays at
    positions that the curve knows. `reach[d]` is how far, as a logarithm, the 95% interval of the
    curve lets the pair's examination be off.
    """

    clicks: Floats
    skips: Floats
    examination: Floats
    sessions: NDArray[np.int64]
    reach: Floats

    @classmethod
    def of(cls, log: ClickLog, propensity: Propensity) -> PairCounts:
        """Count a log; displays below the end of the curve say nothing."""
        pairs = int(log.lists.documents.max(initial=-1)) + 1
        clicks, sessions, seen, off = (np.zeros(pairs) for _ in range(4))
        skips: list[Floats] = []
        examination: list[float] = []
        for part, curve in parts_by_context(log, propensity):
            shown, clicked = part.sessions_per_list, part.clicks_per_list
            reach = _reach_of(curve)
            for k in range(min(curve.depth, log.lists.depth)):
                on = part.lists.mask[:, k]
                document = part.lists.documents[on, k]
                times = np.bincount(document, shown[on], pairs)
                hits = np.bincount(document, clicked[on, k], pairs)
                clicks += hits
                sessions += times
                skips.append((times - hits).astype(np.float64))
                examination.append(float(curve.examination[k]))
                seen += times * examination[-1]
                off += np.where(times > 0, times * examination[-1] * reach[k], 0.0)
        return cls(
            clicks,
            np.stack(skips, axis=1),
            np.array(examination),
            sessions.astype(np.int64),
            np.divide(off, seen, out=np.zeros(pairs), where=seen > 0),
        )

    def summed(self, groups: NDArray[np.integer], count: int) -> PairCounts:
        """Pairs of a group as if they were one."""

        def total(values: NDArray[Any]) -> Floats:
            return np.bincount(groups, values, count).astype(np.float64)

        return PairCounts(
            total(self.clicks),
            np.stack([total(column) for column in self.skips.T], axis=1),
            self.examination,
            total(self.sessions).astype(np.int64),
            np.zeros(count),
        )

    def take(self, pairs: NDArray[np.integer]) -> PairCounts:
        """These pairs only."""
        return PairCounts(
            self.clicks[pairs],
            self.skips[pairs],
            self.examination,
            self.sessions[pairs],
            self.reach[pairs],
        )


def parts_by_context(log: ClickLog, propensity: Propensity) -> list[tuple[ClickLog, Propensity]]:
    """The parts of a log that have curves of their own, or the whole with the common one."""
    if propensity.context is None:
        return [(log, propensity)]
    curves, column = propensity.by_context, log.column(propensity.context)
    return [
        (log.take_rows(np.flatnonzero(column.codes == code)), curves.get(name, propensity))
        for code, name in enumerate(column.names)
    ]


def _reach_of(curve: Propensity) -> Floats:
    if curve.high is None:
        return np.zeros(curve.depth)
    reach: Floats = np.log(curve.high / curve.examination)
    return reach
