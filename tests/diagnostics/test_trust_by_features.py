import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.user import perceived_relevance
from dualrank.clicks.users import TrustingUser
from dualrank.diagnostics.trust_by_features import slope_along_the_list


def slope(world, user, seed, noise=0.2):
    made = world(queries=600, seed=seed)
    log = made.log(60_000, rankers=1, user=user)
    relevance = perceived_relevance(made.data.grades, 4, 0.1)
    scores = np.log(relevance) + noise * made.rng.normal(size=len(relevance))
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
