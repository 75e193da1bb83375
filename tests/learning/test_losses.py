"""The losses of the paper: right gradients, and changed by nothing that should not change them."""

import numpy as np
import pytest
import torch

from dualrank.corrections.losses import masked_log_softmax, ratio_to_first, softmax_cross_entropy
from dualrank.rankers.network import Network

LISTS, DEPTH = 7, 6


@pytest.fixture
def problem():
    """Scores of the ranker and the propensity model, clicks, and lists of different lengths."""
    rng = np.random.default_rng(1)
    mask = np.arange(DEPTH) < rng.integers(1, DEPTH + 1, LISTS)[:, None]
    mask[0] = True
    clicks = (rng.random((LISTS, DEPTH)) < 0.4) & mask
    return {
        "f": torch.from_numpy(rng.normal(size=(LISTS, DEPTH))),
        "g": torch.from_numpy(rng.normal(size=DEPTH)),
        "clicks": torch.from_numpy(clicks.astype(np.float64)),
        "mask": torch.from_numpy(mask),
    }


def ranker_loss(f, g, clicks, mask):
    """L̂_IPW(S), up to 1/|Q|."""
    log_relevance = masked_log_softmax(f, mask)
    weights = ratio_to_first(masked_log_softmax(g.expand(f.shape), mask))
    return softmax_cross_entropy(log_relevance, clicks, weights)


def propensity_loss(f, g, clicks, mask):
    """L̂_IRW(E), up to 1/|Q|."""
    log_examination = masked_log_softmax(g.expand(f.shape), mask)
    weights = ratio_to_first(masked_log_softmax(f, mask))
    return softmax_cross_entropy(log_examination, clicks, weights)


LOSSES = pytest.mark.parametrize(
    ("loss", "learned"), [(ranker_loss, "f"), (propensity_loss, "g")], ids=["ranker", "propensity"]
)


def finite_differences(value, point, step=1e-6):
    gradient = torch.zeros_like(point)
    for i in range(point.numel()):
        shift = torch.zeros_like(point)
        shift.view(-1)[i] = step
        gradient.view(-1)[i] = (value(point + shift) - value(point - shift)) / (2 * step)
    return gradient


def by_hand(f, g, clicks, mask, *, of_ranker):
    """The equations with plain loops over the displayed documents of each list."""
    losses = []
    for row, shown in enumerate(mask.sum(1).tolist()):
        relevance = np.exp(f[row, :shown].numpy()) / np.exp(f[row, :shown].numpy()).sum()
        examination = np.exp(g[:shown].numpy()) / np.exp(g[:shown].numpy()).sum()
        learned, other = (relevance, examination) if of_ranker else (examination, relevance)
        losses.append(
            -sum(clicks[row, x] * other[0] / other[x] * np.log(learned[x]) for x in range(shown))
        )
    return torch.tensor([float(loss) for loss in losses], dtype=torch.float64)


@LOSSES
def test_losses_are_the_equations_of_the_paper(problem, loss, learned):
    expected = by_hand(**problem, of_ranker=learned == "f")
    torch.testing.assert_close(loss(**problem), expected, rtol=1e-12, atol=1e-12)


@LOSSES
def test_gradients_agree_with_finite_differences(problem, loss, learned):
    point = problem[learned].clone().requires_grad_()
    loss(**{**problem, learned: point}).sum().backward()
    numeric = finite_differences(lambda p: loss(**{**problem, learned: p}).sum(), problem[learned])
    torch.testing.assert_close(point.grad, numeric, rtol=1e-7, atol=1e-8)
    assert point.grad.abs().max() > 0.1


@LOSSES
def test_weights_carry_no_gradient(problem, loss, learned):
    other = {"f": "g", "g": "f"}[learned]
    weighting = problem[other].clone().requires_grad_()
    point = problem[learned].clone().requires_grad_()
    loss(**{**problem, learned: point, other: weighting}).sum().backward()
    assert weighting.grad is None
    assert point.grad is not None


@pytest.mark.parametrize("elu_output", [False, True])
@pytest.mark.parametrize("hidden", [(), (4,), (5, 3)])
def test_the_gradient_through_the_whole_network_agrees_with_finite_differences(
    problem, hidden, elu_output
):
    generator = torch.Generator().manual_seed(2)
    network = Network((3, *hidden, 1), elu_output=elu_output).double()
    for parameter in network.parameters():
        parameter.data.normal_(0, 0.8, generator=generator)
    mask = problem["mask"]
    x = torch.randn(int(mask.sum()), 3, dtype=torch.float64, generator=generator)

    def loss():
        f = torch.zeros(mask.shape, dtype=torch.float64).masked_scatter(mask, network(x))
        return ranker_loss(f, problem["g"], problem["clicks"], mask).sum()

    loss().backward()

    def loss_at(parameter, values):
        before = parameter.data
        parameter.data = values
        with torch.no_grad():
            value = loss()
        parameter.data = before
        return value

    for parameter in network.parameters():
        numeric = finite_differences(lambda v, p=parameter: loss_at(p, v), parameter.data)
        torch.testing.assert_close(parameter.grad, numeric, rtol=1e-6, atol=1e-7)


@LOSSES
@pytest.mark.parametrize("shift", [-3.0, 0.5, 100.0])
def test_a_constant_added_to_all_scores_changes_nothing(problem, loss, learned, shift):
    before = loss(**problem)
    for name in ("f", "g"):
        after = loss(**{**problem, name: problem[name] + shift})
        torch.testing.assert_close(after, before, rtol=1e-12, atol=1e-12)


@LOSSES
def test_appended_padding_changes_neither_loss_nor_gradient(problem, loss, learned):
    def padded(values, fill):
        width = (*values.shape[:-1], 3)
        return torch.cat([values, torch.full(width, fill, dtype=values.dtype)], -1)

    longer = {
        "f": padded(problem["f"], 50.0),
        "g": padded(problem["g"], 50.0),
        "clicks": padded(problem["clicks"], 0.0),
        "mask": padded(problem["mask"], False),
    }
    torch.testing.assert_close(loss(**longer), loss(**problem), rtol=1e-12, atol=1e-12)
    short = problem[learned].clone().requires_grad_()
    long = longer[learned].clone().requires_grad_()
    loss(**{**problem, learned: short}).sum().backward()
    loss(**{**longer, learned: long}).sum().backward()
    torch.testing.assert_close(long.grad[..., :DEPTH], short.grad, rtol=1e-12, atol=1e-12)
    assert not long.grad[..., DEPTH:].any()


@LOSSES
def test_a_list_of_padding_alone_adds_no_loss_and_no_nan(problem, loss, learned):
    empty = {**problem, "mask": problem["mask"].clone(), "clicks": problem["clicks"].clone()}
    empty["mask"][3], empty["clicks"][3] = False, 0.0
    point = empty[learned].clone().requires_grad_()
    losses = loss(**{**empty, learned: point})
    losses.sum().backward()
    assert losses[3] == 0
    assert torch.isfinite(point.grad).all()


def test_permuting_documents_with_clicks_and_weights_leaves_the_loss_and_permutes_the_gradient(
    problem,
):
    f, clicks = problem["f"].clone().requires_grad_(), problem["clicks"]
    everywhere = torch.ones_like(problem["mask"])
    weights = torch.rand(f.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    order = torch.randperm(DEPTH, generator=torch.Generator().manual_seed(5))
    before = softmax_cross_entropy(masked_log_softmax(f, everywhere), clicks, weights)
    before.sum().backward()
    moved = problem["f"][:, order].clone().requires_grad_()
    after = softmax_cross_entropy(
        masked_log_softmax(moved, everywhere), clicks[:, order], weights[:, order]
    )
    after.sum().backward()
    torch.testing.assert_close(after, before, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(moved.grad, f.grad[:, order], rtol=1e-12, atol=1e-12)


@LOSSES
def test_permuting_lists_permutes_their_losses(problem, loss, learned):
    order = torch.randperm(LISTS, generator=torch.Generator().manual_seed(6))
    moved = {name: v if name == "g" else v[order] for name, v in problem.items()}
    torch.testing.assert_close(loss(**moved), loss(**problem)[order], rtol=1e-12, atol=1e-12)


@LOSSES
def test_sessions_summed_into_counts_give_the_same_gradient(problem, loss, learned):
    """The loss is linear in clicks: one row per session or one row per list with counts."""
    rng = np.random.default_rng(7)
    sessions = 400
    list_of = torch.from_numpy(rng.integers(LISTS, size=sessions))
    mask = problem["mask"]
    clicks = torch.from_numpy((rng.random((sessions, DEPTH)) < 0.3).astype(float)) * mask[list_of]
    counts = torch.zeros(LISTS, DEPTH, dtype=torch.float64).index_add_(0, list_of, clicks)

    one_by_one = problem[learned].clone().requires_grad_()
    expanded = one_by_one[list_of] if learned == "f" else one_by_one
    problem_by_session = {"f": problem["f"][list_of], "g": problem["g"], learned: expanded}
    loss(**problem_by_session, clicks=clicks, mask=mask[list_of]).sum().backward()

    summed = problem[learned].clone().requires_grad_()
    loss(**{**problem, learned: summed, "clicks": counts}).sum().backward()

    scale = summed.grad.abs().max()
    torch.testing.assert_close(one_by_one.grad / scale, summed.grad / scale, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("max_weight", [1.0, 20.0, 1_000.0, 1e300, torch.inf])
@pytest.mark.parametrize("first", [-1e4, 0.0, 1e4])
def test_ratios_never_overflow(dtype, max_weight, first):
    scores = torch.tensor([[first, 1e4, -1e4, 0.0]], dtype=dtype)
    mask = torch.tensor([[True, True, True, True]])
    ratios = ratio_to_first(masked_log_softmax(scores, mask), max_weight)
    assert torch.isfinite(ratios).all()
    assert (ratios >= 0).all()
    assert (ratios <= max_weight * (1 + 1e-6)).all()
    assert ratios[0, 0] == 1


def test_extreme_scores_give_finite_losses_and_gradients():
    scores = torch.tensor([[1e4, -1e4, 0.0]], requires_grad=True)
    mask = torch.ones(1, 3, dtype=torch.bool)
    log_relevance = masked_log_softmax(scores, mask)
    weights = ratio_to_first(log_relevance, 1_000.0)
    softmax_cross_entropy(log_relevance, torch.ones(1, 3), weights).sum().backward()
    assert torch.isfinite(scores.grad).all()


def test_ratios_are_the_quotients_of_probabilities(problem):
    mask = problem["mask"]
    log_probabilities = masked_log_softmax(problem["f"], mask)
    probabilities = log_probabilities.exp()
    expected = probabilities[:, :1] / probabilities
    found = ratio_to_first(log_probabilities)
    torch.testing.assert_close(found[mask], expected[mask], rtol=1e-12, atol=0)
    clipped = ratio_to_first(log_probabilities, 1.5)
    torch.testing.assert_close(clipped[mask], expected[mask].clamp(max=1.5), rtol=1e-12, atol=0)


def test_probabilities_sum_to_one_over_what_was_displayed(problem):
    mask = problem["mask"]
    log_probabilities = masked_log_softmax(problem["f"], mask)
    assert not log_probabilities[~mask].any()
    probabilities = log_probabilities.exp() * mask
    torch.testing.assert_close(probabilities.sum(1), torch.ones(LISTS, dtype=torch.float64))
