"""Ways down a page, against every hidden state written out."""

import itertools

import numpy as np
import pytest

from dualrank.clicks.browsing import ByLastClick, Chain, Independent

DEPTH = 4
PATTERNS = np.array(list(itertools.product([False, True], repeat=DEPTH)))


def chain(seed=0, lists=3):
    rng = np.random.default_rng(seed)
    attraction = rng.random((lists, DEPTH))
    attraction[0, -1] = 0  # padding
    return Chain(attraction, rng.random((lists, DEPTH)), after_skip=0.8)


def by_last_click(seed=0, lists=3):
    rng = np.random.default_rng(seed)
    return ByLastClick(rng.random((lists, DEPTH)), rng.random((DEPTH, DEPTH + 1)))


def independent(seed=0, lists=3):
    return Independent(np.random.default_rng(seed).random((lists, DEPTH)))


EVERY_KIND = pytest.mark.parametrize("pages", [chain(), by_last_click(), independent()])


def pattern_probability(pages, row, pattern):
    """P(pattern) as the product of its conditional probabilities."""
    p = pages.take(np.array([row])).conditional(pattern[None])[0]
    return np.prod(np.where(pattern, p, 1 - p))


def chain_by_hidden_states(pages, row, pattern):
    """Sum over where the user stops reading."""
    total = 0.0
    for read in range(1, DEPTH + 1):
        probability = 1.0
        for k in range(DEPTH):
            a = pages.attraction[row, k]
            go_on = pages.after_click[row, k] if pattern[k] else pages.after_skip
            if k < read:
                probability *= a if pattern[k] else 1 - a
                if k < DEPTH - 1:
                    probability *= go_on if k + 1 < read else 1 - go_on
            elif pattern[k]:
                probability = 0.0
        total += probability
    return total


def browsing_by_hidden_states(pages, row, pattern):
    """Sum over which documents were examined."""
    total = 0.0
    for examined in itertools.product([False, True], repeat=DEPTH):
        probability, last = 1.0, 0
        for k in range(DEPTH):
            gamma, a = pages.examination[k, last], pages.attraction[row, k]
            probability *= gamma if examined[k] else 1 - gamma
            probability *= (a if pattern[k] else 1 - a) if examined[k] else not pattern[k]
            last = k + 1 if pattern[k] else last
        total += probability
    return total


@pytest.mark.parametrize(
    ("pages", "by_hidden_states"),
    [(chain(), chain_by_hidden_states), (by_last_click(), browsing_by_hidden_states)],
)
def test_a_pattern_is_as_likely_as_the_sum_over_hidden_states(pages, by_hidden_states):
    for row in range(3):
        for pattern in PATTERNS:
            expected = by_hidden_states(pages, row, pattern)
            assert pattern_probability(pages, row, pattern) == pytest.approx(expected, abs=1e-14)


@EVERY_KIND
def test_patterns_sum_to_one_and_to_the_marginal_clicks(pages):
    for row in range(3):
        p = np.array([pattern_probability(pages, row, pattern) for pattern in PATTERNS])
        assert p.sum() == pytest.approx(1, abs=1e-12)
        np.testing.assert_allclose(p @ PATTERNS, pages.marginal()[row], atol=1e-12)


@EVERY_KIND
def test_samples_have_the_distribution_of_the_patterns(pages):
    sessions = 40_000
    clicks = pages.take(np.full(sessions, 1)).sample(np.random.default_rng(1))
    seen = np.bincount(clicks @ (1 << np.arange(DEPTH)[::-1]), minlength=len(PATTERNS))
    p = np.array([pattern_probability(pages, 1, pattern) for pattern in PATTERNS])
    error = np.sqrt(sessions * p * (1 - p)) + 1e-9
    assert (np.abs(seen - sessions * p) / error).max() < 4.5


def test_a_certain_click_leaves_nothing_to_infer():
    """A document that is always clicked when examined and was not: the user had left."""
    pages = Chain(np.ones((1, 2)), np.zeros((1, 2)), after_skip=1.0)
    assert pages.conditional(np.array([[False, True]])).tolist() == [[1.0, 0.0]]
