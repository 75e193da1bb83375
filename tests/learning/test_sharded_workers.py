"""Workers with shards of their own make the steps of one that has them all."""

from functools import partial

import numpy as np
import pytest

from dualrank.learning.checkpoint import read_checkpoint

from .sharded_run import learn, sampled, write_problem
from .test_workers import fork_two
from .workers_run import STEPS


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one process learns."""
    folder = tmp_path_factory.mktemp("alone")
    write_problem(folder / "log")
    return {"first": learn(folder, 1), "learned": learn(folder, STEPS), "sample": sampled(folder)}


@pytest.mark.slow
def test_two_workers_with_shards_of_their_own_make_the_steps_of_one(tmp_path, alone):
    write_problem(tmp_path / "log")
    done = fork_two(tmp_path, partial(learn, tmp_path), 0, 0, partial(sampled, tmp_path))
    assert done == [0, 0]
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
    write_problem(tmp_path / "log")
    assert fork_two(tmp_path, partial(learn, tmp_path), 20, 1) == [143, 9]
    assert not (tmp_path / "learned.npz").exists()
    message = (tmp_path / "stopped").read_text()
    assert "another worker of this training has gone at step 20 of 60;" in message
    assert "; the same training goes on at 20" in message
    assert read_checkpoint(tmp_path / "checkpoint").values["step"] == 20
    went_on = learn(tmp_path, STEPS, tmp_path / "checkpoint")
    np.testing.assert_allclose(went_on["scores"], alone["learned"]["scores"], atol=1e-4)
