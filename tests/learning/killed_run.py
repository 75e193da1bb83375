"""Train a tiny problem while killing it: `killed_run.py FOLDER KILLS`.

Prints the sha256 of the model of a run that was never killed, that of the killed one, and the
steps that its checkpoint had reached at each kill. Every attempt is a process of its own, forked
from one that has imported everything and made the data, which would take most of the time; the
last one, which finishes the training, starts from nothing.
"""

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import torch

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.dataset import Dataset
from dualrank.data.lists import top_lists
from dualrank.learning.checkpoint import read_checkpoint
from dualrank.learning.fit import fit
from dualrank.rankers.network import DNN
from dualrank.settings import TrainingSettings

SETTINGS = TrainingSettings(
    steps=210, batch_size=8, optimizer="adagrad", checkpoint_every=1, validate_every=7
)


@cache
def problem():
    """A log over twenty queries."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)).astype(np.float32)
    data = Dataset.from_arrays(X, np.repeat(np.arange(20), 6), (X[:, 0] > 0) * 2, max_grade=2)
    lists = top_lists(data, rng.normal(size=120), 5)
    return sample_log(data, lists, PositionBasedUser(), 2_000, rng), data


def train(folder, checkpoint, last_step=None):
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
        checkpoint=checkpoint,
        progress=wait_at_the_end,
    ).save(folder)


def digest(folder):
    """One hash over all files of the model."""
    joint = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        joint.update(path.name.encode() + path.read_bytes())
    return joint.hexdigest()


def in_a_fork(work, *arguments):
    """The process id of a child that does the work."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work(*arguments)
            status = 0
        finally:
            os._exit(status)
    return child


def kill_after(child, delay, checkpoint):
    """Wait until the child has gone on at all, then for some time more, and kill it."""
    before = version(checkpoint)
    while version(checkpoint) == before:
        time.sleep(0.001)
        if os.waitpid(child, os.WNOHANG) != (0, 0):
            raise SystemExit("the training ended before it could be killed")
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        raise SystemExit("the training ended before it could be killed")
    return read_checkpoint(checkpoint).values["step"]


def version(path):
    """Changes whenever the file is replaced."""
    return path.stat().st_mtime_ns if path.exists() else 0


def main(folder, kills):
    torch.set_num_threads(1)
    rng = random.Random(1)
    problem()
    started = time.perf_counter()
    child = in_a_fork(train, folder / "never-killed", folder / "never-killed.safetensors")
    if os.waitpid(child, 0)[1] != 0:
        raise SystemExit("the run that was never killed failed")
    whole = time.perf_counter() - started
    checkpoint, steps = folder / "checkpoint.safetensors", []
    for kill in range(kills):
        # However slow or fast this machine is just now, no attempt comes to the end.
        last_step = SETTINGS.steps // (kills + 1) * (kill + 1)
        child = in_a_fork(train, folder / "killed", checkpoint, last_step)
        steps.append(kill_after(child, rng.uniform(0, whole / kills), checkpoint))
    subprocess.run([sys.executable, __file__, folder], check=True)
    print(digest(folder / "never-killed"), digest(folder / "killed"), *steps)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        train(Path(sys.argv[1]) / "killed", Path(sys.argv[1]) / "checkpoint.safetensors")
    else:
        main(Path(sys.argv[1]), int(sys.argv[2]))
