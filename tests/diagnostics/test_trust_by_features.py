import numpy as np
import pytest
from scipy.optimize import minimize

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.user import perceived_relevance
from dualrank.clicks.users import TrustingUser
from dualrank.diagnostics.trust_by_features import _fit, slope_along_the_list


def slope(world, user, seed, noise=0.2):
    here = world(queries=600, seed=seed)
    log = here.log(60_000, rankers=1, user=user)
    relevance = perceived_relevance(here.data.grades, 4, 0.1)
    scores = np.log(relevance) + noise * here.rng.normal(size=len(relevance))
    return slope_along_the_list(log, scores)


@pytest.mark.parametrize("seed", range(4))
def test_scores_tell_as_much_at_every_rank_without_trust(world, seed):
    found = slope(world, PositionBasedUser(), seed)
    assert found.slope > 0
    assert abs(found.growth) < 3.5 * found.error


@pytest.mark.parametrize("seed", range(2))
def test_scores_tell_less_at_the_top_with_trust(world, seed):
    found = slope(world, TrustingUser(), seed)
    assert found.growth > 4 * found.error
    assert found.relative > 0.1


def test_few_lists_and_equal_scores_say_nothing(world):
    here = world(queries=20)
    log = here.log(500, rankers=1)
    assert slope_along_the_list(log, here.data.grades) is None
    here = world(queries=300)
    assert slope_along_the_list(here.log(5_000, rankers=1), 0 * here.data.grades) is None


def test_the_fit_is_the_summit_of_the_likelihood():
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(200, 4, 3))
    mask = np.arange(4) < rng.integers(2, 5, 200)[:, None]
    clicks = np.where(mask, rng.integers(0, 4, (200, 4)), 0).astype(float)

    def loss(weights):
        utility = np.where(mask, inputs @ weights, -np.inf)
        log_p = utility - np.logaddexp.reduce(utility, axis=1, keepdims=True)
        return -(clicks * np.where(mask, log_p, 0)).sum()

    weights, errors = _fit(inputs, clicks, mask, np.arange(200))
    np.testing.assert_allclose(weights, minimize(loss, np.zeros(3)).x, atol=1e-3)
    assert (errors > 0).all()
