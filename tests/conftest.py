"""Small problems that the tests of several rooms share."""

import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.dataset import Dataset
from dualrank.data.lists import PADDING, top_lists


def graded_dataset(queries=60, features=5, seed=0, lengths=(1, 9)):
    """Queries of different lengths whose grades depend on the first two features."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(*lengths, queries)
    X = rng.normal(size=(counts.sum(), features)).astype(np.float32)
    utility = X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.normal(size=len(X))
    grades = np.digitize(utility, [-0.3, 0.5, 1.2, 1.8])
    return Dataset.from_arrays(X, np.repeat(np.arange(queries), counts), grades, max_grade=4)


@pytest.fixture(scope="session")
def make_dataset():
    return graded_dataset


@pytest.fixture(scope="session")
def dataset():
    return graded_dataset()


@pytest.fixture(scope="session")
def lists(dataset):
    """Lists of at most six documents in the order of a poor ranker; some are shorter."""
    return top_lists(dataset, dataset.features[:, 0], depth=6)


@pytest.fixture(scope="session")
def user():
    return PositionBasedUser()


@pytest.fixture(scope="session")
def log(dataset, lists, user):
    return sample_log(dataset, lists, user, 4_000, np.random.default_rng(3))


@pytest.fixture(scope="session")
def show():
    """Lists as corrections see them, of labels and a mask, each showing documents of its own."""
    import torch

    from dualrank.rankers.batch import Batch

    def show(labels, mask=None, contexts=None):
        labels = np.asarray(labels)
        documents = np.arange(labels.size, dtype=np.int32).reshape(labels.shape)
        if mask is not None:
            documents = np.where(np.asarray(mask), documents, PADDING).astype(np.int32)
        contexts = None if contexts is None else np.asarray(contexts)
        return Batch(documents, labels, len(labels), contexts).to(torch.device("cpu"))

    return show
