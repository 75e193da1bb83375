"""A run that is interrupted and resumed ends with the same bytes as one that was not."""

import hashlib
import math
import random
import signal
import time
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from dualrank.corrections.dual import DualLearning
from dualrank.corrections.likelihood import Likelihood
from dualrank.corrections.naive import Naive
from dualrank.corrections.position_models import (
    ContextualPositions,
    PositionNetwork,
    PositionVariables,
    RecurrentPositions,
)
from dualrank.errors import CheckpointError, StoppedError
from dualrank.learning.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from dualrank.learning.feedback import SimulatedClicks
from dualrank.learning.loop import Loop
from dualrank.rankers.network import DNN
from dualrank.settings import TrainingSettings

from ..forks import FORKS
from ..waiting import wait_until
from .killed_run import SETTINGS as KILLED_SETTINGS
from .killed_run import train

STEPS = 9
POSITION_MODELS = {
    "dla": PositionVariables,
    "network": PositionNetwork,
    "recurrent": RecurrentPositions,
    "contextual": lambda depth: ContextualPositions(depth, {"phone": 9, "desk": 1}),
}
SETTINGS = TrainingSettings(steps=STEPS, batch_size=16, validate_every=2, checkpoint_every=1)


class PowerCutError(Exception):
    pass


class Interrupted:
    """Feedback that works for some draws, and then the lights go out."""

    contextual = False

    def __init__(self, source, draws, poisoned=False):
        self.lists, self._source = source.lists, source
        self._left, self._poisoned = draws, poisoned

    def draw(self, size, rng):
        if self._left == 0:
            raise PowerCutError
        self._left -= 1
        batch = self._source.draw(size, rng)
        if self.contextual:
            batch = replace(batch, contexts=batch.documents[:, 0] % 2)
        if self._poisoned:
            batch.labels[batch.labels > 0] = np.inf
        return batch


class UpAndDown:
    """Some value that goes up and down, so that the best ranker is not the last."""

    def measuring(self, ranker):
        return lambda: [math.cos(100 * ranker.weights[0].sum().item())]

    def value(self, measured):
        return measured[0]


@pytest.fixture
def make_loop(dataset, lists, user):
    def make(method, settings, draws=-1, poisoned=False):
        correction = {
            "naive": Naive,
            "likelihood": lambda: Likelihood(lists.depth, settings),
        }.get(
            method,
            lambda: DualLearning(lists.depth, settings, POSITION_MODELS[method](lists.depth)),
        )()
        feedback = Interrupted(SimulatedClicks(dataset, lists, user), draws, poisoned)
        feedback.contextual = method == "contextual"
        return Loop(
            DNN((4,)).build(dataset.feature_count, settings.seed),
            torch.from_numpy(dataset.features),
            feedback,
            correction,
            settings,
            validation=UpAndDown(),
        )

    return make


def outcome(loop):
    tensors = {**loop.ranker.tensors(), **loop.correction.state()}
    return {name: t.numpy().tobytes() for name, t in tensors.items()}, asdict(loop.history)


@pytest.mark.parametrize(
    ("every", "optimizer", "method"),
    [
        *[(1, "adagrad", method) for method in ("naive", "likelihood", *POSITION_MODELS)],
        *[(every, "sgd", method) for every in (1, 4) for method in ("naive", "likelihood", "dla")],
    ],
)
def test_a_run_resumed_at_any_step_gives_the_same_bytes(
    make_loop, tmp_path, method, optimizer, every
):
    settings = replace(SETTINGS, optimizer=optimizer, checkpoint_every=every)
    whole = make_loop(method, settings)
    whole.run(checkpoint=tmp_path / "whole")
    for step in range(STEPS):
        path = tmp_path / f"cut-{step}"
        with pytest.raises(PowerCutError):
            make_loop(method, settings, draws=step).run(checkpoint=path)
        assert path.exists() == (step >= every)
        resumed = make_loop(method, settings)
        resumed.run(checkpoint=path)
        assert outcome(resumed) == outcome(whole)
        left, right = read_checkpoint(path), read_checkpoint(tmp_path / "whole")
        assert left.values == right.values
        assert left.tensors.keys() == right.tensors.keys()
        assert all(torch.equal(left.tensors[k], right.tensors[k]) for k in left.tensors)


def test_a_run_cut_at_every_single_step_gives_the_same_bytes(make_loop, tmp_path):
    whole = make_loop("dla", SETTINGS)
    whole.run()
    for _ in range(STEPS - 1):
        with pytest.raises(PowerCutError):
            make_loop("dla", SETTINGS, draws=1).run(checkpoint=tmp_path / "cut")
    make_loop("dla", SETTINGS, draws=1).run(checkpoint=tmp_path / "cut")
    resumed = make_loop("dla", SETTINGS, draws=0)
    resumed.run(checkpoint=tmp_path / "cut")
    assert outcome(resumed) == outcome(whole)


def test_steps_left_out_before_the_cut_are_still_counted(make_loop, tmp_path):
    with pytest.raises(PowerCutError):
        make_loop("dla", SETTINGS, draws=3, poisoned=True).run(checkpoint=tmp_path / "cut")
    history = make_loop("dla", SETTINGS).run(checkpoint=tmp_path / "cut")
    assert history.left_out == 6


def test_checkpoints_do_not_change_the_run(make_loop, tmp_path):
    without, with_checkpoints = (make_loop("dla", SETTINGS) for _ in range(2))
    without.run()
    with_checkpoints.run(checkpoint=tmp_path / "checkpoint")
    assert outcome(without) == outcome(with_checkpoints)


def test_a_checkpoint_of_another_run_is_refused_and_the_difference_named(make_loop, tmp_path):
    path = tmp_path / "checkpoint"
    first = {"settings": {"learning_rate": 0.2, "seed": 0, "batch_size": 16}, "data": "abc"}
    make_loop("dla", SETTINGS).run(checkpoint=path, identity=first)
    before = path.read_bytes()
    other = {"settings": {**first["settings"], "learning_rate": 0.5}, "data": "abc"}
    with pytest.raises(
        CheckpointError,
        match=r"checkpoint: belongs to another run: settings\.learning_rate was 0\.2 and is 0\.5;",
    ):
        make_loop("dla", SETTINGS).run(checkpoint=path, identity=other)
    with pytest.raises(CheckpointError, match="run: data was 'abc' and is 'def'; delete it or"):
        make_loop("dla", SETTINGS).run(checkpoint=path, identity={**first, "data": "def"})
    with pytest.raises(CheckpointError, match="data was 'abc' and is None"):
        make_loop("dla", SETTINGS).run(checkpoint=path)
    assert path.read_bytes() == before


def digest(folder):
    """One hash over all files of the model."""
    joint = hashlib.sha256()
    for path in sorted((folder / "model").iterdir()):
        joint.update(path.name.encode() + path.read_bytes())
    return joint.hexdigest()


def version(path):
    """A number that changes whenever the file is replaced."""
    return path.stat().st_mtime_ns if path.exists() else 0


@pytest.mark.slow
def test_a_run_killed_six_times_at_random_moments_ends_with_the_same_hash(tmp_path):
    """Each attempt is a process of its own, killed by SIGKILL but for the last."""
    rng, kills = random.Random(1), 6
    whole = FORKS.Process(target=train, args=(tmp_path / "whole",))
    whole.start()
    wait_until((tmp_path / "whole" / "checkpoint").exists, pause=0.001)
    started = time.perf_counter()
    whole.join()
    assert whole.exitcode == 0
    duration = time.perf_counter() - started
    folder, steps = tmp_path / "killed", []
    for kill in range(kills):
        # However slow or fast this machine is just now, no attempt comes to the end.
        last_step = KILLED_SETTINGS.steps // (kills + 1) * (kill + 1)
        before = version(folder / "checkpoint")
        attempt = FORKS.Process(target=train, args=(folder, last_step), daemon=True)
        attempt.start()
        wait_until(lambda: version(folder / "checkpoint") != before, pause=0.001)  # noqa: B023
        time.sleep(rng.uniform(0, duration / kills))
        attempt.kill()
        attempt.join()
        assert attempt.exitcode == -signal.SIGKILL
        steps.append(read_checkpoint(folder / "checkpoint").values["step"])
    last = FORKS.Process(target=train, args=(folder,))
    last.start()
    last.join()
    assert digest(folder) == digest(tmp_path / "whole")
    assert steps == sorted(set(steps)), "a process made no progress before it was killed"


@pytest.mark.parametrize("method", ["dla", "naive"])
def test_a_run_that_is_asked_to_stop_saves_the_step_it_has_done(make_loop, tmp_path, method):
    settings = replace(SETTINGS, steps=25, checkpoint_every=100)
    whole = make_loop(method, settings)
    whole.run()

    def leave(done, total):
        if done == 10:
            raise StoppedError(f"{done} of {total}")

    path = tmp_path / "checkpoint"
    with pytest.raises(StoppedError, match="10 of 25"):
        make_loop(method, settings).run(checkpoint=path, progress=leave)
    assert read_checkpoint(path).values["step"] == 10
    resumed = make_loop(method, settings)
    resumed.run(checkpoint=path)
    assert outcome(resumed) == outcome(whole)


@pytest.mark.parametrize("identity", ["a run", None, [1]])
def test_a_checkpoint_that_says_nothing_of_its_run_is_refused(make_loop, tmp_path, identity):
    path = tmp_path / "checkpoint"
    make_loop("dla", SETTINGS).run(checkpoint=path, identity={"data": "abc"})
    saved = read_checkpoint(path)
    write_checkpoint(path, Checkpoint(saved.tensors, saved.values | {"identity": identity}))
    with pytest.raises(CheckpointError, match="checkpoint: does not hold what this training"):
        make_loop("dla", SETTINGS).run(checkpoint=path, identity={"data": "abc"})


@pytest.mark.parametrize("step", [-1, 10**9, True, "3", None])
def test_a_checkpoint_of_a_step_that_is_none_is_refused(make_loop, tmp_path, step):
    path = tmp_path / "checkpoint"
    make_loop("dla", SETTINGS).run(checkpoint=path)
    saved = read_checkpoint(path)
    write_checkpoint(path, Checkpoint(saved.tensors, saved.values | {"step": step}))
    with pytest.raises(CheckpointError, match=r"checkpoint: does not hold .* was left after step"):
        make_loop("dla", SETTINGS).run(checkpoint=path)


@pytest.mark.parametrize("group", ["best", "ranker", "correction"])
def test_a_checkpoint_whose_parts_do_not_fit_is_refused_before_training(make_loop, tmp_path, group):
    path = tmp_path / "checkpoint"
    make_loop("dla", SETTINGS).run(checkpoint=path)
    saved = read_checkpoint(path)
    shown = saved.group(group) or saved.group("ranker")
    torn = {f"{group}.{name}": torch.zeros(7, 7) for name in shown}
    write_checkpoint(path, Checkpoint(saved.tensors | torn, saved.values))
    with pytest.raises(CheckpointError, match="checkpoint: does not hold what this training"):
        make_loop("dla", SETTINGS).run(checkpoint=path)
