"""The affine correction: unbiased under trust, and what it needs is found in a log."""

import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.clicks.user import perceived_relevance
from dualrank.clicks.users import TrustingUser
from dualrank.corrections.affine import Affine
from dualrank.corrections.click_regression import regress_clicks
from dualrank.data.click_log import ClickLog
from dualrank.data.lists import top_lists

DEPTH, SESSIONS = 6, 200_000
USER = TrustingUser()
EXAMINATION = PositionBasedUser().examination(DEPTH)
OFFSETS = EXAMINATION * np.array(USER.irrelevant[:DEPTH])
SLOPES = EXAMINATION * np.array(USER.relevant[:DEPTH]) - OFFSETS


@pytest.fixture(scope="module")
def trusted(dataset, lists):
    return sample_log(dataset, lists, USER, SESSIONS, np.random.default_rng(1))


def test_labels_are_relevance_in_the_mean_whatever_the_position(trusted, dataset):
    """(c − β)/α has the variance p (1 − p)/α² in a session, with p = α r + β."""
    relevance = perceived_relevance(trusted.lists.gather(dataset.grades), dataset.max_grade, 0.0)
    labels = Affine(SLOPES, OFFSETS).labels(trusted)
    p = SLOPES * relevance + OFFSETS
    sessions = trusted.sessions_per_list[:, None]
    error = np.sqrt(p * (1 - p) / sessions) / SLOPES
    mask = trusted.lists.mask
    off = (labels - relevance)[mask] / error[mask]
    # Some 250 nearly normal errors: one beyond 4.6 happens once in a thousand samples.
    assert np.abs(off).max() < 4.6
    # And all of them together, by position.
    for k in range(DEPTH):
        weights = (sessions * mask)[:, k] / (sessions * mask)[:, k].sum()
        mean = weights @ (labels - relevance)[:, k]
        assert abs(mean) < 4 * np.sqrt(weights**2 @ np.where(mask, error, 0)[:, k] ** 2)
    naive = trusted.clicks_per_list / sessions
    assert np.abs(naive - relevance)[mask].mean() > 5 * np.abs(labels - relevance)[mask].mean()


def test_padding_has_no_label(trusted):
    labels = Affine(SLOPES, OFFSETS).labels(trusted)
    assert (~trusted.lists.mask).any()
    assert not labels[~trusted.lists.mask].any()


def test_slopes_and_offsets_are_found_where_features_tell_relevance(make_dataset):
    """On the scale on which the largest slope is 1, over samples of the same users."""
    dataset = make_dataset(queries=600, lengths=(8, 12), seed=1)
    relevance = np.exp(0.6 * dataset.features[:, 0] + 0.3 * dataset.features[:, 1] - 2.4)
    lists = top_lists(dataset, dataset.features[:, 0] + dataset.features[:, 2], DEPTH)
    chances = SLOPES * lists.gather(np.minimum(relevance, 1.0).astype(np.float32)) + OFFSETS
    list_of = np.repeat(np.arange(len(lists)), 300)
    slopes, offsets = [], []
    for seed in range(6):
        luck = np.random.default_rng(seed).random((len(list_of), DEPTH))
        log = ClickLog.from_clicks(lists, list_of, luck < (chances * lists.mask)[list_of])
        found = regress_clicks(log, dataset.features)
        slopes.append(found.slopes / found.slopes.sum())
        offsets.append(found.offsets)
    for estimates, truth in ((slopes, SLOPES / SLOPES.sum()), (offsets, OFFSETS)):
        off, spread = np.mean(estimates, axis=0) - truth, np.std(estimates, axis=0, ddof=1)
        assert (np.abs(off) < 4 * spread / np.sqrt(6)).all()
        assert (spread < 0.1 * truth + 0.005).all()


def test_slopes_never_fall_faster_than_click_through(log, dataset):
    """Few clicks, and clicks that end a session, give slopes near 0 or below."""
    found = regress_clicks(log.take_rows(np.arange(40)), dataset.features)
    assert (found.slopes > 0).all()
    assert found.slopes.max() == 1
    assert np.isfinite(found.relevance(dataset.features)).all()
