"""Users whose habits are known, before lists of one ranker or of several."""

import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.click_log import ClickLog, Column
from dualrank.data.dataset import Dataset
from dualrank.data.interventions import join_lists
from dualrank.data.lists import top_lists
from dualrank.diagnostics.facts import LogFacts


class World:
    """Judged queries, and logs of users before the lists of some rankers."""

    def __init__(self, queries=300, seed=0):
        rng = np.random.default_rng([seed, 1])
        counts = rng.integers(12, 18, queries)
        grades = rng.choice(5, counts.sum(), p=[0.45, 0.25, 0.15, 0.10, 0.05])
        features = grades[:, None] + rng.normal(size=(counts.sum(), 3))
        qid = np.repeat(np.arange(queries), counts)
        self.data = Dataset.from_arrays(features, qid, grades, max_grade=4)
        self.rng = np.random.default_rng([seed, 2])

    def lists(self, rankers=1, noise=1.0):
        scores = [
            self.data.grades + noise * self.rng.normal(size=self.data.document_count)
            for _ in range(rankers)
        ]
        return join_lists([top_lists(self.data, each) for each in scores])

    def log(self, sessions=60_000, rankers=4, user=None, lists=None):
        user = PositionBasedUser() if user is None else user
        lists = self.lists(rankers) if lists is None else lists
        return sample_log(self.data, lists, user, sessions, self.rng)

    def facts(self, *arguments, **habits):
        return LogFacts(self.log(*arguments, **habits))


def _joined(name, parts):
    """Logs over the same lists as one log, told apart by a column."""
    codes = np.repeat(np.arange(len(parts)), [len(part.counts) for part in parts.values()])
    return ClickLog.from_clicks(
        next(iter(parts.values())).lists,
        np.concatenate([part.list_of for part in parts.values()]),
        np.concatenate([part.clicks for part in parts.values()]),
        np.concatenate([part.counts for part in parts.values()]),
        columns={name: Column(tuple(parts), codes.astype(np.int32))} if name else None,
    )


@pytest.fixture(scope="session")
def world():
    return World


@pytest.fixture(scope="session")
def joined():
    return _joined
