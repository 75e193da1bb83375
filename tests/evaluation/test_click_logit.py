"""Where a click falls, or whether what was read is clicked, as a regression on documents."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize

from dualrank.evaluation.click_logit import RIDGE, ClickLogit, ReadLogit

NUMBERS, DEPTH = 3, 4
COUNT = NUMBERS + DEPTH


def lists(kind, seed=0, count=200):
    rng = np.random.default_rng(seed)
    mask = np.arange(DEPTH) < rng.integers(2, DEPTH + 1, count)[:, None]
    inputs = np.where(mask[..., None], rng.normal(size=(count, DEPTH, NUMBERS)), 0.0)
    clicks = np.where(mask, rng.integers(0, 4, mask.shape), 0).astype(float)
    if kind is ClickLogit:
        return ClickLogit(inputs, clicks, mask)
    # Padding is counted as read by who reads to the end, and must not matter.
    examined = clicks + rng.integers(0, 6, mask.shape)
    return ReadLogit(inputs, clicks, mask, examined)


@pytest.fixture(params=[ClickLogit, ReadLogit])
def logit(request):
    return lists(request.param)


def loss(logit, ridge, around=0.0):
    """Minus the likelihood, document by document, with the penalty."""

    def value(parameters):
        total = (ridge / 2 * (parameters - around) ** 2).sum()
        for row, mask in enumerate(logit.mask):
            shown = mask.sum()
            utility = logit.inputs[row, :shown] @ parameters[:NUMBERS]
            utility = utility + parameters[NUMBERS : NUMBERS + shown]
            clicks = logit.clicks[row, :shown]
            if isinstance(logit, ReadLogit):
                chance = 1 / (1 + np.exp(-utility))
                skipped = logit.examined[row, :shown] - clicks
                total -= (clicks * np.log(chance) + skipped * np.log(1 - chance)).sum()
            else:
                total -= (clicks * (utility - np.log(np.exp(utility).sum()))).sum()
        return total

    return value


def test_the_fit_is_the_summit_that_a_general_optimiser_finds(logit):
    logit = logit.part(np.arange(200) < 60)
    around = np.linspace(-0.5, 0.5, COUNT)
    for ridge in (0.5, np.linspace(0.5, 40, COUNT)):
        found = minimize(loss(logit, ridge, around), np.zeros(COUNT), tol=1e-10)
        np.testing.assert_allclose(logit.fit(ridge, around), found.x, atol=1e-4)


def test_slopes_and_information_are_the_derivatives(logit):
    at = np.random.default_rng(1).normal(size=COUNT)
    value = loss(logit, 0.0)
    np.testing.assert_allclose(-logit.log_likelihood(at).sum(), value(at))
    assert check_grad(value, lambda w: -logit.slopes(w).sum(axis=0), at) < 1e-3
    step = 1e-5 * np.eye(COUNT)
    bend = [
        (logit.slopes(at - each).sum(axis=0) - logit.slopes(at + each).sum(axis=0)) / 2e-5
        for each in step
    ]
    np.testing.assert_allclose(logit.information(at), bend, rtol=1e-4, atol=1e-4)


def test_a_part_is_those_lists(logit):
    at, chosen = np.ones(COUNT), np.arange(200) % 3 == 0
    np.testing.assert_array_equal(
        logit.part(chosen).log_likelihood(at), logit.log_likelihood(at)[chosen]
    )


def test_a_rank_that_is_never_clicked_has_a_finite_belief(logit):
    logit.clicks[:, 2] = 0
    assert np.isfinite(logit.fit()).all()


def test_a_strong_prior_holds_what_clicks_would_move(logit):
    around = np.array([0.4, -1.0, 0.0, *np.zeros(DEPTH)])
    pull = np.append(np.full(NUMBERS, 1e9), np.full(DEPTH, 0.01))
    np.testing.assert_allclose(logit.fit(pull, around)[:NUMBERS], around[:NUMBERS], atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", [ClickLogit, ReadLogit])
@pytest.mark.parametrize("free", [0, 1])
def test_weights_are_the_optimum_among_those_that_are_not_negative(kind, seed, free):
    logit = lists(kind, seed, count=50)
    # Numbers that say much the same, so that one of them would be negative.
    common = logit.inputs[:, :, :1]
    logit = replace(logit, inputs=0.4 * logit.inputs + common)
    around = np.array([0.3, 0.0, 0.0])[: NUMBERS - free]
    pull = np.append(np.full(NUMBERS - free, 5.0), np.full(DEPTH + free, RIDGE))
    centre = np.append(around, np.zeros(DEPTH + free))
    value = loss(logit, pull, centre)
    bounds = [(0, None)] * (NUMBERS - free) + [(None, None)] * (DEPTH + free)
    best = minimize(
        value,
        np.full(COUNT, 0.1),
        jac=lambda at: pull * (at - centre) - logit.slopes(at).sum(axis=0),
        bounds=bounds,
        method="L-BFGS-B",
        tol=1e-12,
    )
    found = logit.fit_weights(5.0, around, free)
    assert (found[: NUMBERS - free] >= 0).all()
    assert value(found) == pytest.approx(best.fun, rel=1e-6)
    np.testing.assert_allclose(found[:NUMBERS], best.x[:NUMBERS], atol=2e-3)


def test_weights_of_nothing_but_harm_are_all_zero(logit):
    """What is clicked less the more it scores gets no weight."""
    harm = replace(logit, inputs=-np.repeat(logit.clicks[:, :, None], NUMBERS, axis=2))
    found = harm.fit_weights(1.0, np.zeros(NUMBERS))
    assert not found[:NUMBERS].any()
    assert np.isfinite(found).all()
