"""Likelihood finds examination and relevance where clicks factorise, alone and on a ground."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.corrections.correction import Basis
from dualrank.corrections.dual import DualLearning
from dualrank.corrections.likelihood import LEAST_WORTH, Likelihood
from dualrank.corrections.position_models import ContextualPositions
from dualrank.corrections.stopping import Stopping
from dualrank.data.click_log import ClickLog
from dualrank.data.lists import RankedLists
from dualrank.rankers.ranker import Step
from dualrank.settings import TrainingSettings

DEPTH = 8
RHO = PositionBasedUser().examination(DEPTH)
FULL_BATCH = TrainingSettings(
    schedule="constant",
    learning_rate=1.0,
    propensity_rate=4.0,
    normalisation="clicks",
    gradient_clip=1e9,
)


def relevance(lists, seed=0):
    """Chances of a click that lie a factor of ten apart, the better ones rather at the top."""
    rng = np.random.default_rng(seed)
    utility = -np.arange(DEPTH) / 8 + 0.7 * rng.normal(size=(lists, DEPTH))
    return np.exp(utility - utility.max())


def doubled(correction):
    correction.model.double()
    if correction.worth is not None:
        correction.worth = correction.worth.double()
    correction.start(torch.device("cpu"))
    return correction


def climb(correction, scores, shown, steps=600):
    """Full-batch steps of what is believed, the ranker fixed."""
    for _ in range(steps):
        signal = correction.signal(scores, shown)
        correction.learn(signal.evidence, Step(len(shown.labels), signal.clicks))
    return correction


def test_with_the_true_relevance_examination_converges_to_the_truth(show):
    r = relevance(60)
    likelihood = doubled(Likelihood(DEPTH, FULL_BATCH))
    climb(likelihood, torch.from_numpy(np.log(r)), show(RHO * r))
    np.testing.assert_allclose(likelihood.propensity().examination, RHO / RHO[0], atol=1e-6)


def test_every_context_converges_to_its_own_truth(show):
    r, contexts = relevance(60), np.arange(60) % 2
    rho = np.array([PositionBasedUser(eta=eta).examination(DEPTH) for eta in (0.5, 1.5)])
    model = ContextualPositions(DEPTH, {"desk": 10**12, "phone": 10**12})
    likelihood = doubled(Likelihood(DEPTH, FULL_BATCH, model))
    shown = show(rho[contexts] * r, contexts=contexts)
    climb(likelihood, torch.from_numpy(np.log(r)), shown, 1_500)
    np.testing.assert_allclose(model.examination(), rho / rho[:, :1], rtol=1e-4)


def test_no_click_is_weighted_by_an_inverse(show):
    """One click at the last position moves scores by less than 1, whatever is believed of it."""
    likelihood, dual = (kind(2, TrainingSettings()) for kind in (Likelihood, DualLearning))
    shown = show(np.array([[0.0, 1.0]], np.float32))
    for correction in (likelihood, dual):
        correction.model.phi.data = torch.tensor([0.0, -5.0])
    scores = torch.zeros(1, 2)
    assert likelihood.signal(scores, shown).slope.abs().max() < 1
    assert dual.signal(scores, shown).slope.abs().max() > 50


def grounded(show, worth=0.7, lists=400):
    """A log whose documents stand by a score s of the logging ranker, which is all of relevance.

    Lists differ in how far their scores lie apart, which tells the worth of s from φ.
    """
    rng = np.random.default_rng(5)
    s = -np.sort(-rng.normal(size=(lists, DEPTH)) * rng.uniform(0.2, 2.0, (lists, 1)), axis=1)
    rates = RHO * np.exp(worth * s - (worth * s).max())
    documents = np.arange(s.size, dtype=np.int32).reshape(s.shape)
    sessions = 200
    clicks = rng.random((sessions, *rates.shape)) < rates
    rows = np.tile(np.arange(lists), sessions)
    shown_lists = RankedLists(documents, np.arange(lists, dtype=np.int32))
    log = ClickLog.from_clicks(shown_lists, rows, clicks.reshape(-1, DEPTH))
    shown = replace(show(rates), ground=torch.from_numpy(s))
    return log, s.astype(np.float32), shown


@pytest.mark.parametrize("kind", [Likelihood, DualLearning])
def test_a_ground_tells_the_logging_ranker_from_examination(kind, show):
    """The ranker has seen nothing yet: φ alone takes the logging ranker for examination."""
    log, s, shown = grounded(show)
    basis = Basis(DEPTH, FULL_BATCH, log, ground=s if kind is Likelihood else None)
    correction = kind.build(basis)
    correction.model.double()
    if kind is Likelihood:
        doubled(correction)
        # It begins near the truth, as far as some 10,000 clicks tell it, and goes there.
        assert correction.worth_of_ground() == pytest.approx(0.7, abs=0.05)
        assert np.abs(np.log(correction.propensity().examination * RHO[0] / RHO)).max() < 0.15
    correction.start(torch.device("cpu"))
    climb(correction, torch.zeros(shown.labels.shape, dtype=torch.float64), shown, 1_500)
    off = np.abs(np.log(correction.propensity().examination * RHO[0] / RHO)).max()
    if kind is Likelihood:
        assert correction.worth_of_ground() == pytest.approx(0.7, abs=1e-4)
        assert off < 1e-4
    else:
        assert off > 1


def test_a_logging_ranker_that_clicks_speak_against_is_still_worth_a_little(show):
    """And φ begins where clicks have it beside that little."""
    log, s, shown = grounded(show, worth=-0.5)
    likelihood = doubled(Likelihood.build(Basis(DEPTH, FULL_BATCH, log, ground=s)))
    assert likelihood.worth_of_ground() == pytest.approx(LEAST_WORTH)
    begun = likelihood.propensity().examination
    beside = replace(shown, ground=None)
    scores = torch.from_numpy(LEAST_WORTH * s).double()
    climbed = climb(doubled(Likelihood(DEPTH, FULL_BATCH)), scores, beside, 1_500)
    expected = climbed.propensity().examination
    assert np.abs(np.log(begun / expected)).max() < 0.15
    # Nor is it unlearned: a ranker of features alone would put on top what was never displayed.
    likelihood.start(torch.device("cpu"))
    climb(likelihood, torch.zeros(shown.labels.shape, dtype=torch.float64), shown, 200)
    assert likelihood.worth_of_ground() == pytest.approx(LEAST_WORTH)


def test_where_scores_lie_equally_far_apart_on_all_lists_position_has_it_all(show):
    """Then nothing tells them from examination, and the curve is that of likelihood alone."""
    log, s, _ = grounded(show)
    same = np.broadcast_to(s.mean(axis=0), s.shape).copy()
    found = Likelihood.build(Basis(DEPTH, FULL_BATCH, log, ground=same))
    assert found.worth_of_ground() == pytest.approx(LEAST_WORTH)
    utility = LEAST_WORTH * same[0] + np.log(found.propensity().examination)
    clicks = log.clicks_per_list.sum(axis=0)
    np.testing.assert_allclose(utility - utility[0], np.log(clicks / clicks[0]), atol=0.05)


def test_without_a_ground_the_worth_of_one_is_not_learned():
    likelihood = Likelihood(DEPTH, FULL_BATCH)
    assert likelihood.worth is None
    assert likelihood.worth_of_ground() == 1
    assert not any(name.startswith("worth") for name in likelihood.state())


def test_stopping_has_its_summit_at_the_attraction_where_a_click_ends_the_session(show):
    """Readers go down the list and leave with their first click."""
    attraction = np.random.default_rng(0).uniform(0.1, 0.7, (300, DEPTH))
    read = np.cumprod(np.hstack([np.ones((300, 1)), 1 - attraction[:, :-1]]), axis=1)
    stopping = doubled(Stopping(DEPTH, FULL_BATCH))
    shown = replace(show(read * attraction), examined=torch.from_numpy(read))
    truth = torch.from_numpy(np.log(attraction / (1 - attraction)))
    signal = stopping.signal(truth, shown)
    np.testing.assert_allclose(signal.slope, 0, atol=1e-12)
    np.testing.assert_allclose(signal.evidence[0], 0, atol=1e-10)
    assert (signal.curvature() > 0).all()


def test_what_stands_below_a_strong_document_is_not_taken_for_a_weak_one(show):
    """A free number for every document, climbed to the summit of either likelihood."""
    attraction = np.array([[0.8, 0.4], [0.1, 0.4]])
    read = np.stack([np.ones(2), 1 - attraction[:, 0]], axis=1)
    shown = replace(show(read * attraction), examined=torch.from_numpy(read))
    found = {}
    for kind in (Stopping, Likelihood):
        correction = doubled(kind(2, FULL_BATCH))
        scores = torch.zeros(2, 2, dtype=torch.float64)
        for _ in range(1_500):
            scores -= correction.signal(scores, shown).slope
        found[kind] = scores
    np.testing.assert_allclose(torch.sigmoid(found[Stopping]), attraction, atol=1e-6)
    # By where clicks fell it looks ten times as weak as the one above it, and not twice.
    first, second = found[Likelihood][0].tolist()
    assert second - first == pytest.approx(np.log(0.2 * 0.4 / 0.8), abs=1e-4)


def test_what_nobody_read_says_nothing(show):
    stopping = Stopping(2, TrainingSettings())
    shown = replace(show(np.array([[1.0, 0.0]], np.float32)), examined=torch.tensor([[1.0, 0.0]]))
    signal = stopping.signal(torch.zeros(1, 2), shown)
    assert signal.slope.tolist() == [[-0.5, 0.0]]
    assert stopping.propensity() is None
