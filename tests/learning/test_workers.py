"""Two workers make the steps of one."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from dualrank.learning.checkpoint import read_checkpoint
from dualrank.learning.workers import Workers
from dualrank.rankers.batch import Batch

SCRIPT = Path(__file__).with_name("workers_run.py")
STEPS = 60
sys.path.insert(0, str(SCRIPT.parent))
from workers_run import learn  # noqa: E402


def run_two(folder, *words):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "2", str(SCRIPT), str(folder), str(STEPS), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def alone():
    """What one process learns."""
    return learn(STEPS)


def test_two_workers_with_half_the_batch_make_the_steps_of_one(tmp_path, alone):
    run_two(tmp_path)
    for name, one, tolerance in (("first", learn(1), 1e-6), ("learned", alone, 1e-4)):
        with np.load(tmp_path / f"{name}.npz") as two:
            np.testing.assert_allclose(two["scores"], one["scores"], atol=tolerance)
            np.testing.assert_allclose(two["examination"], one["examination"], rtol=10 * tolerance)
        assert np.abs(one["scores"]).max() > 0


def test_when_the_first_worker_dies_the_run_ends_with_a_word_and_goes_on_where_it_was(
    tmp_path, alone
):
    """Whatever torchrun does to the survivor meanwhile: none of the usual checkpoints is due."""
    ended = run_two(tmp_path, 20, 0)
    assert ended.returncode != 0
    assert not (tmp_path / "learned.npz").exists()
    assert "another worker of this training has gone at step 20 of 60;" in ended.stderr
    assert "; the same training goes on at 20" in ended.stderr
    assert read_checkpoint(tmp_path / "checkpoint").values["step"] == 20
    # One process goes on with the checkpoint of two.
    went_on = learn(STEPS, tmp_path / "checkpoint")
    np.testing.assert_allclose(went_on["scores"], alone["scores"], atol=1e-4)


@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_shares_of_a_batch_are_the_batch(size):
    labels = np.eye(7, 2, dtype=np.float32)
    batch = Batch(np.arange(14).reshape(7, 2), labels, 20, np.arange(7), np.arange(7, 14))
    shares = [batch.share(worker, size) for worker in range(size)]
    for name in ("documents", "labels", "contexts", "queries"):
        joined = np.concatenate([getattr(share, name) for share in shares])
        whole = getattr(batch, name)
        assert sorted(joined.tolist()) == sorted(whole.tolist())
    assert {share.drawn for share in shares} == {20}


def test_alone_nothing_is_copied_or_sent():
    batch = Batch(np.zeros((1, 2), np.int32), np.zeros((1, 2), np.float32), 1)
    tensors = [torch.ones(2)]
    assert batch.share(0, 1) is batch
    assert Workers().sum(tensors) is tensors
    assert Workers.current() == Workers(0, 1)
    assert Workers().any(True)
    assert not Workers().any(False)
