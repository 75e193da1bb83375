"""One model's side of a step: normalised, clipped, scheduled, and never a nan."""

import numpy as np
import pytest
import torch
from torch import nn

from dualrank.rankers.optimizer import Optimizer
from dualrank.settings import TrainingSettings


class Point(nn.Module):
    """A model that is nothing but its parameters."""

    def __init__(self, values):
        super().__init__()
        self.values = nn.Parameter(torch.tensor(values))


def make(values=(1.0, -2.0), rate=0.1, **settings):
    model = Point(values)
    options = {"schedule": "constant", "gradient_clip": 1e9, **settings}
    return model, Optimizer(model, rate, TrainingSettings(**options))


def step(model, optimizer, gradient, drawn=1, weighted_labels=(1.0,)):
    loss = (model.values * torch.tensor(gradient)).sum()
    optimizer.move(optimizer.gradients(loss), drawn, torch.tensor(weighted_labels).sum())


def test_sgd_moves_by_rate_times_gradient():
    model, optimizer = make()
    step(model, optimizer, [3.0, 5.0])
    assert model.values.tolist() == pytest.approx([1 - 0.3, -2 - 0.5])


def test_the_loss_is_divided_by_the_sessions_drawn():
    model, optimizer = make(normalisation="sessions")
    step(model, optimizer, [3.0, 5.0], drawn=10, weighted_labels=[2.0, 5.0])
    assert model.values.tolist() == pytest.approx([1 - 0.03, -2 - 0.05])


def test_or_by_the_sum_of_weighted_clicks():
    model, optimizer = make(normalisation="clicks")
    step(model, optimizer, [3.0, 5.0], drawn=10, weighted_labels=[2.0, 5.0])
    assert model.values.tolist() == pytest.approx([1 - 0.3 / 7, -2 - 0.5 / 7])


def test_adagrad_starts_its_accumulator_at_a_tenth():
    model, optimizer = make(optimizer="adagrad", rate=0.5)
    step(model, optimizer, [3.0, 1e-4])
    expected = [1 - 0.5 * 3 / np.sqrt(0.1 + 9), -2 - 0.5 * 1e-4 / np.sqrt(0.1)]
    assert model.values.tolist() == pytest.approx(expected, rel=1e-6)


def test_adagrad_remembers_past_gradients():
    model, optimizer = make(values=(0.0,), optimizer="adagrad", rate=1.0)
    step(model, optimizer, [2.0])
    before = model.values.item()
    step(model, optimizer, [2.0])
    assert before - model.values.item() == pytest.approx(2 / np.sqrt(0.1 + 4 + 4), rel=1e-6)


def test_a_long_gradient_is_clipped_to_its_norm():
    model, optimizer = make(values=(0.0, 0.0), gradient_clip=5.0)
    step(model, optimizer, [30.0, 40.0])
    assert model.values.tolist() == pytest.approx([-0.3, -0.4], rel=1e-4)


def test_a_short_gradient_is_not_clipped():
    model, optimizer = make(values=(0.0, 0.0), gradient_clip=5.0)
    step(model, optimizer, [0.3, 0.4])
    assert model.values.tolist() == pytest.approx([-0.03, -0.04])


def test_weight_decay_shrinks_matrices_and_leaves_vectors_alone():
    """Biases need none, and the examination curve must not be pulled towards the uniform one."""
    model, optimizer = make(weight_decay=0.5)
    before = model.values.tolist()
    step(model, optimizer, [0.0, 0.0])
    assert model.values.tolist() == before
    layer = torch.nn.Linear(1, 2)
    torch.nn.init.constant_(layer.weight, 2.0)
    settings = TrainingSettings(weight_decay=0.5, schedule="constant")
    optimizer = Optimizer(layer, 0.1, settings)
    gradients = optimizer.gradients(0 * layer(torch.ones(1, 1)).sum())
    optimizer.move(gradients, 1, torch.tensor(1.0))
    assert layer.weight[:, 0].tolist() == pytest.approx([1.9, 1.9])


@pytest.mark.parametrize("kind", ["sgd", "adagrad"])
@pytest.mark.parametrize("poison", [float("nan"), float("inf"), -float("inf"), 3e38])
def test_a_step_whose_gradient_is_not_finite_is_left_out_and_counted(kind, poison):
    model, optimizer = make(optimizer=kind)
    step(model, optimizer, [1.0, 1.0])
    held = {name: tensor.clone() for name, tensor in optimizer.state().items()}
    step(model, optimizer, [poison, 3e38])
    assert optimizer.left_out == 1
    assert all(torch.equal(held[name], tensor) for name, tensor in optimizer.state().items())
    step(model, optimizer, [1.0, 1.0])
    assert optimizer.left_out == 1
    assert torch.isfinite(model.values).all()
    assert not all(torch.equal(held[name], tensor) for name, tensor in optimizer.state().items())


def test_the_linear_schedule_falls_to_zero():
    model, optimizer = make(values=(0.0,), schedule="linear")
    moves = []
    for done in (0.0, 0.25, 0.5, 1.0):
        before = model.values.item()
        optimizer.set_progress(done)
        step(model, optimizer, [1.0])
        moves.append(before - model.values.item())
    assert moves == pytest.approx([0.1, 0.075, 0.05, 0.0], abs=1e-7)


def test_the_constant_schedule_stays():
    model, optimizer = make(values=(0.0,), schedule="constant")
    optimizer.set_progress(1.0)
    step(model, optimizer, [1.0])
    assert model.values.item() == pytest.approx(-0.1)


@pytest.mark.parametrize("kind", ["sgd", "adagrad"])
def test_loaded_state_continues_with_the_same_bytes(kind):
    model, optimizer = make(optimizer=kind)
    other_model, other = make(values=(9.0, 9.0), optimizer=kind)
    step(model, optimizer, [3.0, 5.0])
    other.load_state({name: tensor.clone() for name, tensor in optimizer.state().items()})
    for _ in range(3):
        step(model, optimizer, [0.7, -1.3])
        step(other_model, other, [0.7, -1.3])
    assert torch.equal(model.values, other_model.values)
