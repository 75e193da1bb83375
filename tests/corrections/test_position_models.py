"""Models of positions: one interface, an even start, and gradients that are those of autograd."""

import math

import numpy as np
import pytest
import torch

from dualrank.corrections.position_models import (
    ContextualPositions,
    PositionNetwork,
    PositionVariables,
    RecurrentPositions,
)

DEPTH = 5
SESSIONS = {"phone": 900, "desk": 90, "watch": 10}
MODELS = {
    "variables": lambda: PositionVariables(DEPTH),
    "network": lambda: PositionNetwork(DEPTH, seed=3),
    "recurrent": lambda: RecurrentPositions(DEPTH, seed=3),
    "contextual": lambda: ContextualPositions(DEPTH, SESSIONS, "device"),
}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]()


def randomise(model, seed=1):
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.3, generator=generator)
    return model


def test_every_position_is_thought_equally_likely_at_the_start(model):
    assert not model().any()
    assert (model.examination() == 1).all()
    assert model.propensity().examination.tolist() == [1] * DEPTH


def test_the_table_has_a_row_per_context_and_a_column_per_position(model):
    contexts = len(SESSIONS) if isinstance(model, ContextualPositions) else 1
    assert model().shape == (contexts, DEPTH)
    assert model.examination().shape == (contexts, DEPTH)


def test_the_learned_curve_is_relative_to_the_first_position(model):
    table = randomise(model)().detach().double().numpy()
    np.testing.assert_allclose(model.examination(), np.exp(table - table[:, :1]))
    propensity = model.propensity()
    assert propensity.method == "dual learning"
    assert propensity.examination[0] == pytest.approx(1)
    assert propensity.depth == DEPTH


def test_gradients_are_those_of_autograd(model):
    if isinstance(model, ContextualPositions):
        model = ContextualPositions(DEPTH, SESSIONS, "device", spread=math.inf)
    randomise(model)
    table = model()
    slope = torch.randn(table.shape, generator=torch.Generator().manual_seed(2))
    expected = torch.autograd.grad(table, list(model.parameters()), slope, retain_graph=True)
    found = model.gradients(slope, 7)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_the_prior_pulls_a_context_towards_the_common_curve():
    """Its gradient is that of drawn/n · |δ|²/(2σ²), with δ as the table shows it."""
    model = randomise(ContextualPositions(DEPTH, SESSIONS, "device", spread=0.4))
    table = model()
    nothing = torch.zeros_like(table)
    of_phi, of_delta = model.gradients(nothing, 50)
    delta = table - model.phi
    penalty = 50 / 1000 * (delta**2).sum() / (2 * 0.4**2)
    (expected,) = torch.autograd.grad(penalty, [model.delta])
    assert not of_phi.any()
    torch.testing.assert_close(of_delta, expected)


def test_a_context_moves_at_the_pace_of_its_own_sessions():
    """One step on slopes in proportion to sessions moves every context's δ alike."""
    model = ContextualPositions(DEPTH, SESSIONS, "device")
    shares = torch.tensor(list(SESSIONS.values()))[:, None] / 1000
    slope = shares * torch.arange(DEPTH, dtype=torch.float32)
    _, of_delta = model.gradients(slope, 1)
    model.delta.data -= of_delta
    moved = (model() - model.phi).detach()
    torch.testing.assert_close(moved, -torch.arange(DEPTH, dtype=torch.float32).expand(3, -1))


def test_curves_of_contexts_stand_in_the_propensity_and_survive_its_file(tmp_path):
    model = randomise(ContextualPositions(DEPTH, SESSIONS, "device"))
    propensity = model.propensity()
    assert propensity.details["context"] == "device"
    held = propensity.details["contexts"]
    assert {name: each["sessions"] for name, each in held.items()} == SESSIONS
    curves = np.array([each["examination"] for each in held.values()])
    np.testing.assert_allclose(curves, model.examination())
    mean = np.average(curves, axis=0, weights=[900, 90, 10])
    np.testing.assert_allclose(propensity.examination, mean)
    propensity.write(tmp_path / "p.json")
    assert type(propensity).read(tmp_path / "p.json").details == propensity.details


def test_a_context_without_sessions_keeps_the_common_curve():
    model = ContextualPositions(DEPTH, {"phone": 100, "gone": 0}, "device")
    model.phi.data = torch.linspace(0, -1, DEPTH)
    curves = model.examination()
    assert np.isfinite(curves).all()
    assert curves[0].tolist() == curves[1].tolist()


@pytest.mark.parametrize("kind", [PositionNetwork, RecurrentPositions])
def test_networks_start_from_their_seed(kind):
    def weights(seed):
        return kind(DEPTH, seed).positions.detach()

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))
