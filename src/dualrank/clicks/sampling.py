"""A whole log from simulated users."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists

SESSIONS_PER_BLOCK = 200_000


def sample_log(
    dataset: Dataset,
    lists: RankedLists,
    user: PositionBasedUser,
    sessions: int,
    seed: int | np.random.Generator = 0,
) -> ClickLog:
    """Let `sessions` users look at lists drawn uniformly, and log what they did."""
    rng = np.random.default_rng(seed)
    probabilities = _click_probabilities(dataset, lists, user).astype(np.float32)
    chosen = rng.integers(len(lists), size=sessions).astype(np.int32)
    clicks = np.empty((sessions, lists.depth), dtype=bool)
    for start in range(0, sessions, SESSIONS_PER_BLOCK):
        block = slice(start, start + SESSIONS_PER_BLOCK)
        luck = rng.random(clicks[block].shape, dtype=np.float32)
        clicks[block] = luck < probabilities[chosen[block]]
    return ClickLog.from_clicks(lists, chosen, clicks, catalogue=dataset.catalogue)


def sample_click_counts(
    dataset: Dataset,
    lists: RankedLists,
    user: PositionBasedUser,
    sessions: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Clicks per list and position over many sessions, without sampling them one by one.

    The sum of n independent clicks of probability p is binomial, so this has exactly the
    distribution of `sample_log(…).clicks_per_list`.
    """
    per_list = rng.multinomial(sessions, np.full(len(lists), 1 / len(lists)))
    return rng.binomial(per_list[:, None], _click_probabilities(dataset, lists, user))


def _click_probabilities(
    dataset: Dataset, lists: RankedLists, user: PositionBasedUser
) -> NDArray[np.float64]:
    grades = lists.gather(dataset.require_grades())
    return user.click_probabilities(grades, lists.mask, dataset.max_grade)
