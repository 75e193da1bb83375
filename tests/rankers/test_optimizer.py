"""One model's side of a step: normalised, clipped, scheduled, and never a nan."""

import numpy as np
import pytest
import torch

from dualrank.rankers.optimizer import Optimizer
from dualrank.rankers.ranker import Step
from dualrank.settings import TrainingSettings


def make(values=(1.0, -2.0), rate=0.1, **settings):
    """Parameters, and the optimiser that moves them."""
    parameters = torch.tensor(values)
    options = {"schedule": "constant", "gradient_clip": 1e9, **settings}
    return parameters, Optimizer([parameters], rate, TrainingSettings(**options))


def step(optimizer, gradient, drawn=1, clicks=1.0, done=0.0):
    optimizer.move([torch.tensor(gradient)], Step(drawn, torch.tensor(clicks), done))


def test_sgd_moves_by_rate_times_gradient():
    values, optimizer = make()
    step(optimizer, [3.0, 5.0])
    assert values.tolist() == pytest.approx([1 - 0.3, -2 - 0.5])


def test_the_loss_is_divided_by_the_sessions_drawn():
    values, optimizer = make(normalisation="sessions")
    step(optimizer, [3.0, 5.0], drawn=10, clicks=7.0)
    assert values.tolist() == pytest.approx([1 - 0.03, -2 - 0.05])


def test_or_by_the_sum_of_weighted_clicks():
    values, optimizer = make(normalisation="clicks")
    step(optimizer, [3.0, 5.0], drawn=10, clicks=7.0)
    assert values.tolist() == pytest.approx([1 - 0.3 / 7, -2 - 0.5 / 7])


def test_adagrad_starts_its_accumulator_at_a_tenth():
    values, optimizer = make(optimizer="adagrad", rate=0.5)
    step(optimizer, [3.0, 1e-4])
    expected = [1 - 0.5 * 3 / np.sqrt(0.1 + 9), -2 - 0.5 * 1e-4 / np.sqrt(0.1)]
    assert values.tolist() == pytest.approx(expected, rel=1e-6)


def test_adagrad_remembers_past_gradients():
    values, optimizer = make(values=(0.0,), optimizer="adagrad", rate=1.0)
    step(optimizer, [2.0])
    before = values.item()
    step(optimizer, [2.0])
    assert before - values.item() == pytest.approx(2 / np.sqrt(0.1 + 4 + 4), rel=1e-6)


def test_a_long_gradient_is_clipped_to_its_norm():
    values, optimizer = make(values=(0.0, 0.0), gradient_clip=5.0)
    step(optimizer, [30.0, 40.0])
    assert values.tolist() == pytest.approx([-0.3, -0.4], rel=1e-4)


def test_a_short_gradient_is_not_clipped():
    values, optimizer = make(values=(0.0, 0.0), gradient_clip=5.0)
    step(optimizer, [0.3, 0.4])
    assert values.tolist() == pytest.approx([-0.03, -0.04])


@pytest.mark.parametrize("kind", ["sgd", "adagrad"])
def test_several_tensors_are_clipped_by_their_common_norm(kind):
    settings = TrainingSettings(optimizer=kind, gradient_clip=5.0, schedule="constant")
    parts = [torch.zeros(1), torch.zeros(1, 1)]
    Optimizer(parts, 0.1, settings).move(
        [torch.tensor([30.0]), torch.tensor([[40.0]])], Step(1, torch.tensor(1.0))
    )
    clipped = np.array([3.0, 4.0])
    expected = 0.1 * (clipped if kind == "sgd" else clipped / np.sqrt(0.1 + clipped**2))
    assert [-float(part) for part in parts] == pytest.approx(expected.tolist(), rel=1e-5)


@pytest.mark.parametrize("kind", ["sgd", "adagrad"])
def test_steps_are_those_of_torch(kind):
    """Over several steps with weight decay on a matrix, in float64."""
    generator = torch.Generator().manual_seed(0)
    ours = torch.randn(4, 3, dtype=torch.float64, generator=generator)
    theirs = ours.clone().requires_grad_()
    settings = TrainingSettings(
        optimizer=kind, weight_decay=0.01, schedule="constant", gradient_clip=1e9
    )
    optimizer = Optimizer([ours], 0.3, settings)
    peer = (
        torch.optim.SGD([theirs], lr=0.3, weight_decay=0.01)
        if kind == "sgd"
        else torch.optim.Adagrad(
            [theirs], lr=0.3, weight_decay=0.01, initial_accumulator_value=0.1, eps=0
        )
    )
    for _ in range(5):
        gradient = torch.randn(4, 3, dtype=torch.float64, generator=generator)
        theirs.grad = gradient / 8
        peer.step()
        optimizer.move([gradient], Step(8, torch.tensor(1.0)))
    torch.testing.assert_close(ours, theirs.detach(), rtol=1e-10, atol=1e-12)


def test_weight_decay_shrinks_matrices_and_leaves_vectors_alone():
    """Biases need none, and the examination curve must not be pulled towards the uniform one."""
    values, optimizer = make(weight_decay=0.5)
    before = values.tolist()
    step(optimizer, [0.0, 0.0])
    assert values.tolist() == before
    matrix, optimizer = make(((2.0,), (2.0,)), weight_decay=0.5)
    step(optimizer, [[0.0], [0.0]])
    assert matrix[:, 0].tolist() == pytest.approx([1.9, 1.9])


@pytest.mark.parametrize("kind", ["sgd", "adagrad"])
@pytest.mark.parametrize("poison", [float("nan"), float("inf"), -float("inf"), 3e38])
def test_a_step_whose_gradient_is_not_finite_is_left_out_and_counted(kind, poison):
    values, optimizer = make(optimizer=kind)
    step(optimizer, [1.0, 1.0])
    held = {name: tensor.clone() for name, tensor in optimizer.state().items()}
    step(optimizer, [poison, 3e38])
    assert optimizer.left_out == 1
    now = optimizer.state()
    assert all(torch.equal(held[name], now[name]) for name in held if name != "left_out")
    step(optimizer, [1.0, 1.0])
    assert optimizer.left_out == 1
    assert torch.isfinite(values).all()
    assert not torch.equal(held["parameter.0"], optimizer.state()["parameter.0"])


def test_the_linear_schedule_falls_to_zero():
    values, optimizer = make(values=(0.0,), schedule="linear")
    moves = []
    for done in (0.0, 0.25, 0.5, 1.0):
        before = values.item()
        step(optimizer, [1.0], done=done)
        moves.append(before - values.item())
    assert moves == pytest.approx([0.1, 0.075, 0.05, 0.0], abs=1e-7)


def test_the_constant_schedule_stays():
    values, optimizer = make(values=(0.0,), schedule="constant")
    step(optimizer, [1.0], done=1.0)
    assert values.item() == pytest.approx(-0.1)


@pytest.mark.parametrize("kind", ["sgd", "adagrad"])
def test_loaded_state_continues_with_the_same_bytes(kind):
    values, optimizer = make(optimizer=kind)
    others, other = make(values=(9.0, 9.0), optimizer=kind)
    step(optimizer, [3.0, 5.0])
    step(optimizer, [float("nan"), 5.0])
    other.load_state({name: tensor.clone() for name, tensor in optimizer.state().items()})
    assert other.left_out == 1
    for _ in range(3):
        step(optimizer, [0.7, -1.3])
        step(other, [0.7, -1.3])
    assert torch.equal(values, others)
