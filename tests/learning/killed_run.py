"""Train a tiny problem, or continue."""

import signal
from functools import cache

import numpy as np
import torch

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.dataset import Dataset
from dualrank.data.lists import top_lists
from dualrank.learning.fit import fit
from dualrank.rankers.network import DNN
from dualrank.settings import TrainingSettings

SETTINGS = TrainingSettings(
    steps=70, batch_size=8, optimizer="adagrad", checkpoint_every=1, validate_every=7
)


@cache
def problem():
    """A log over twenty queries."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)).astype(np.float32)
    data = Dataset.from_arrays(X, np.repeat(np.arange(20), 6), (X[:, 0] > 0) * 2, max_grade=2)
    lists = top_lists(data, rng.normal(size=120), 5)
    return sample_log(data, lists, PositionBasedUser(), 2_000, rng), data


def train(folder, last_step=None):
    """Train, or continue, and save the model; at `last_step` wait to be killed."""
    torch.set_num_threads(1)
    log, data = problem()

    def wait_at_the_end(step, _):
        while last_step is not None and step >= last_step:
            signal.pause()

    fit(
        log,
        data,
        ranker=DNN((3,)),
        settings=SETTINGS,
        checkpoint=folder / "checkpoint",
        progress=wait_at_the_end,
    ).save(folder / "model")
