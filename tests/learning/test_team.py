"""Two workers make the steps of one."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from dualrank.learning.checkpoint import read_checkpoint
from dualrank.learning.feedback import Batch
from dualrank.learning.team import Team

SCRIPT = Path(__file__).with_name("team_run.py")
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def run(folder, steps, *death, together=False):
    folder.mkdir(exist_ok=True)
    words = [*(TORCHRUN if together else []), SCRIPT, folder, steps, *death]
    return subprocess.run(
        [sys.executable, *map(str, words)], capture_output=True, text=True, timeout=300
    )


def learned(folder):
    with np.load(folder / "learned.npz") as held:
        return dict(held)


@pytest.mark.parametrize(("steps", "tolerance"), [(1, 1e-6), (60, 1e-4)])
def test_two_workers_learn_what_one_learns(tmp_path, steps, tolerance):
    run(tmp_path / "one", steps)
    run(tmp_path / "two", steps, together=True)
    one, two = learned(tmp_path / "one"), learned(tmp_path / "two")
    np.testing.assert_allclose(two["scores"], one["scores"], atol=tolerance)
    np.testing.assert_allclose(two["examination"], one["examination"], rtol=10 * tolerance)
    assert np.abs(one["scores"]).max() > 0


@pytest.mark.parametrize("dying", [0, 1])
def test_when_a_worker_dies_the_run_ends_with_a_word_and_goes_on_where_it_was(tmp_path, dying):
    """Whatever torchrun does to the survivor meanwhile: none of the usual checkpoints is due."""
    ended = run(tmp_path / "two", 60, 20, dying, together=True)
    assert ended.returncode != 0
    assert not (tmp_path / "two" / "learned.npz").exists()
    sentence = "another worker of this training has gone at step 20 of 60; the same command goes on"
    assert sentence in ended.stderr
    assert read_checkpoint(tmp_path / "two" / "checkpoint").values["step"] == 20
    # One process goes on with the checkpoint of two.
    run(tmp_path / "two", 60)
    run(tmp_path / "one", 60)
    one, two = learned(tmp_path / "one"), learned(tmp_path / "two")
    np.testing.assert_allclose(two["scores"], one["scores"], atol=1e-4)


def test_shares_of_a_batch_are_the_batch():
    batch = Batch(np.arange(14).reshape(7, 2), np.eye(7, 2, dtype=np.float32), 20, np.arange(7))
    shares = [Team(rank, 3).share(batch) for rank in range(3)]
    for name in ("documents", "labels", "contexts"):
        together = np.concatenate([getattr(share, name) for share in shares])
        whole = getattr(batch, name)
        assert sorted(together.tolist()) == sorted(whole.tolist())
    assert {share.drawn for share in shares} == {20}


def test_alone_nothing_is_copied_or_sent():
    batch = Batch(np.zeros((1, 2), np.int32), np.zeros((1, 2), np.float32), 1)
    tensors = [torch.ones(2)]
    assert Team().share(batch) is batch
    assert Team().sum(tensors) is tensors
    assert Team.current() == Team(0, 1)
