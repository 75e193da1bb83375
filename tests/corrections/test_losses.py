"""The losses of the paper: right slopes, and changed by nothing that should not change them."""

import numpy as np
import pytest
import torch

from dualrank.corrections.losses import (
    LOSSES,
    Loss,
    masked_log_softmax,
    pairs_loss,
    ratio_to_first,
    softmax_loss,
)
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


@pytest.fixture
def losses(show):
    """L̂_IPW(S) and L̂_IRW(E), up to 1/|Q|, by what is learned: f or g."""

    def of_ranker(f, g, clicks, mask):
        shown = show(clicks, mask)
        weights = ratio_to_first(masked_log_softmax(g.detach().expand(f.shape), shown))
        return softmax_loss(f, clicks * weights, shown)

    def of_positions(f, g, clicks, mask):
        shown = show(clicks, mask)
        weights = ratio_to_first(masked_log_softmax(f.detach(), shown))
        loss = softmax_loss(g.expand(f.shape), clicks * weights, shown)
        return Loss(loss.value, loss.slope.sum(0), loss.curvature)

    return {"f": of_ranker, "g": of_positions}


@pytest.fixture(params=["f", "g"], ids=["ranker", "propensity"])
def learned(request):
    return request.param


@pytest.fixture
def loss(losses, learned):
    return losses[learned]


def finite_differences(value, point, step=1e-6):
    gradient = torch.zeros_like(point)
    for i in range(point.numel()):
        shift = torch.zeros_like(point)
        shift.view(-1)[i] = step
        gradient.view(-1)[i] = (value(point + shift) - value(point - shift)) / (2 * step)
    return gradient


def by_hand(f, g, clicks, mask, *, of_ranker):
    """The equations with plain loops over the displayed documents of each list."""
    total = 0.0
    for row, shown in enumerate(mask.sum(1).tolist()):
        relevance = np.exp(f[row, :shown].numpy()) / np.exp(f[row, :shown].numpy()).sum()
        examination = np.exp(g[:shown].numpy()) / np.exp(g[:shown].numpy()).sum()
        learned, other = (relevance, examination) if of_ranker else (examination, relevance)
        total -= sum(
            float(clicks[row, x]) * other[0] / other[x] * np.log(learned[x]) for x in range(shown)
        )
    return total


def of_each_list(loss, problem):
    """The loss of every list alone."""
    rows = [{k: v if k == "g" else v[i : i + 1] for k, v in problem.items()} for i in range(LISTS)]
    return torch.stack([loss(**row).value for row in rows])


def test_losses_are_the_equations_of_the_paper(problem, loss, learned):
    expected = by_hand(**problem, of_ranker=learned == "f")
    assert float(loss(**problem).value) == pytest.approx(expected, rel=1e-12)


def test_slopes_agree_with_finite_differences(problem, loss, learned):
    found = loss(**problem).slope
    numeric = finite_differences(lambda p: loss(**{**problem, learned: p}).value, problem[learned])
    torch.testing.assert_close(found, numeric, rtol=1e-7, atol=1e-8)
    assert found.abs().max() > 0.1


def test_slopes_are_those_of_autograd(problem, loss, learned):
    point = problem[learned].clone().requires_grad_()
    found = loss(**{**problem, learned: point})
    (expected,) = torch.autograd.grad(found.value, [point])
    torch.testing.assert_close(found.slope.detach(), expected, rtol=1e-12, atol=1e-12)


def test_curvatures_are_the_second_derivatives(problem, losses):
    def slope(point):
        return losses["f"](**{**problem, "f": point}).slope

    point, step = problem["f"], 1e-6
    numeric = torch.zeros_like(point)
    for column in range(DEPTH):
        shift = torch.zeros_like(point)
        shift[:, column] = step
        moved = (slope(point + shift) - slope(point - shift)) / (2 * step)
        numeric[:, column] = moved[:, column]
    found = losses["f"](**problem).curvature()
    torch.testing.assert_close(found, numeric, rtol=1e-7, atol=1e-8)
    assert (found >= 0).all()
    assert not found[~problem["mask"]].any()


@pytest.mark.parametrize("elu_output", [False, True])
@pytest.mark.parametrize("hidden", [(), (4,), (5, 3)])
def test_the_gradient_through_the_whole_network_agrees_with_finite_differences(
    problem, losses, hidden, elu_output
):
    generator = torch.Generator().manual_seed(2)
    network = Network((3, *hidden, 1), elu_output=elu_output)
    for group in (network.weights, network.biases):
        group[:] = [t.double().normal_(0, 0.8, generator=generator) for t in group]
    mask = problem["mask"]
    x = torch.randn(int(mask.sum()), 3, dtype=torch.float64, generator=generator)

    def loss():
        f = torch.zeros(mask.shape, dtype=torch.float64).masked_scatter(mask, network.forward(x))
        return losses["f"](f, problem["g"], problem["clicks"], mask)

    found = network.backward(loss().slope[mask])

    def loss_at(parameter, values):
        before = parameter.clone()
        parameter.copy_(values)
        value = loss().value
        parameter.copy_(before)
        return value

    for parameter, gradient in zip([*network.weights, *network.biases], found, strict=True):
        numeric = finite_differences(lambda v, p=parameter: loss_at(p, v), parameter.clone())
        torch.testing.assert_close(gradient, numeric, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("shift", [-3.0, 0.5, 100.0])
def test_a_constant_added_to_all_scores_changes_nothing(problem, loss, shift):
    before = loss(**problem).value
    for name in ("f", "g"):
        after = loss(**{**problem, name: problem[name] + shift}).value
        torch.testing.assert_close(after, before, rtol=1e-12, atol=1e-12)


def test_appended_padding_changes_neither_loss_nor_slope(problem, loss):
    def padded(values, fill):
        width = (*values.shape[:-1], 3)
        return torch.cat([values, torch.full(width, fill, dtype=values.dtype)], -1)

    longer = {
        "f": padded(problem["f"], 50.0),
        "g": padded(problem["g"], 50.0),
        "clicks": padded(problem["clicks"], 0.0),
        "mask": padded(problem["mask"], False),
    }
    short, long = loss(**problem), loss(**longer)
    torch.testing.assert_close(long.value, short.value, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(long.slope[..., :DEPTH], short.slope, rtol=1e-12, atol=1e-12)
    assert not long.slope[..., DEPTH:].any()


def test_a_list_of_padding_alone_adds_no_loss_and_no_nan(problem, loss):
    empty = {**problem, "mask": problem["mask"].clone(), "clicks": problem["clicks"].clone()}
    empty["mask"][3], empty["clicks"][3] = False, 0.0
    assert of_each_list(loss, empty)[3] == 0
    assert torch.isfinite(loss(**empty).slope).all()
    assert torch.isfinite(loss(**empty).curvature()).all()


def test_permuting_documents_with_their_targets_leaves_the_loss_and_permutes_the_slope(
    problem, show
):
    f = problem["f"]
    targets = problem["clicks"] * torch.rand(
        f.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(4)
    )
    everywhere = show(targets)
    order = torch.randperm(DEPTH, generator=torch.Generator().manual_seed(5))
    before = softmax_loss(f, targets, everywhere)
    after = softmax_loss(f[:, order], targets[:, order], everywhere)
    torch.testing.assert_close(after.value, before.value, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(after.slope, before.slope[:, order], rtol=1e-12, atol=1e-12)


def test_the_loss_of_lists_is_the_sum_of_their_losses_in_any_order(problem, loss):
    order = torch.randperm(LISTS, generator=torch.Generator().manual_seed(6))
    moved = {name: v if name == "g" else v[order] for name, v in problem.items()}
    alone = of_each_list(loss, problem)
    torch.testing.assert_close(of_each_list(loss, moved), alone[order], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(loss(**moved).value, alone.sum(), rtol=1e-12, atol=1e-12)


def test_sessions_summed_into_counts_give_the_same_slope(problem, loss, learned):
    """The loss is linear in clicks: one row per session or one row per list with counts."""
    rng = np.random.default_rng(7)
    sessions = 400
    list_of = torch.from_numpy(rng.integers(LISTS, size=sessions))
    f, g, mask = problem["f"], problem["g"], problem["mask"]
    clicks = torch.from_numpy((rng.random((sessions, DEPTH)) < 0.3).astype(float)) * mask[list_of]
    counts = torch.zeros(LISTS, DEPTH, dtype=torch.float64).index_add_(0, list_of, clicks)
    one_by_one = loss(f[list_of], g, clicks, mask[list_of]).slope
    if learned == "f":
        one_by_one = torch.zeros_like(counts).index_add_(0, list_of, one_by_one)
    summed = loss(f, g, counts, mask).slope
    scale = summed.abs().max()
    torch.testing.assert_close(one_by_one / scale, summed / scale, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("max_weight", [1.0, 20.0, 1_000.0, 1e300, torch.inf])
@pytest.mark.parametrize("first", [-1e4, 0.0, 1e4])
def test_ratios_never_overflow(dtype, max_weight, first):
    scores = torch.tensor([[first, 1e4, -1e4, 0.0]], dtype=dtype)
    ratios = ratio_to_first(scores, max_weight)
    assert torch.isfinite(ratios).all()
    assert (ratios >= 0).all()
    assert (ratios <= max_weight * (1 + 1e-6)).all()
    assert ratios[0, 0] == 1


def test_extreme_scores_give_finite_losses_slopes_and_curvatures(show):
    scores = torch.tensor([[1e4, -1e4, 0.0]])
    shown = show(np.ones((1, 3), np.float32))
    loss = softmax_loss(scores, ratio_to_first(scores, 1_000.0), shown)
    for found in (loss.value, loss.slope, loss.curvature()):
        assert torch.isfinite(found).all()


def test_ratios_are_the_quotients_of_probabilities(problem, show):
    mask = problem["mask"]
    log_probabilities = masked_log_softmax(problem["f"], show(problem["clicks"], mask))
    probabilities = log_probabilities.exp()
    expected = probabilities[:, :1] / probabilities
    for log_odds in (log_probabilities, problem["f"]):
        found = ratio_to_first(log_odds)
        torch.testing.assert_close(found[mask], expected[mask], rtol=1e-12, atol=0)
        clipped = ratio_to_first(log_odds, 1.5)
        torch.testing.assert_close(clipped[mask], expected[mask].clamp(max=1.5), rtol=1e-12, atol=0)


def test_probabilities_sum_to_one_over_what_was_displayed(problem, show):
    mask = problem["mask"]
    log_probabilities = masked_log_softmax(problem["f"], show(problem["clicks"], mask))
    assert not log_probabilities[~mask].any()
    probabilities = log_probabilities.exp() * mask
    torch.testing.assert_close(probabilities.sum(1), torch.ones(LISTS, dtype=torch.float64))


@pytest.fixture(params=LOSSES)
def of_labels(request):
    return LOSSES[request.param]


@pytest.fixture
def labelled(problem, show):
    """Scores and real-valued labels on lists of different lengths."""
    noise = torch.rand(
        LISTS, DEPTH, dtype=torch.float64, generator=torch.Generator().manual_seed(4)
    )
    targets = problem["mask"] * noise
    return problem["f"], targets, show(targets, problem["mask"])


def test_slopes_and_curvatures_of_labels_agree_with_finite_differences(labelled, of_labels):
    scores, targets, shown = labelled
    loss = of_labels(scores, targets, shown)
    numeric = finite_differences(lambda s: of_labels(s, targets, shown).value, scores)
    torch.testing.assert_close(loss.slope, numeric, rtol=1e-6, atol=1e-8)
    bend, step = torch.zeros_like(scores), 1e-6
    for column in range(DEPTH):
        shift = torch.zeros_like(scores)
        shift[:, column] = step
        ends = [of_labels(scores + sign * shift, targets, shown).slope for sign in (1, -1)]
        bend[:, column] = (ends[0] - ends[1])[:, column] / (2 * step)
    torch.testing.assert_close(loss.curvature(), bend, rtol=1e-6, atol=1e-8)
    assert loss.slope.abs().max() > 0.1
    assert not loss.slope[~shown.mask].any()


def test_losses_are_linear_in_labels(labelled, of_labels):
    """So that labels that are right in the mean give a loss that is."""
    scores, targets, shown = labelled
    other = targets.flip(1) * shown.mask - 0.3 * targets
    both = of_labels(scores, 2 * targets - other, shown)
    one, two = (of_labels(scores, t, shown) for t in (targets, other))
    torch.testing.assert_close(both.value, 2 * one.value - two.value)
    torch.testing.assert_close(both.slope, 2 * one.slope - two.slope)


def test_the_best_order_under_any_loss_is_that_of_the_labels(of_labels, show):
    targets = torch.tensor([[0.1, 0.5, 0.2, 0.4]], dtype=torch.float64)
    scores, shown = torch.zeros_like(targets), show(targets)
    for _ in range(3_000):
        scores -= 0.2 * of_labels(scores, targets, shown).slope
    assert scores.argsort(dim=1).tolist() == targets.argsort(dim=1).tolist()


def test_the_losses_of_pairs_are_those_of_plain_loops(labelled):
    scores, targets, shown = labelled
    pairwise = lambdarank = 0.0
    for s, t, mask in zip(scores.tolist(), targets.tolist(), shown.mask.tolist(), strict=True):
        n = sum(mask)
        rank = {x: 1 + sum(s[z] > s[x] for z in range(n)) for x in range(n)}
        for i in range(n):
            for j in set(range(n)) - {i}:
                loss = t[i] * np.log1p(np.exp(s[j] - s[i]))
                pairwise += loss / (n - 1)
                lambdarank += loss * abs(1 / np.log2(1 + rank[i]) - 1 / np.log2(1 + rank[j]))
    assert float(LOSSES["pairwise"](scores, targets, shown).value) == pytest.approx(pairwise)
    assert float(LOSSES["lambdarank"](scores, targets, shown).value) == pytest.approx(lambdarank)


def test_pairs_of_a_document_with_itself_or_with_padding_count_nothing(labelled):
    scores, _, shown = labelled
    weights = torch.ones(LISTS, DEPTH, DEPTH, dtype=torch.float64)
    loss = pairs_loss(scores, weights, shown)
    pairs = shown.weight[:, :, None] * shown.weight[:, None, :] * (1 - torch.eye(DEPTH))
    again = pairs_loss(scores, weights * pairs, shown)
    torch.testing.assert_close(loss.value, again.value)
    assert not loss.slope[~shown.mask].any()
