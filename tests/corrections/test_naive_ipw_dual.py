"""How much a click counts; and dual learning converges to what the paper's analysis says."""

import numpy as np
import pytest
import torch

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.corrections.dual import DualLearning
from dualrank.corrections.ipw import InversePropensity
from dualrank.corrections.naive import Naive
from dualrank.corrections.position_models import (
    CONTEXT_SPREAD,
    ContextualPositions,
    PositionNetwork,
    PositionVariables,
    RecurrentPositions,
)
from dualrank.errors import SettingsError
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.ranker import Step
from dualrank.settings import TrainingSettings

DEPTH = 10
FULL_BATCH = TrainingSettings(
    optimizer="sgd",
    schedule="constant",
    propensity_rate=2.0,
    normalisation="clicks",
    gradient_clip=1e9,
    max_weight=1e9,
)


def true_relevance(lists, seed=0):
    """P(r = 1) of displayed documents, the better ones rather at the top, as rankers do."""
    rng = np.random.default_rng(seed)
    grades = np.sort(rng.choice(5, (lists, DEPTH), p=[0.26, 0.36, 0.28, 0.08, 0.02]))[:, ::-1]
    noisy = np.argsort(np.arange(DEPTH) + rng.normal(0, 4, grades.shape))
    return PositionBasedUser().perceived_relevance(np.take_along_axis(grades, noisy, 1), 4)


def converge(scores, shown, model=None, steps=30_000):
    """Full-batch steps of φ, ranker fixed, until it moves no more."""
    dual = DualLearning(DEPTH, FULL_BATCH, (model or PositionVariables(DEPTH)).double())
    before = np.zeros(DEPTH)
    for step in range(steps):
        learn(dual, scores, shown, len(shown.labels))
        if step % 100 == 0:
            now = np.log(dual.model.examination())
            if np.abs(now - before).max() < 1e-8:
                return dual
            before = now
    raise AssertionError("φ does not settle")


def learn(dual, scores, shown, drawn):
    """One step of φ."""
    signal = dual.signal(scores, shown)
    dual.learn(signal.evidence, Step(drawn, signal.clicks))


def weights(correction, show, depth, contexts=None):
    """What a click at each position is worth, list by list."""
    clicks = np.ones((1 if contexts is None else len(contexts), depth), np.float32)
    return correction.signal(torch.zeros(clicks.shape), show(clicks, contexts=contexts)).targets


def closed_form(scores, clicks):
    """g_i = E[c_i f_1/f_i] / Σ_j E[c_j f_1/f_j]."""
    f = scores.exp().numpy()
    weighted = (clicks * f[:, :1] / f).mean(axis=0)
    return weighted / weighted.sum()


@pytest.mark.parametrize("seed", [0, 1])
def test_with_any_fixed_ranker_examination_converges_to_the_closed_form(seed, show):
    rng = np.random.default_rng(seed)
    scores = torch.from_numpy(rng.normal(size=(80, DEPTH)))
    clicks = rng.random((80, DEPTH)) < 0.3
    dual = converge(scores, show(clicks.astype(float)))
    learned = torch.softmax(dual.model.phi.detach(), 0).numpy()
    np.testing.assert_allclose(learned, closed_form(scores, clicks), atol=1e-6)
    assert learned.max() > 1.5 * learned.min()


@pytest.mark.parametrize(
    ("kind", "eta"),
    [
        *((PositionVariables, eta) for eta in (0.5, 1.0, 2.0)),
        (PositionNetwork, 1.0),
        (RecurrentPositions, 1.0),
    ],
)
def test_with_the_true_relevance_examination_converges_to_the_truth(kind, eta, show):
    relevance = true_relevance(200)
    rho = PositionBasedUser(eta=eta).examination(DEPTH)
    scores = torch.from_numpy(np.log(relevance))
    dual = converge(scores, show(rho * relevance), kind(DEPTH))
    np.testing.assert_allclose(dual.propensity().examination, rho / rho[0], atol=1e-6)


def test_lists_of_different_lengths_do_not_confound_the_examination(show):
    relevance = true_relevance(200)
    rho = PositionBasedUser().examination(DEPTH)
    lengths = np.random.default_rng(5).integers(1, DEPTH + 1, 200)
    shown = np.arange(DEPTH) < lengths[:, None]
    scores = torch.from_numpy(np.where(shown, np.log(relevance), 0.0))
    dual = converge(scores, show(rho * relevance * shown, shown))
    np.testing.assert_allclose(dual.propensity().examination, rho / rho[0], atol=1e-6)


def test_every_context_converges_to_its_own_truth(show):
    """With as many sessions as one likes the prior has nothing to say."""
    relevance = true_relevance(200)
    etas = np.array([0.5, 1.5])
    rho = np.array([PositionBasedUser(eta=eta).examination(DEPTH) for eta in etas])
    contexts = np.random.default_rng(0).permutation(np.repeat([0, 1], [150, 50]))
    lengths = np.random.default_rng(5).choice([6, DEPTH], 200)
    shown = np.arange(DEPTH) < lengths[:, None]
    scores = torch.from_numpy(np.where(shown, np.log(relevance), 0.0))
    model = ContextualPositions(DEPTH, {"desk": 150 * 10**9, "phone": 50 * 10**9})
    lists = show(rho[contexts] * relevance * shown, shown, contexts)
    dual = DualLearning(DEPTH, FULL_BATCH, model.double())
    for _ in range(3_000):
        learn(dual, scores, lists, 200)
    np.testing.assert_allclose(dual.model.examination(), rho / rho[:, :1], rtol=3e-3)
    found = weights(dual, show, DEPTH, contexts)
    np.testing.assert_allclose(found, (rho[:, :1] / rho)[contexts], rtol=3e-3)


def test_a_rare_context_borrows_strength(show):
    """1% of the sessions alone miss their curve by more than with the help of the others."""
    n, etas, lists = {"desk": 49_500, "watch": 500}, [1.0, 1.2], 30
    rho = np.array([PositionBasedUser(eta=eta).examination(DEPTH) for eta in etas])
    contexts = np.repeat([0, 1], lists)
    errors = {CONTEXT_SPREAD: [], np.inf: []}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        relevance = true_relevance(lists, seed)
        clicks = [
            rng.binomial(rng.multinomial(count, np.full(lists, 1 / lists))[:, None], of * relevance)
            for count, of in zip(n.values(), rho, strict=True)
        ]
        shown = show(np.concatenate(clicks).astype(float), contexts=contexts)
        scores = torch.from_numpy(np.log(np.tile(relevance, (2, 1))))
        for spread, found in errors.items():
            model = ContextualPositions(DEPTH, n, spread=spread)
            dual = DualLearning(DEPTH, FULL_BATCH, model.double())
            for _ in range(400):
                learn(dual, scores, shown, 50_000)
            wrong = np.log(dual.model.examination() * rho[:, :1] / rho)
            found.append(np.abs(wrong).mean(axis=1))
    frequent, rare = np.mean(errors[CONTEXT_SPREAD], axis=0)
    frequent_alone, rare_alone = np.mean(errors[np.inf], axis=0)
    assert rare < 0.8 * rare_alone
    assert frequent < frequent_alone + 0.005


def test_with_sampled_clicks_examination_is_within_the_sampling_error_of_the_truth(show):
    """With w_i = c_i r_1/r_i the estimate of ρ_i/ρ_1 = k is mean(w_i)/mean(w_1); its error is that
    of mean(w_i − k w_1)/E[w_1], whose variance follows from c being independent given the list:
    E[(w_i − k w_1)²] = ρ_i E[r_1²/r_i] − 2 k ρ_i ρ_1 E[r_1²] + k² ρ_1 E[r_1].
    """
    n = 40_000
    rng = np.random.default_rng(4)
    relevance = true_relevance(300, seed=3)
    rho = PositionBasedUser().examination(DEPTH)
    sessions = rng.multinomial(n, np.full(300, 1 / 300))
    clicks = rng.binomial(sessions[:, None], rho * relevance)
    dual = converge(torch.from_numpy(np.log(relevance)), show(clicks.astype(float)))
    k, first = rho / rho[0], relevance[:, :1]
    variance = (
        rho * (first**2 / relevance).mean(0)
        - 2 * k * rho * rho[0] * (first**2).mean()
        + k**2 * rho[0] * first.mean()
    )
    error = np.sqrt(variance / n) / (rho[0] * first.mean())
    off = np.abs(dual.propensity().examination - k)[1:] / error[1:]
    # Nine normal errors: all are below 4 but once in 1,800 samples.
    assert off.max() < 4
    assert error[1:].max() < 0.05


def test_an_even_ranker_leaves_the_raw_click_through_curve(show):
    relevance = true_relevance(200)
    rho = PositionBasedUser().examination(DEPTH)
    even = torch.zeros(relevance.shape, dtype=torch.float64)
    dual = converge(even, show(rho * relevance))
    raw = (rho * relevance).mean(0)
    np.testing.assert_allclose(dual.propensity().examination, raw / raw[0], atol=1e-6)


def test_dual_learning_starts_with_every_weight_one(show):
    dual = DualLearning(3, TrainingSettings())
    assert weights(dual, show, 3).tolist() == [pytest.approx([1, 1, 1])]
    assert dual.propensity().examination.tolist() == [1, 1, 1]


def test_dual_weights_are_the_inverse_of_the_believed_examination(show):
    dual = DualLearning(4, TrainingSettings())
    dual.model.phi.data = torch.tensor([0.3, -0.2, -1.0, -2.5])
    found = weights(dual, show, 4)
    np.testing.assert_allclose(found[0], dual.propensity().weights, rtol=1e-6)
    assert not found.requires_grad


def test_dual_weights_are_clipped_at_max_weight(show):
    dual = DualLearning(3, TrainingSettings(max_weight=20.0))
    dual.model.phi.data = torch.tensor([0.0, -2.0, -500.0])
    np.testing.assert_allclose(weights(dual, show, 3)[0], [1, np.exp(2), 20], rtol=1e-5)


@pytest.mark.parametrize("max_weight", [2.0, 50.0])
def test_relevance_weights_are_clipped_at_max_weight(max_weight, show):
    """One click at the last position, whose inverse relevance is e^30, moves φ as max_weight."""
    settings = TrainingSettings(
        max_weight=max_weight, schedule="constant", propensity_rate=0.01, gradient_clip=1e9
    )
    dual = DualLearning(2, settings)
    clicks = np.array([[0.0, 1.0]], np.float32)
    learn(dual, torch.tensor([[30.0, 0.0]]), show(clicks), drawn=1)
    # The gradient at φ = 0 is w · (1/2, −1/2).
    expected = 0.01 * max_weight / 2
    np.testing.assert_allclose(dual.model.phi.detach(), [-expected, expected], rtol=1e-5)


@pytest.mark.parametrize("kind", [Naive, DualLearning])
def test_a_click_at_padding_would_teach_nothing(kind, show):
    correction = kind() if kind is Naive else kind(3, TrainingSettings(schedule="constant"))
    shown = show(np.array([[0.0, 0.0, 1.0]], np.float32), [[True, True, False]])
    signal = correction.signal(torch.zeros(1, 3), shown)
    assert not signal.slope.any()
    assert signal.loss == signal.clicks == 0
    if kind is DualLearning:
        correction.learn(signal.evidence, Step(1, signal.clicks))
        assert correction.model.phi.tolist() == [0, 0, 0]


def test_positions_that_were_not_displayed_learn_nothing(show):
    """A click on the first of two moves φ of both, and of no position that was not displayed."""
    dual = DualLearning(3, TrainingSettings(schedule="constant"))
    clicks, mask = np.array([[1.0, 0.0, 0.0]], np.float32), [[True, True, False]]
    learn(dual, torch.zeros(1, 3), show(clicks, mask), drawn=1)
    first, second, third = dual.model.phi.tolist()
    assert first == -second > 0
    assert third == 0


def test_given_propensities_weigh_by_their_inverse_up_to_the_depth_and_the_clip(show):
    propensity = Propensity.of([0.8, 0.4, 0.1, 0.01])
    given, clipped = InversePropensity(propensity, 3), InversePropensity(propensity, 3, 5.0)
    assert weights(given, show, 3)[0].tolist() == pytest.approx([1, 2, 8])
    assert weights(clipped, show, 3)[0].tolist() == pytest.approx([1, 2, 5])
    assert given.propensity() is propensity
    assert given.state() == {}


def test_given_propensities_must_know_all_displayed_positions():
    with pytest.raises(SettingsError, match="show 3 documents, but the propensity knows 2 pos"):
        InversePropensity(Propensity.of([1.0, 0.5]), 3)


def test_without_correction_every_click_counts_one_and_nothing_is_believed(show):
    naive = Naive()
    assert weights(naive, show, 3).tolist() == [[1, 1, 1]]
    assert naive.propensity() is None
    assert naive.state() == {}


def test_given_curves_by_context_weigh_each_session_by_its_own(show):
    curves = {"phone": {"examination": [1.0, 0.1]}, "desk": {"examination": [1.0, 0.5]}}
    given = Propensity(
        np.array([1.0, 0.2]), "dla", details={"context": "device", "contexts": curves}
    )
    correction = InversePropensity(given, 2, contexts=("desk", "tablet", "phone"))
    rows = weights(correction, show, 2, contexts=[2, 0, 1, 2])
    assert rows[:, 1].tolist() == pytest.approx([10, 2, 5, 10])
