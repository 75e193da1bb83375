"""Plain counts of a log that models share."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualrank.data.click_log import ClickLog
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


def require_countable(log: ClickLog, use: str = "learn from") -> None:
    """Refuse a log without sessions, or with more than can be added up exactly."""
    total = float(np.abs(log.counts.astype(np.float64)).sum())
    if total == 0:
        raise DataError(f"the log has no sessions to {use}")
    if total > MOST_SESSIONS:
        raise DataError(
            f"the log counts {total:.3g} sessions, and only up to {MOST_SESSIONS:.3g} can be added "
            "up: its counts are damaged"
        )


def require_skips(log: ClickLog) -> None:
    """Refuse a log of clicks alone, in which nothing that was displayed was passed over."""
    shown = log.lists.mask[log.list_of]
    if shown.any() and (log.clicks == shown).all():
        raise DataError(
            "every document that the log shows was clicked, in every session: what was displayed "
            "and not clicked is missing, without which clicks tell nothing of position or "
            "relevance; log what was displayed"
        )


def pair_count(log: ClickLog) -> int:
    """How many pairs the log's index has room for."""
    if log.catalogue is not None:
        return len(log.catalogue.doc_ids)
    return int(log.lists.documents.max()) + 1


def per_pair(log: ClickLog, per_list: NDArray[np.number]) -> Floats:
    """Values per list and rank, summed over each pair."""
    mask = log.lists.mask
    return tally(log.lists.documents[mask], per_list[mask], pair_count(log))


def displays(log: ClickLog) -> NDArray[np.int64]:
    """Sessions that displayed something, per list and rank."""
    return log.sessions_per_list[:, None] * log.lists.mask


def click_through(log: ClickLog) -> float:
    """The share of displayed documents that were clicked."""
    return float(log.clicks_per_list.sum() / max(displays(log).sum(), 1))
