"""The network: a written-out backward pass that is right, and a start that means the paper's."""

import numpy as np
import pytest
import torch
from torch import nn

from dualrank.errors import SettingsError
from dualrank.rankers import network as network_module
from dualrank.rankers.network import DNN, Linear, Network
from dualrank.rankers.ranking_svm import RankingSVM

torch.set_num_threads(1)

SHAPES = pytest.mark.parametrize("hidden", [(), (4,), (5, 3), (8, 4, 2)])
ACTIVATIONS = {
    "elu": nn.ELU(),
    "relu": nn.ReLU(),
    "leaky-relu": nn.LeakyReLU(0.01),
    "tanh": nn.Tanh(),
    "sigmoid": nn.Sigmoid(),
}
EACH = pytest.mark.parametrize("activation", ACTIVATIONS)
OUTPUTS = pytest.mark.parametrize("elu_output", [False, True])


def parameters(network):
    return [*network.weights, *network.biases]


def trained(sizes, *, seed=0, double=False, **options):
    """A network whose last layer is not zero any more."""
    network = Network(sizes, seed=seed, **options)
    generator = torch.Generator().manual_seed(seed + 1)
    for parameter in parameters(network):
        noise = torch.randn(parameter.shape, generator=generator)
        parameter += 0.5 / np.sqrt(parameter.shape[-1]) * noise
    if double:
        network.weights = [weight.double() for weight in network.weights]
        network.biases = [bias.double() for bias in network.biases]
    return network


def plain(network):
    """The same function out of torch's own layers."""
    layers = []
    for index, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        layer = nn.Linear(weight.shape[1], weight.shape[0]).to(weight.dtype)
        layer.weight.data, layer.bias.data = weight.data.clone(), bias.data.clone()
        layers.append(layer)
        if index < len(network.weights) - 1:
            layers.append(ACTIVATIONS[network.activation])
        elif network.elu_output:
            layers.append(nn.ELU())
    return nn.Sequential(*layers)


def finite_differences(network, x, slope, step=1e-6):
    """∂(slope · scores)/∂θ for every parameter, number by number."""
    found = []
    for parameter in parameters(network):
        numeric, flat = torch.zeros_like(parameter), parameter.view(-1)
        for i in range(len(flat)):
            before, ends = flat[i].item(), []
            for shift in (step, -step):
                flat[i] = before + shift
                ends.append(slope @ network.forward(x))
            flat[i] = before
            numeric.view(-1)[i] = (ends[0] - ends[1]) / (2 * step)
        found.append(numeric)
    return found


@SHAPES
@OUTPUTS
@EACH
def test_the_backward_pass_agrees_with_finite_differences_in_float64(
    hidden, elu_output, activation
):
    network = trained((3, *hidden, 1), elu_output=elu_output, activation=activation, double=True)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(6, 3, dtype=torch.float64, generator=generator)
    slope = torch.randn(6, dtype=torch.float64, generator=generator)
    network.forward(x)
    found = network.backward(slope)
    for ours, numeric in zip(found, finite_differences(network, x, slope), strict=True):
        torch.testing.assert_close(ours, numeric, rtol=1e-6, atol=1e-8)


@SHAPES
@OUTPUTS
@EACH
def test_scores_and_gradients_are_those_of_torch_layers(hidden, elu_output, activation):
    network = trained((3, *hidden, 1), elu_output=elu_output, activation=activation, double=True)
    peer = plain(network)
    generator = torch.Generator().manual_seed(2)
    for rows in (9, 4, 17):
        x = torch.randn(rows, 3, dtype=torch.float64, generator=generator)
        towards = torch.randn(rows, dtype=torch.float64, generator=generator)
        peer.zero_grad()
        scores, expected = network.forward(x), peer(x)[:, 0]
        torch.testing.assert_close(scores, expected.detach(), rtol=1e-12, atol=1e-12)
        (expected * towards).sum().backward()
        layers = [each for each in peer if isinstance(each, nn.Linear)]
        of_peer = [layer.weight.grad for layer in layers] + [layer.bias.grad for layer in layers]
        for ours, theirs in zip(network.backward(towards), of_peer, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_the_slope_that_goes_backward_is_left_as_it_was():
    network = trained((3, 4, 1), elu_output=True)
    slope = torch.ones(2)
    network.forward(torch.full((2, 3), -1.0))
    network.backward(slope)
    assert slope.tolist() == [1, 1]


def test_the_gradient_is_that_of_the_latest_forward_pass():
    network, untouched = trained((3, 4, 1)), trained((3, 4, 1))
    network.forward(torch.full((9, 3), 5.0))
    for each in (network, untouched):
        each.forward(torch.ones(2, 3))
    found, expected = network.backward(torch.ones(2)), untouched.backward(torch.ones(2))
    assert all(map(torch.equal, found, expected))


def test_scores_of_one_pass_survive_the_next():
    network = trained((3, 4, 1))
    first = network.forward(torch.ones(2, 3))
    held = first.clone()
    network.forward(torch.full((2, 3), -7.0))
    assert torch.equal(first, held)


@SHAPES
@OUTPUTS
def test_predict_gives_the_scores_of_forward(hidden, elu_output):
    network = trained((3, *hidden, 1), elu_output=elu_output)
    features = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    expected = network.forward(torch.from_numpy(features)).numpy()
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
    network.forward(x)
    network.predict(np.ones((9, 3), np.float32))
    untouched.forward(x)
    found, expected = network.backward(torch.ones(5)), untouched.backward(torch.ones(5))
    assert all(map(torch.equal, found, expected))


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
    for _ in range(2):
        gradients = network.backward(2 / 30 * (network.forward(x) - target))
        for parameter, gradient in zip(parameters(network), gradients, strict=True):
            parameter -= 0.1 * gradient
    units = torch.cat([network.weights[0], network.weights[1].t()], 1)
    distances = torch.cdist(units, units) + torch.eye(6)
    assert distances.min() > 1e-3
    assert network.weights[1].abs().min() > 0


def test_the_same_seed_gives_the_same_bytes_and_another_one_does_not():
    def start(seed):
        return b"".join(p.numpy().tobytes() for p in parameters(DNN((8, 4)).build(5, seed)))

    torch.manual_seed(0)
    first = start(3)
    torch.manual_seed(99)
    assert start(3) == first
    assert start(4) != first


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
    a, b = exact.forward(x), rough.forward(x)
    assert b.dtype == torch.float32
    # bfloat16 keeps 8 bits: each of the four roundings on the way is off by at most 2^-8.
    assert (a - b).abs().max() < 4 * 2**-8 * a.abs().max()
    assert not torch.equal(a, b)
    even = torch.ones(200)
    for p, q in zip(exact.backward(even), rough.backward(even), strict=True):
        assert q.dtype == torch.float32
        assert (p - q).norm() < 0.03 * p.norm()


def test_elu_on_the_output_bounds_scores_from_below():
    network = trained((3, 4, 1), elu_output=True)
    features = 100 * np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
    assert network.predict(features).min() >= -1
    assert trained((3, 4, 1)).predict(features).min() < -1


def test_a_network_without_hidden_layers_is_linear():
    network = Linear().build(2)
    network.weights[0].copy_(torch.tensor([[2.0, -1.0]]))
    network.biases[0].fill_(0.5)
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


def test_another_precision_is_refused():
    with pytest.raises(SettingsError, match="precision is float32 or bfloat16, not 'float8'"):
        DNN(precision="float8")


def test_another_activation_is_refused():
    with pytest.raises(SettingsError, match="one of elu, relu, leaky-relu, tanh, sigmoid, not 'x'"):
        DNN(activation="x")


@EACH
def test_a_network_is_restored_with_its_activation(activation):
    network = DNN((4,), activation=activation).build(3)
    assert DNN.restore(network.describe()).activation == activation
    assert [layer.activation for layer in network.layers()] == [activation, None]


def test_networks_that_were_written_before_there_was_a_choice_have_elu():
    assert DNN.restore({"sizes": [3, 4, 1], "elu_output": False}).activation == "elu"


def test_the_last_hidden_layer_is_what_the_score_is_made_of():
    network = trained((3, 5, 4, 1))
    features = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    hidden = network.last_hidden(features)
    assert hidden.shape == (20, 4)
    scores = hidden @ network.weights[-1].numpy()[0] + network.biases[-1].numpy()
    np.testing.assert_allclose(scores, network.predict(features), rtol=1e-5, atol=1e-6)


@SHAPES
@EACH
@pytest.mark.parametrize("weight", [1.0, -0.3, 0.0])
def test_two_networks_side_by_side_score_as_their_sum(hidden, activation, weight):
    one = trained((3, *hidden, 1), seed=1, activation=activation)
    two = trained((3, *(size + 2 for size in hidden), 1), seed=5, activation=activation)
    x = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    before = [p.clone() for p in (*parameters(one), *parameters(two))]
    both = one.plus(two, weight)
    np.testing.assert_allclose(
        both.predict(x), one.predict(x) + weight * two.predict(x), rtol=1e-5, atol=1e-5
    )
    assert both.sizes == (3, *(2 * size + 2 for size in hidden), 1)
    assert all(map(torch.equal, before, (*parameters(one), *parameters(two))))
    thrice = both.plus(one, 2.0).predict(x)
    np.testing.assert_allclose(thrice, both.predict(x) + 2 * one.predict(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (Network((3, 4, 1)), Network((2, 4, 1))),
        (Network((3, 4, 1)), Network((3, 4, 4, 1))),
        (Network((3, 4, 1), elu_output=True), Network((3, 4, 1))),
        (Network((3, 4, 1)), Network((3, 4, 1), elu_output=True)),
        (Network((3, 4, 1), activation="relu"), Network((3, 4, 1))),
        (Network((3, 4, 1)), RankingSVM().build(3)),
        (RankingSVM().build(3), Network((3, 1))),
        (RankingSVM().build(3), RankingSVM().build(2)),
    ],
)
def test_what_does_not_add_up_is_refused(one, two):
    with pytest.raises(SettingsError, match="do not add up"):
        one.plus(two, 1.0)


def test_two_ranking_svms_add_up():
    one, two = RankingSVM().build(3), RankingSVM().build(3)
    rng = np.random.default_rng(0)
    one.weights, two.weights = (torch.from_numpy(rng.normal(size=3)) for _ in range(2))
    x = rng.normal(size=(20, 3)).astype(np.float32)
    expected = one.predict(x) - 0.5 * two.predict(x)
    np.testing.assert_allclose(one.plus(two, -0.5).predict(x), expected, atol=1e-5)
