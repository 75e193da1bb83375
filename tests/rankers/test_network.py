"""The network: a written-out backward pass that is right, and a start that means the paper's."""

import numpy as np
import pytest
import torch
from torch import nn

from dualrank.errors import SettingsError
from dualrank.rankers import network as network_module
from dualrank.rankers.network import DNN, Linear, Network, _EluStack, _Workspace

torch.set_num_threads(1)

SHAPES = pytest.mark.parametrize("hidden", [(), (4,), (5, 3), (8, 4, 2)])
OUTPUTS = pytest.mark.parametrize("elu_output", [False, True])


def trained(sizes, *, seed=0, **options):
    """A network whose last layer is not zero any more."""
    network = Network(sizes, seed=seed, **options)
    generator = torch.Generator().manual_seed(seed + 1)
    for parameter in network.parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.data += 0.5 / np.sqrt(parameter.shape[-1]) * noise
    return network


def plain(network):
    """The same function out of torch's own layers."""
    layers = []
    for index, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        layer = nn.Linear(weight.shape[1], weight.shape[0]).to(weight.dtype)
        layer.weight.data, layer.bias.data = weight.data.clone(), bias.data.clone()
        layers.append(layer)
        if index < len(network.weights) - 1 or network.elu_output:
            layers.append(nn.ELU())
    return nn.Sequential(*layers)


@SHAPES
@OUTPUTS
def test_the_custom_function_passes_gradcheck_in_float64(hidden, elu_output):
    network = trained((3, *hidden, 1)).double()
    x = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    inputs = [x.requires_grad_(), *network.weights, *network.biases]

    def scores(*tensors):
        # A workspace of its own for every call, because gradcheck interleaves them.
        return _EluStack.apply(_Workspace(None), elu_output, *tensors)

    assert torch.autograd.gradcheck(scores, inputs)


@SHAPES
@OUTPUTS
def test_scores_and_gradients_are_those_of_torch_layers(hidden, elu_output):
    network = trained((3, *hidden, 1), elu_output=elu_output).double()
    peer = plain(network)
    generator = torch.Generator().manual_seed(2)
    for rows in (9, 4, 17):
        x = torch.randn(rows, 3, dtype=torch.float64, generator=generator)
        towards = torch.randn(rows, dtype=torch.float64, generator=generator)
        network.zero_grad()
        peer.zero_grad()
        scores, expected = network(x), peer(x)[:, 0]
        torch.testing.assert_close(scores, expected, rtol=1e-12, atol=1e-12)
        (scores * towards).sum().backward()
        (expected * towards).sum().backward()
        of_peer = [(m.weight.grad, m.bias.grad) for m in peer if isinstance(m, nn.Linear)]
        for weight, bias, (dw, db) in zip(network.weights, network.biases, of_peer, strict=True):
            torch.testing.assert_close(weight.grad, dw, rtol=1e-10, atol=1e-12)
            torch.testing.assert_close(bias.grad, db, rtol=1e-10, atol=1e-12)


def test_a_second_forward_pass_before_the_backward_pass_is_refused():
    network = trained((3, 4, 1))
    first = network(torch.ones(2, 3))
    network(torch.zeros(2, 3))
    with pytest.raises(RuntimeError, match="forward again before this backward"):
        first.sum().backward()


def test_the_latest_forward_pass_can_go_backward_after_a_refused_one():
    network = trained((3, 4, 1))
    network(torch.ones(2, 3))
    network(torch.ones(2, 3)).sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in network.parameters())


def test_scores_of_one_pass_survive_the_next():
    network = trained((3, 4, 1))
    with torch.no_grad():
        first = network(torch.ones(2, 3))
        held = first.clone()
        network(torch.full((2, 3), -7.0))
    assert torch.equal(first, held)


@SHAPES
@OUTPUTS
def test_predict_gives_the_scores_of_forward(hidden, elu_output):
    network = trained((3, *hidden, 1), elu_output=elu_output)
    features = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    with torch.no_grad():
        expected = network(torch.from_numpy(features)).numpy()
    np.testing.assert_allclose(network.predict(features), expected, rtol=1e-6, atol=1e-6)


def test_predict_in_blocks_gives_the_scores_of_one_block(monkeypatch):
    network = trained((3, 8, 1))
    features = np.random.default_rng(0).normal(size=(101, 3)).astype(np.float32)
    whole = network.predict(features)
    monkeypatch.setattr(network_module, "ROWS_PER_BLOCK", 7)
    np.testing.assert_allclose(network.predict(features), whole, rtol=1e-6, atol=1e-6)
    assert network.predict(features[:0]).shape == (0,)


def test_predict_takes_rows_that_are_not_contiguous():
    network = trained((3, 4, 1))
    wide = np.random.default_rng(0).normal(size=(20, 6)).astype(np.float32)
    assert np.array_equal(network.predict(wide[:, ::2]), network.predict(wide[:, ::2].copy()))


def test_predict_between_forward_and_backward_does_no_harm():
    network, untouched = trained((3, 4, 1)), trained((3, 4, 1))
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    scores = network(x)
    network.predict(np.ones((9, 3), np.float32))
    scores.sum().backward()
    untouched(x).sum().backward()
    for a, b in zip(network.parameters(), untouched.parameters(), strict=True):
        assert torch.equal(a.grad, b.grad)


@SHAPES
@OUTPUTS
def test_every_score_is_zero_at_the_start(hidden, elu_output):
    network = Network((3, *hidden, 1), elu_output=elu_output, seed=5)
    features = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    assert not network.predict(features).any()


def test_hidden_units_differ_after_two_steps_because_their_start_is_random():
    network = DNN((6,)).build(3, seed=1)
    x = torch.randn(30, 3, generator=torch.Generator().manual_seed(0))
    target = x[:, 0] ** 2
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        ((network(x) - target) ** 2).mean().backward()
        optimizer.step()
    units = torch.cat([network.weights[0], network.weights[1].t()], 1).detach()
    distances = torch.cdist(units, units) + torch.eye(6)
    assert distances.min() > 1e-3
    assert network.weights[1].abs().min() > 0


def test_the_same_seed_gives_the_same_bytes_and_another_one_does_not():
    def parameters(seed):
        return b"".join(
            p.detach().numpy().tobytes() for p in DNN((8, 4)).build(5, seed).parameters()
        )

    torch.manual_seed(0)
    first = parameters(3)
    torch.manual_seed(99)
    assert parameters(3) == first
    assert parameters(4) != first


def test_building_leaves_the_global_random_state_alone():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    DNN((8,)).build(5, seed=1)
    assert torch.equal(torch.rand(3), expected)


def test_bfloat16_products_give_scores_near_those_of_float32():
    sizes = (20, 32, 16, 1)
    exact, rough = trained(sizes), trained(sizes, dtype=torch.bfloat16)
    x = torch.randn(200, 20, generator=torch.Generator().manual_seed(0))
    a, b = exact(x), rough(x)
    assert b.dtype == torch.float32
    # bfloat16 keeps 8 bits: each of the four roundings on the way is off by at most 2^-8.
    assert (a - b).abs().max() < 4 * 2**-8 * a.abs().max()
    assert not torch.equal(a, b)
    a.sum().backward()
    b.sum().backward()
    for p, q in zip(exact.parameters(), rough.parameters(), strict=True):
        assert q.grad.dtype == torch.float32
        assert (p.grad - q.grad).norm() < 0.03 * p.grad.norm()


def test_elu_on_the_output_bounds_scores_from_below():
    network = trained((3, 4, 1), elu_output=True)
    features = 100 * np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
    assert network.predict(features).min() >= -1
    assert trained((3, 4, 1)).predict(features).min() < -1


def test_a_network_without_hidden_layers_is_linear():
    network = Linear().build(2)
    network.weights[0].data = torch.tensor([[2.0, -1.0]])
    network.biases[0].data = torch.tensor([0.5])
    assert network.predict(np.array([[1, 1], [0, 3]], np.float32)).tolist() == [1.5, -2.5]


def test_the_paper_network_has_its_layers():
    network = DNN((512, 256, 128)).build(700)
    assert network.sizes == (700, 512, 256, 128, 1)
    assert [tuple(w.shape) for w in network.weights] == [
        (512, 700), (256, 512), (128, 256), (1, 128),
    ]  # fmt: skip


def test_a_layer_without_units_is_refused():
    with pytest.raises(SettingsError, match=r"at least one unit each, not \(8, 0\)"):
        DNN(hidden=(8, 0))
