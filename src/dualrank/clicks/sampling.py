"""A whole log from simulated users."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.browsing import Pages
from dualrank.clicks.user import User
from dualrank.data.catalogue import Catalogue
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists
from dualrank.progress import shows_progress

SESSIONS_PER_BLOCK = 200_000


@shows_progress("simulating sessions")
def sample_log(
    dataset: Dataset,
    lists: RankedLists,
    user: User,
    sessions: int,
    seed: int | np.random.Generator = 0,
    *,
    weights: NDArray[np.floating] | None = None,
) -> ClickLog:
    """Let `sessions` users look at lists, and log what they did.

    Lists are drawn uniformly, or in proportion to `weights`.

    >>> import dualrank as dr
    >>> data = dr.generate_splits("tiny")
    >>> lists = dr.top_lists(data.train, data.train.features[:, 0])
    >>> log = dr.sample_log(data.train, lists, dr.PositionBasedUser(), 20_000)
    >>> log
    ClickLog(20000 sessions, 600 lists, 6055 click patterns)
    >>> clicks = log.counts @ log.clicks / log.sessions
    >>> bool(clicks[0] > clicks[4] > clicks[9])
    True
    """
    rng = np.random.default_rng(seed)
    pages = user.browse(lists.gather(dataset.require_grades()), lists.mask, dataset.max_grade)
    return sample_sessions(pages, lists, sessions, rng, dataset.catalogue, weights)


def sample_sessions(
    pages: Pages,
    lists: RankedLists,
    sessions: int,
    rng: np.random.Generator,
    catalogue: Catalogue | None,
    weights: NDArray[np.floating] | None = None,
) -> ClickLog:
    """Sessions on lists drawn by `weights` or uniformly, clicked as `pages` says of each list."""
    if weights is None:
        chosen = rng.integers(len(lists), size=sessions).astype(np.int32)
    else:
        chosen = rng.choice(len(lists), sessions, p=weights / weights.sum()).astype(np.int32)
    clicks = np.empty((sessions, lists.depth), dtype=bool)
    for start in range(0, sessions, SESSIONS_PER_BLOCK):
        block = slice(start, start + SESSIONS_PER_BLOCK)
        clicks[block] = pages.take(chosen[block]).sample(rng)
    return ClickLog.from_clicks(lists, chosen, clicks, catalogue=catalogue)
