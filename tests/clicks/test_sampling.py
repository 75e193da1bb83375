"""Whole logs from simulated users: as many sessions as asked for, clicked as the user clicks."""

import numpy as np
import pytest

from dualrank.clicks import sampling
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.dataset import Dataset
from dualrank.data.lists import top_lists
from dualrank.errors import DataError

SESSIONS = 60_000


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 8, 20)
    return Dataset.from_arrays(
        rng.normal(size=(lengths.sum(), 1)),
        np.repeat(np.arange(20), lengths),
        rng.integers(0, 5, lengths.sum()),
        max_grade=4,
    )


@pytest.fixture(scope="module")
def lists(data):
    return top_lists(data, data.features[:, 0], 5)


@pytest.fixture(scope="module")
def expected(data, lists):
    """Mean clicks per list and position over all sessions."""
    p = PositionBasedUser().click_probabilities(lists.gather(data.grades), lists.mask, 4)
    return p / len(lists)


def off(clicks, expected, mask):
    """Errors in standard deviations: a click count is binomial over all sessions."""
    error = np.sqrt(SESSIONS * expected * (1 - expected))
    return np.abs(clicks - SESSIONS * expected)[mask] / error[mask]


def test_a_log_has_the_clicks_of_its_user(data, lists, expected):
    log = sample_log(data, lists, PositionBasedUser(), SESSIONS, np.random.default_rng(1))
    assert log.sessions == SESSIONS
    # Some 70 errors: a normal exceeds 4.5 once in 150,000.
    assert off(log.clicks_per_list, expected, lists.mask).max() < 4.5
    assert not log.clicks_per_list[~lists.mask].any()


def test_lists_are_shown_equally_often(data, lists):
    log = sample_log(data, lists, PositionBasedUser(), SESSIONS, np.random.default_rng(2))
    share = 1 / len(lists)
    error = np.sqrt(SESSIONS * share * (1 - share))
    assert np.abs(log.sessions_per_list - SESSIONS * share).max() < 4.5 * error


def test_lists_are_shown_as_often_as_their_weights_say(data, lists):
    weights = np.arange(len(lists), dtype=float)
    log = sample_log(data, lists, PositionBasedUser(), SESSIONS, 2, weights=weights)
    share = weights / weights.sum()
    error = np.sqrt(SESSIONS * share * (1 - share))
    assert log.sessions_per_list[0] == 0
    assert (np.abs(log.sessions_per_list - SESSIONS * share) <= 4.5 * error).all()


def test_clicks_of_one_session_are_independent_given_the_list(data, lists):
    """Clicks on the first two positions of a list, over many sessions of that list alone."""
    number = int(np.flatnonzero(lists.mask[:, 1])[0])
    one = data.take([number])
    log = sample_log(
        one, top_lists(one, one.features[:, 0], 5), PositionBasedUser(), SESSIONS,
        np.random.default_rng(3),
    )  # fmt: skip
    clicks = np.repeat(log.clicks[:, :2], log.counts, axis=0)
    correlation = np.corrcoef(clicks.T)[0, 1]
    assert abs(correlation) < 4 / np.sqrt(SESSIONS)


def test_counts_have_the_distribution_of_the_log(data, lists, expected):
    rng = np.random.default_rng(4)
    per_list = rng.multinomial(SESSIONS, np.full(len(lists), 1 / len(lists)))
    pages = PositionBasedUser().browse(lists.gather(data.grades), lists.mask, 4)
    counts = pages.sample_counts(per_list, rng)
    assert off(counts, expected, lists.mask).max() < 4.5
    assert not counts[~lists.mask].any()


def test_the_seed_decides_and_blocks_only_cut(data, lists, monkeypatch):
    def log(seed):
        return sample_log(data, lists, PositionBasedUser(), 1_000, np.random.default_rng(seed))

    whole = log(5)
    assert np.array_equal(whole.clicks_per_list, log(5).clicks_per_list)
    assert not np.array_equal(whole.clicks_per_list, log(6).clicks_per_list)
    monkeypatch.setattr(sampling, "SESSIONS_PER_BLOCK", 70)
    assert log(5).sessions == 1_000


def test_users_need_grades(data, lists):
    blind = Dataset.from_arrays(data.features, data.query_of_document)
    with pytest.raises(DataError, match="no grades"):
        sample_log(blind, lists, PositionBasedUser(), 10, np.random.default_rng(0))
