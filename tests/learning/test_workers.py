"""Two workers make the steps of one."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist

from dualrank.learning.checkpoint import read_checkpoint
from dualrank.learning.workers import Workers
from dualrank.rankers.batch import Batch

from ..forks import FORKS
from .workers_run import STEPS, learn, work

SCRIPT = Path(__file__).with_name("workers_run.py")


def work_in_fork(environment, *arguments):
    os.environ.update(environment)
    work(*arguments)


def fork_two(*arguments):
    """Return the exit codes of two workers; as torchrun does, this process holds their store."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port), "WORLD_SIZE": "2"}
    shared["TORCHELASTIC_USE_AGENT_STORE"] = "True"
    ranks = [{**shared, "RANK": str(rank)} for rank in range(2)]
    workers = [
        FORKS.Process(target=work_in_fork, args=(rank, *arguments), daemon=True) for rank in ranks
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return [worker.exitcode for worker in workers]


@pytest.fixture(scope="module")
def alone():
    """What one process learns."""
    return learn(STEPS)


@pytest.mark.slow
def test_two_workers_with_half_the_batch_make_the_steps_of_one(tmp_path, alone):
    assert fork_two(tmp_path, learn) == [0, 0]
    for name, one, tolerance in (("first", learn(1), 1e-6), ("learned", alone, 1e-4)):
        with np.load(tmp_path / f"{name}.npz") as two:
            np.testing.assert_allclose(two["scores"], one["scores"], atol=tolerance)
            np.testing.assert_allclose(two["examination"], one["examination"], rtol=10 * tolerance)
        assert np.abs(one["scores"]).max() > 0


@pytest.mark.slow
def test_when_the_first_worker_dies_the_run_ends_with_a_word_and_goes_on_where_it_was(
    tmp_path, alone
):
    """Whatever torchrun does to the survivor meanwhile: none of the usual checkpoints is due."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "2", str(SCRIPT), str(tmp_path), "20", "0"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert not (tmp_path / "learned.npz").exists()
    message = (tmp_path / "stopped").read_text()
    assert "another worker of this training has gone at step 20 of 60;" in message
    assert "; the same training goes on at 20" in message
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
