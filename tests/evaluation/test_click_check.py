"""The held-out check prefers the ranker that explains clicks beyond position, whatever the bias."""

import numpy as np
import pytest

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists, top_lists
from dualrank.errors import DataError
from dualrank.evaluation.click_check import ClickCheck

QUERIES, DOCUMENTS = 400, 10


@pytest.fixture(scope="module", params=[0, 1, 2])
def logged(request):
    """Grades, the scores of a logging ranker that knows something, and a log of its lists."""
    rng = np.random.default_rng(request.param)
    grades = rng.integers(0, 5, QUERIES * DOCUMENTS)
    data = Dataset.from_arrays(
        grades[:, None], np.repeat(np.arange(QUERIES), DOCUMENTS), grades, max_grade=4
    )
    logger = grades + rng.normal(scale=2, size=len(grades))
    log = sample_log(data, top_lists(data, logger), PositionBasedUser(), 40_000, rng)
    return grades.astype(float), logger, log


def test_relevance_leads_over_relevance_mixed_with_position(logged):
    """The naive ranker's mistake: what stands high looks relevant. Position explains that."""
    grades, logger, log = logged
    check = ClickCheck(log)
    lead = check.lead(grades, over=grades + logger)
    assert lead.is_clear
    assert not check.lead(grades + logger, over=grades).is_clear
    assert lead.queries == QUERIES
    assert lead.clicks == log.clicks_per_list.sum()


def test_noise_does_not_lead_over_nothing(logged):
    _, _, log = logged
    noise = np.random.default_rng(9).normal(size=QUERIES * DOCUMENTS)
    assert not ClickCheck(log).lead(noise, over=np.zeros(len(noise))).is_clear


def test_scores_turned_upside_down_say_nothing(logged):
    """The scale of scores is at least 0: the worst ranker is one that explains nothing."""
    grades, _, log = logged
    check = ClickCheck(log)
    np.testing.assert_allclose(check.explain(-grades), check.explain(0 * grades))


@pytest.mark.parametrize("change", [lambda f: 7 * f, lambda f: f + 3])
def test_neither_scale_nor_offset_of_the_scores_matters(logged, change):
    grades, logger, log = logged
    check = ClickCheck(log)
    scores = grades + logger
    np.testing.assert_allclose(check.explain(change(scores)), check.explain(scores), rtol=1e-5)


def test_a_ranker_has_no_lead_over_itself(logged):
    grades, _, log = logged
    lead = ClickCheck(log).lead(grades, over=grades)
    assert (lead.gain, lead.error, lead.in_errors, lead.is_clear) == (0, 0, 0, False)


def test_positions_that_nobody_clicks_are_finite():
    lists = RankedLists(np.arange(40, dtype=np.int32).reshape(10, 4), np.arange(10, dtype=np.int32))
    clicks = np.zeros((10, 4), bool)
    clicks[:, 0] = True
    check = ClickCheck(ClickLog.from_clicks(lists, np.arange(10), clicks))
    assert np.isfinite(check.explain(np.random.default_rng(0).normal(size=40))).all()


def test_one_query_is_too_few():
    lists = RankedLists(np.arange(4, dtype=np.int32)[None], np.zeros(1, np.int32))
    log = ClickLog.from_clicks(lists, np.zeros(1, int), np.array([[True, False, False, False]]))
    with pytest.raises(DataError, match="two held-out queries"):
        ClickCheck(log)


def test_users_who_stop_are_checked_by_what_they_read():
    """By where clicks fell, whatever stands below a strong document looks weak because of it.

    The second scores are lowered below strong documents as clicks are: position-based clicks
    would speak for them, the clicks among what was read do not.
    """
    rng = np.random.default_rng(4)
    lists, depth, sessions = 300, 6, 60
    attraction = rng.choice([0.1, 0.3, 0.8], (lists, depth))
    clicked = rng.random((sessions, lists, depth)) < attraction
    before = np.cumsum(clicked, axis=2) - clicked
    clicks = (clicked & (before == 0)).reshape(-1, depth)
    documents = np.arange(lists * depth, dtype=np.int32).reshape(lists, depth)
    shown = RankedLists(documents, np.arange(lists, dtype=np.int32))
    log = ClickLog.from_clicks(shown, np.tile(np.arange(lists), sessions), clicks)
    read = np.cumprod(np.hstack([np.ones((lists, 1)), 1 - attraction[:, :-1]]), axis=1)
    truth, hidden = np.log(attraction / (1 - attraction)), np.log(attraction * read)
    by_reading = ClickCheck(log, reads=True).lead(truth.ravel(), over=hidden.ravel())
    by_place = ClickCheck(log).lead(truth.ravel(), over=hidden.ravel())
    assert by_reading.in_errors > 5
    assert by_place.in_errors < -5
