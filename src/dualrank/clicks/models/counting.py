"""Plain counts of a log that models share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualrank.data.click_log import ClickLog
from dualrank.data.log_parts import LogPart, LogParts
from dualrank.errors import DataError

Floats = NDArray[np.float64]

MOST_SESSIONS = 2**53
"""Up to here a float holds every whole number."""


def tally(index: NDArray[np.integer], weights: ArrayLike, size: int) -> Floats:
    """Sums of `weights` per index."""
    return np.bincount(index, np.asarray(weights), size).astype(np.float64, copy=False)


def ratio(part: Floats, whole: Floats, otherwise: float = 0.0) -> Floats:
    """part / whole, and `otherwise` where there is no whole."""
    return np.divide(part, whole, out=np.full_like(whole, otherwise), where=whole > 0)


def require_countable(log: ClickLog | LogParts, use: str = "learn from") -> None:
    """Refuse a log without sessions, or with more than can be added up exactly."""
    if isinstance(log, ClickLog):
        total = float(np.abs(log.counts.astype(np.float64)).sum())
    else:
        total = float(sum(np.abs(p.log.counts.astype(np.float64)).sum() for p in log))
    if total == 0:
        raise DataError(f"the log has no sessions to {use}")
    if total > MOST_SESSIONS:
        raise DataError(
            f"the log counts {total:.3g} sessions, and only up to {MOST_SESSIONS:.3g} can be added "
            "up: its counts are damaged"
        )


def require_skips(log: ClickLog | LogParts) -> None:
    """Refuse a log of clicks alone, in which nothing that was displayed was passed over."""
    clicks, shown = rank_sums(LogParts.of(log))
    if shown.any() and (clicks == shown).all():
        raise DataError(
            "every document that the log shows was clicked, in every session: what was displayed "
            "and not clicked is missing, without which clicks tell nothing of position or "
            "relevance; log what was displayed"
        )


def pair_count(log: ClickLog) -> int:
    """How many pairs the log's index has room for."""
    if log.catalogue is not None:
        return len(log.catalogue.doc_ids)
    return int(log.lists.documents.max(initial=-1)) + 1


def per_pair(log: ClickLog, per_list: NDArray[np.number]) -> Floats:
    """Values per list and rank, summed over each pair."""
    mask = log.lists.mask
    return tally(log.lists.documents[mask], per_list[mask], pair_count(log))


@dataclass(frozen=True, eq=False)
class PairTrials:
    """Per pair of a part, the sessions that displayed it, and those that clicked it."""

    clicks: Floats
    trials: Floats

    @classmethod
    def of(cls, part: LogPart) -> PairTrials:
        """Count a part, or take what was counted."""
        if part.sums is None:
            log = part.log
            return cls(per_pair(log, log.clicks_per_list), per_pair(log, displays(log)))
        document, _, sessions, clicks = part.sums().rows.T
        size = int(document.max(initial=-1)) + 1
        return cls(tally(document, clicks, size), tally(document, sessions, size))


def rank_sums(log: LogParts) -> tuple[Floats, Floats]:
    """Clicks at each rank, and sessions that displayed something there."""
    clicks, shown = np.zeros(log.depth), np.zeros(log.depth)
    for part in log:
        if part.sums is None:
            found = part.log
            clicks += found.clicks_per_list.sum(axis=0)
            shown += found.sessions_per_list @ found.lists.mask
        else:
            _, place, sessions, clicked = part.sums().rows.T
            clicks += tally(place - 1, clicked, log.depth)
            shown += tally(place - 1, sessions, log.depth)
    return clicks, shown


def pairs_shown(log: LogParts) -> int:
    """How many pairs were displayed."""
    return sum(int((PairTrials.of(part).trials > 0).sum()) for part in log)


def own(array: NDArray[Any]) -> NDArray[Any]:
    """An array in memory of its own, where it is mapped: kernels take no others."""
    return array if array.flags.writeable else np.array(array)


def displays(log: ClickLog) -> NDArray[np.int64]:
    """Sessions that displayed something, per list and rank."""
    return log.sessions_per_list[:, None] * log.lists.mask


def click_through(log: LogParts) -> float:
    """The share of displayed documents that were clicked."""
    clicks, shown = rank_sums(log)
    return float(clicks.sum() / max(shown.sum(), 1))
