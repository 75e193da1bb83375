"""Users whose examination is known, before lists that show documents at several positions."""

import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.dataset import Dataset
from dualrank.data.interventions import join_lists, shuffle_lists, swap_with_first
from dualrank.data.lists import top_lists

USER = PositionBasedUser()


class World:
    """Judged queries, and logs of position-based users before several kinds of lists."""

    truth = USER.examination(10) / USER.examination(1)

    def __init__(self, queries=150, lengths=(12, 18), seed=0):
        rng = np.random.default_rng([seed, 1])
        counts = rng.integers(*lengths, queries)
        grades = rng.choice(5, counts.sum(), p=[0.45, 0.25, 0.15, 0.10, 0.05])
        features = grades[:, None] + rng.normal(size=(counts.sum(), 3))
        qid = np.repeat(np.arange(queries), counts)
        self.data = Dataset.from_arrays(features, qid, grades, max_grade=4)
        self.rng = np.random.default_rng([seed, 2])

    def ranked(self, noise=1.0, depth=10):
        scores = self.data.grades + noise * self.rng.normal(size=self.data.document_count)
        return top_lists(self.data, scores, depth)

    def of_one_ranker(self, sessions):
        return self.log(self.ranked(), sessions)

    def of_several_rankers(self, sessions, rankers=4):
        return self.log(join_lists([self.ranked() for _ in range(rankers)]), sessions)

    def shuffled(self, sessions, copies=50):
        return self.log(shuffle_lists(self.ranked(), copies, self.rng), sessions)

    def swapped(self, sessions):
        return self.log(swap_with_first(self.ranked()), sessions)

    def log(self, lists, sessions):
        return sample_log(self.data, lists, USER, sessions, self.rng)


@pytest.fixture(scope="session")
def world():
    return World


@pytest.fixture
def errors():
    """Errors of a curve against the truth, in standard errors as its interval states them."""

    def of(propensity, truth=World.truth):
        spread = np.log(propensity.high / propensity.low)[1:] / 2 / 1.96
        return np.log(propensity.examination / truth)[1:] / spread

    return of
