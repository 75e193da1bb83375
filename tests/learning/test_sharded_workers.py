"""Workers with shards of their own make the steps of one that has them all."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dualrank.learning.checkpoint import read_checkpoint

SCRIPT = Path(__file__).with_name("sharded_run.py")
STEPS = 60
sys.path.insert(0, str(SCRIPT.parent))
from sharded_run import learn, sampled, write_problem  # noqa: E402


def run_two(folder, *words):
    write_problem(folder / "log")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "2", str(SCRIPT), str(folder), str(STEPS), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one process learns."""
    folder = tmp_path_factory.mktemp("alone")
    write_problem(folder / "log")
    return {"first": learn(folder, 1), "learned": learn(folder, STEPS), "sample": sampled(folder)}


def test_two_workers_with_shards_of_their_own_make_the_steps_of_one(tmp_path, alone):
    ended = run_two(tmp_path)
    assert ended.returncode == 0, ended.stderr
    for name, tolerance in (("first", 1e-6), ("learned", 1e-4)):
        one = alone[name]
        with np.load(tmp_path / f"{name}.npz") as two:
            np.testing.assert_allclose(two["scores"], one["scores"], atol=tolerance)
            np.testing.assert_allclose(two["examination"], one["examination"], rtol=10 * tolerance)
        assert np.abs(one["scores"]).max() > 0
    # Everybody holds the sample that one would hold, and the same scaling, to the bit.
    for worker in (0, 1):
        with np.load(tmp_path / f"sample-{worker}.npz") as held:
            for name, array in alone["sample"].items():
                np.testing.assert_array_equal(held[name], array)


def test_when_the_second_worker_dies_one_goes_on_with_all_of_its_shards(tmp_path, alone):
    ended = run_two(tmp_path, 20, 1)
    assert ended.returncode != 0
    assert not (tmp_path / "learned.npz").exists()
    assert "another worker of this training has gone at step 20 of 60;" in ended.stderr
    assert "; the same training goes on at 20" in ended.stderr
    assert read_checkpoint(tmp_path / "checkpoint").values["step"] == 20
    went_on = learn(tmp_path, STEPS, tmp_path / "checkpoint")
    np.testing.assert_allclose(went_on["scores"], alone["learned"]["scores"], atol=1e-4)
