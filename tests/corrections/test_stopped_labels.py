"""Clicks out of the sessions that came so far: right where users stop, clicks where they do not."""

import numpy as np
import pytest

from dualrank.clicks.models.dcm import ExactDependentClick
from dualrank.clicks.models.em import Prior
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.clicks.user import perceived_relevance
from dualrank.clicks.users import CascadeUser, DependentClickUser
from dualrank.corrections.correction import Basis
from dualrank.corrections.stopped_labels import StoppedLabels
from dualrank.data.lists import top_lists
from dualrank.settings import TrainingSettings

SESSIONS = 60_000


def stopping(log):
    return StoppedLabels.build(Basis(log.lists.depth, TrainingSettings(), log))


@pytest.fixture(scope="module", params=[CascadeUser(), DependentClickUser()])
def stopped(request, dataset, lists):
    return sample_log(dataset, lists, request.param, SESSIONS, np.random.default_rng(1))


def test_labels_are_relevance_within_the_error_of_those_who_came_so_far(stopped, dataset):
    """c − r P(E | c_<k) has the mean 0 and at most the variance r P(E | c_<k), so that the ratio of
    sums has at most r / Σ P(E | c_<k)."""
    relevance = perceived_relevance(stopped.lists.gather(dataset.grades), dataset.max_grade, 0.1)
    found = stopping(stopped)
    came = found.examined(stopped)
    enough = stopped.lists.mask & (came > 30)
    error = np.sqrt(relevance / np.maximum(came, 1))
    shrunk = 2 / (came + 2)
    off = np.abs(found.labels(stopped) - relevance) - shrunk
    assert enough.sum() > 150
    assert (off[enough] < 4.6 * error[enough]).all()
    mean = np.average((found.labels(stopped) - relevance)[enough], weights=came[enough])
    assert abs(mean) < 0.01
    naive = stopped.clicks_per_list / stopped.sessions_per_list[:, None]
    assert np.abs(naive - relevance)[enough].mean() > 3 * off[enough].clip(0).mean()


def test_of_cascade_users_it_is_the_share_among_sessions_without_a_click_above(dataset, lists):
    log = sample_log(dataset, lists, CascadeUser(), 30_000, np.random.default_rng(2))
    examined = np.zeros(log.lists.documents.shape)
    for index, clicks, count in zip(log.list_of, log.clicks, log.counts, strict=True):
        for k in range(log.lists.mask[index].sum()):
            examined[index, k] += count * (not clicks[:k].any())
    # λ is not quite 0 by its prior.
    np.testing.assert_allclose(stopping(log).examined(log), examined, atol=0.6, rtol=0.01)


def test_users_who_do_not_stop_have_come_everywhere(make_dataset):
    dataset = make_dataset(queries=100, lengths=(4, 8), seed=3)
    lists = top_lists(dataset, dataset.features[:, 0], depth=6)
    users = PositionBasedUser(eta=0)
    log = sample_log(dataset, lists, users, 100_000, np.random.default_rng(3))
    sessions = log.sessions_per_list[:, None] * log.lists.mask
    came = stopping(log).examined(log)
    assert came.sum() > 0.97 * sessions.sum()


def test_sessions_of_another_log_are_counted_by_the_same_habits(stopped):
    """Documents that the model has not seen have the attraction that is usual."""
    half = np.arange(len(stopped.lists)) % 2 == 0
    one, other = (stopped.take_lists(np.flatnonzero(part)) for part in (half, ~half))
    model = ExactDependentClick(Prior()).fit(one)
    labels = StoppedLabels(model).labels(other)
    assert np.isfinite(labels).all()
    assert not labels[~other.lists.mask].any()
    assert labels[other.lists.mask].min() > 0
