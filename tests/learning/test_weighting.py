"""How much a click counts; and dual learning converges to what the paper's analysis says."""

import numpy as np
import pytest
import torch
from dualrank.corrections.weighting import DualLearning, GivenPropensity, NoCorrection

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.corrections.losses import masked_log_softmax
from dualrank.corrections.position_models import (
    CONTEXT_SPREAD,
    ContextualPositions,
    PositionNetwork,
    PositionVariables,
    RecurrentPositions,
)
from dualrank.errors import SettingsError
from dualrank.propensity.propensity import Propensity
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


def converge(log_relevance, labels, mask, model=None, steps=30_000):
    """Full-batch steps of φ, ranker fixed, until it moves no more."""
    dual = DualLearning(DEPTH, FULL_BATCH, (model or PositionVariables(DEPTH)).double())
    before = np.zeros(DEPTH)
    for step in range(steps):
        learn(dual, log_relevance, labels, mask, len(labels))
        if step % 100 == 0:
            now = np.log(dual.model.examination())
            if np.abs(now - before).max() < 1e-8:
                return dual
            before = now
    raise AssertionError("φ does not settle")


def learn(dual, log_relevance, labels, mask, drawn, contexts=None):
    """One step of φ."""
    dual.learn(dual.evidence(log_relevance, labels, mask, contexts), drawn)


def closed_form(log_relevance, clicks):
    """g_i = E[c_i f_1/f_i] / Σ_j E[c_j f_1/f_j]."""
    f = log_relevance.exp().numpy()
    weighted = (clicks * f[:, :1] / f).mean(axis=0)
    return weighted / weighted.sum()


@pytest.mark.parametrize("seed", [0, 1])
def test_with_any_fixed_ranker_examination_converges_to_the_closed_form(seed):
    rng = np.random.default_rng(seed)
    scores = torch.from_numpy(rng.normal(size=(80, DEPTH)))
    clicks = rng.random((80, DEPTH)) < 0.3
    mask = torch.ones(80, DEPTH, dtype=torch.bool)
    log_relevance = masked_log_softmax(scores, mask)
    dual = converge(log_relevance, torch.from_numpy(clicks.astype(float)), mask)
    learned = torch.softmax(dual.model.phi.detach(), 0).numpy()
    np.testing.assert_allclose(learned, closed_form(log_relevance, clicks), atol=1e-6)
    assert learned.max() > 1.5 * learned.min()


@pytest.mark.parametrize(
    ("kind", "eta"),
    [
        *((PositionVariables, eta) for eta in (0.5, 1.0, 2.0)),
        (PositionNetwork, 1.0),
        (RecurrentPositions, 1.0),
    ],
)
def test_with_the_true_relevance_examination_converges_to_the_truth(kind, eta):
    relevance = true_relevance(200)
    rho = PositionBasedUser(eta=eta).examination(DEPTH)
    mask = torch.ones(relevance.shape, dtype=torch.bool)
    log_relevance = masked_log_softmax(torch.from_numpy(np.log(relevance)), mask)
    dual = converge(log_relevance, torch.from_numpy(rho * relevance), mask, kind(DEPTH))
    np.testing.assert_allclose(dual.propensity().examination, rho / rho[0], atol=1e-6)


def test_lists_of_different_lengths_do_not_confound_the_examination():
    relevance = true_relevance(200)
    rho = PositionBasedUser().examination(DEPTH)
    lengths = np.random.default_rng(5).integers(1, DEPTH + 1, 200)
    shown = np.arange(DEPTH) < lengths[:, None]
    mask = torch.from_numpy(shown)
    log_relevance = masked_log_softmax(torch.from_numpy(np.log(relevance)), mask)
    dual = converge(log_relevance, torch.from_numpy(rho * relevance * shown), mask)
    np.testing.assert_allclose(dual.propensity().examination, rho / rho[0], atol=1e-6)


def test_every_context_converges_to_its_own_truth():
    """With as many sessions as one likes the prior has nothing to say."""
    relevance = true_relevance(200)
    etas = np.array([0.5, 1.5])
    rho = np.array([PositionBasedUser(eta=eta).examination(DEPTH) for eta in etas])
    contexts = np.random.default_rng(0).permutation(np.repeat([0, 1], [150, 50]))
    lengths = np.random.default_rng(5).choice([6, DEPTH], 200)
    shown = np.arange(DEPTH) < lengths[:, None]
    mask = torch.from_numpy(shown)
    log_relevance = masked_log_softmax(torch.from_numpy(np.log(relevance)), mask)
    model = ContextualPositions(DEPTH, {"desk": 150 * 10**9, "phone": 50 * 10**9})
    labels = torch.from_numpy(rho[contexts] * relevance * shown)
    dual = DualLearning(DEPTH, FULL_BATCH, model.double())
    for _ in range(3_000):
        learn(dual, log_relevance, labels, mask, 200, torch.from_numpy(contexts))
    np.testing.assert_allclose(dual.model.examination(), rho / rho[:, :1], rtol=3e-3)
    weights = dual.weights(torch.from_numpy(contexts))
    np.testing.assert_allclose(weights, (rho[:, :1] / rho)[contexts], rtol=3e-3)


def test_a_rare_context_borrows_strength():
    """1% of the sessions alone miss their curve by more than with the help of the others."""
    n, etas, lists = {"desk": 49_500, "watch": 500}, [1.0, 1.2], 30
    rho = np.array([PositionBasedUser(eta=eta).examination(DEPTH) for eta in etas])
    contexts = torch.from_numpy(np.repeat([0, 1], lists))
    mask = torch.ones(2 * lists, DEPTH, dtype=torch.bool)
    errors = {CONTEXT_SPREAD: [], np.inf: []}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        relevance = true_relevance(lists, seed)
        clicks = [
            rng.binomial(rng.multinomial(count, np.full(lists, 1 / lists))[:, None], of * relevance)
            for count, of in zip(n.values(), rho, strict=True)
        ]
        labels = torch.from_numpy(np.concatenate(clicks).astype(float))
        scores = torch.from_numpy(np.log(np.tile(relevance, (2, 1))))
        for spread, found in errors.items():
            model = ContextualPositions(DEPTH, n, spread=spread)
            dual = DualLearning(DEPTH, FULL_BATCH, model.double())
            for _ in range(600):
                learn(dual, masked_log_softmax(scores, mask), labels, mask, 50_000, contexts)
            wrong = np.log(dual.model.examination() * rho[:, :1] / rho)
            found.append(np.abs(wrong).mean(axis=1))
    frequent, rare = np.mean(errors[CONTEXT_SPREAD], axis=0)
    frequent_alone, rare_alone = np.mean(errors[np.inf], axis=0)
    assert rare < 0.8 * rare_alone
    assert frequent < frequent_alone + 0.005


def test_with_sampled_clicks_examination_is_within_the_sampling_error_of_the_truth():
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
    mask = torch.ones(300, DEPTH, dtype=torch.bool)
    log_relevance = masked_log_softmax(torch.from_numpy(np.log(relevance)), mask)
    dual = converge(log_relevance, torch.from_numpy(clicks.astype(float)), mask)
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


def test_an_even_ranker_leaves_the_raw_click_through_curve():
    relevance = true_relevance(200)
    rho = PositionBasedUser().examination(DEPTH)
    mask = torch.ones(relevance.shape, dtype=torch.bool)
    even = masked_log_softmax(torch.zeros(relevance.shape, dtype=torch.float64), mask)
    dual = converge(even, torch.from_numpy(rho * relevance), mask)
    raw = (rho * relevance).mean(0)
    np.testing.assert_allclose(dual.propensity().examination, raw / raw[0], atol=1e-6)


def test_dual_learning_starts_with_every_weight_one():
    dual = DualLearning(3, TrainingSettings())
    assert dual.weights().tolist() == [pytest.approx([1, 1, 1])]
    assert dual.propensity().examination.tolist() == [1, 1, 1]


def test_dual_weights_are_the_inverse_of_the_believed_examination():
    dual = DualLearning(4, TrainingSettings())
    dual.model.phi.data = torch.tensor([0.3, -0.2, -1.0, -2.5])
    weights = dual.weights()
    np.testing.assert_allclose(weights[0], dual.propensity().weights, rtol=1e-6)
    assert not weights.requires_grad


def test_dual_weights_are_clipped_at_max_weight():
    dual = DualLearning(3, TrainingSettings(max_weight=20.0))
    dual.model.phi.data = torch.tensor([0.0, -2.0, -500.0])
    weights = dual.weights()[0]
    np.testing.assert_allclose(weights, [1, np.exp(2), 20], rtol=1e-5)


@pytest.mark.parametrize("max_weight", [2.0, 50.0])
def test_relevance_weights_are_clipped_at_max_weight(max_weight):
    """One click at the last position, whose inverse relevance is e^30, moves φ as max_weight."""
    settings = TrainingSettings(
        max_weight=max_weight, schedule="constant", propensity_rate=0.01, gradient_clip=1e9
    )
    dual = DualLearning(2, settings)
    mask = torch.ones(1, 2, dtype=torch.bool)
    log_relevance = masked_log_softmax(torch.tensor([[30.0, 0.0]]), mask)
    learn(dual, log_relevance, torch.tensor([[0.0, 1.0]]), mask, drawn=1)
    # The gradient at φ = 0 is w · (1/2, −1/2).
    expected = 0.01 * max_weight / 2
    np.testing.assert_allclose(dual.model.phi.detach(), [-expected, expected], rtol=1e-5)


def test_a_click_at_padding_would_teach_nothing():
    dual = DualLearning(3, TrainingSettings(schedule="constant"))
    mask = torch.tensor([[True, True, False]])
    log_relevance = masked_log_softmax(torch.zeros(1, 3), mask)
    learn(dual, log_relevance, torch.tensor([[0.0, 0.0, 1.0]]), mask, drawn=1)
    assert dual.model.phi.tolist() == [0, 0, 0]


def test_given_propensities_weigh_by_their_inverse_up_to_the_depth_and_the_clip():
    propensity = Propensity.of([0.8, 0.4, 0.1, 0.01])
    assert GivenPropensity(propensity, 3).weights()[0].tolist() == pytest.approx([1, 2, 8])
    assert GivenPropensity(propensity, 3, 5.0).weights()[0].tolist() == pytest.approx([1, 2, 5])
    assert GivenPropensity(propensity, 3).propensity() is propensity
    assert GivenPropensity(propensity, 3).optimizer() is None


def test_given_propensities_must_know_all_displayed_positions():
    with pytest.raises(SettingsError, match="show 3 documents, but the propensity knows 2 pos"):
        GivenPropensity(Propensity.of([1.0, 0.5]), 3)


def test_without_correction_every_click_counts_one_and_nothing_is_believed():
    weighting = NoCorrection()
    assert weighting.weights() == 1.0
    assert weighting.propensity() is None
    assert weighting.optimizer() is None


def test_given_curves_by_context_weigh_each_session_by_its_own():
    curves = {"phone": {"examination": [1.0, 0.1]}, "desk": {"examination": [1.0, 0.5]}}
    given = Propensity(
        np.array([1.0, 0.2]), "dla", details={"context": "device", "contexts": curves}
    )
    weighting = GivenPropensity(given, 2, contexts=("desk", "tablet", "phone"))
    rows = weighting.weights(torch.tensor([2, 0, 1, 2]))
    assert rows[:, 1].tolist() == pytest.approx([10, 2, 5, 10])
