"""Where a click falls, as a regression on what is known of the documents."""

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize

from dualrank.evaluation.click_logit import ClickLogit


@pytest.fixture
def logit():
    rng = np.random.default_rng(0)
    mask = np.arange(4) < rng.integers(2, 5, 200)[:, None]
    inputs = np.where(mask[..., None], rng.normal(size=(200, 4, 3)), 0.0)
    clicks = np.where(mask, rng.integers(0, 4, (200, 4)), 0).astype(float)
    return ClickLogit(inputs, clicks, mask)


def loss(logit, ridge):
    def value(parameters):
        utility = logit.inputs @ parameters[:3] + parameters[3:]
        utility = np.where(logit.mask, utility, -np.inf)
        log_p = utility - np.logaddexp.reduce(utility, axis=1, keepdims=True)
        likelihood = (logit.clicks * np.where(logit.mask, log_p, 0)).sum()
        return ridge / 2 * parameters @ parameters - likelihood

    return value


def test_the_fit_is_the_summit_that_a_general_optimiser_finds(logit):
    found = minimize(loss(logit, 0.01), np.zeros(7), tol=1e-10)
    np.testing.assert_allclose(logit.fit(0.01), found.x, atol=1e-4)


def test_slopes_and_information_are_the_derivatives(logit):
    at = np.random.default_rng(1).normal(size=7)
    value = loss(logit, 0.0)
    np.testing.assert_allclose(-logit.log_likelihood(at).sum(), value(at))
    assert check_grad(value, lambda w: -logit.slopes(w).sum(axis=0), at) < 1e-3
    step = 1e-5 * np.eye(7)
    bend = [
        (logit.slopes(at - each).sum(axis=0) - logit.slopes(at + each).sum(axis=0)) / 2e-5
        for each in step
    ]
    np.testing.assert_allclose(logit.information(at), bend, rtol=1e-4, atol=1e-4)


def test_a_rank_that_is_never_clicked_has_a_finite_belief(logit):
    logit.clicks[:, 2] = 0
    assert np.isfinite(logit.fit()).all()
