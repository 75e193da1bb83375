"""Train a tiny problem, alone or by torchrun: `workers_run.py FOLDER [DIES_AT WHO]`."""

import os
import sys
from pathlib import Path

import numpy as np
import torch

from dualrank.cli.terminal import leaving_on_sigterm
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.dataset import Dataset
from dualrank.data.lists import top_lists
from dualrank.errors import StoppedError
from dualrank.learning.fit import fit
from dualrank.learning.workers import workers_of_torchrun
from dualrank.rankers.network import DNN
from dualrank.settings import TrainingSettings

STEPS = 60


def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 4)).astype(np.float32)
    data = Dataset.from_arrays(X, np.repeat(np.arange(40), 6), (X[:, 0] > 0) * 2, max_grade=2)
    log = sample_log(data, top_lists(data, rng.normal(size=240), 5), PositionBasedUser(), 4_000, 1)
    return log, data


def learn(steps, checkpoint=None, progress=None):
    """The scores and the curve after so many steps; no checkpoint is due before the last one."""
    log, data = problem()
    settings = TrainingSettings(
        steps=steps,
        batch_size=33,
        checkpoint_every=1_000,
        validate_every=20,
        normalisation="clicks",
        device="cpu",
    )
    model = fit(
        log, data, ranker=DNN((3,)), settings=settings, checkpoint=checkpoint, progress=progress
    )
    return {"scores": model.predict(data), "examination": model.propensity.examination}


def work(folder, learn, dies_at=0, dying=1, sample=None):
    """Train as one of two workers, and write what was learned; `dying` dies at step `dies_at`."""
    torch.set_num_threads(1)
    with workers_of_torchrun() as workers:

        def progress(done, _):
            if done == dies_at and workers.number == dying:
                os._exit(9)

        try:
            with leaving_on_sigterm(progress) as report:
                learned = learn(STEPS, folder / "checkpoint", report)
            first = learn(1)
        except StoppedError as error:
            (folder / "stopped").write_text(str(error))
            os._exit(143)
        if workers.leads:
            np.savez(folder / "learned.npz", **learned)
            np.savez(folder / "first.npz", **first)
        if sample is not None:
            np.savez(folder / f"sample-{workers.number}.npz", **sample())


if __name__ == "__main__":
    work(Path(sys.argv[1]), learn, *map(int, sys.argv[2:]))
