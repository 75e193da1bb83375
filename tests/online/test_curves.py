"""The curve of today, and whether it has moved."""

from dataclasses import replace

import numpy as np

from dualrank.online.learner.curve_of_today import curve_of_today
from dualrank.online.learner.drift_watch import movement
from dualrank.online.learner.laid_out import LaidOut
from dualrank.propensity.propensity import Propensity

from .small_site import DEPTH, TRUTH


def lists(count, eta, seed, *, queries=400, noise=0.3):
    """Lists with a click each, by known relevance, of which the scores know a part."""
    rng = np.random.default_rng(seed)
    relevance = rng.normal(size=(queries, DEPTH)) - 0.3 * np.arange(DEPTH)
    query = rng.integers(queries, size=count)
    utility = relevance[query] + eta * np.log(TRUTH)
    clicked = (utility + rng.gumbel(size=utility.shape)).argmax(axis=1)
    clicks = np.zeros((count, DEPTH))
    clicks[np.arange(count), clicked] = 1
    scores = 2 * (relevance + noise * rng.normal(size=relevance.shape))[query]
    return LaidOut(scores, clicks, np.ones(clicks.shape, bool), query.astype(np.uint64), count)


def without_clicks(found, position):
    """Those on which this position was not clicked."""
    kept = found.clicks[:, position] == 0
    arrays = (found.scores, found.clicks, found.mask, found.query)
    return LaidOut(*(each[kept] for each in arrays), found.sessions)


def test_the_curve_is_found_within_its_interval():
    outside = 0
    for seed in range(10):
        found = curve_of_today(Propensity.of(np.ones(DEPTH)), lists(6_000, 1.0, seed, noise=0))
        outside += int(((found.low > TRUTH) | (found.high < TRUTH))[1:].sum())
        assert np.abs(found.examination / TRUTH - 1).max() < 0.2
    # 50 intervals of 95%: seven outside of them happen once in a hundred.
    assert outside <= 7


def test_what_was_believed_counts_where_there_are_few_clicks_and_not_where_there_are_many():
    believed = Propensity.of(TRUTH**0.2)
    few, many = (
        curve_of_today(believed, lists(n, 1.5, 1, noise=0), None, believed.examination)
        for n in (40, 40_000)
    )
    truth = TRUTH**1.5
    distance = [np.abs(np.log(each.examination / truth)).mean() for each in (few, many)]
    assert np.abs(np.log(few.examination / believed.examination)).max() < 0.2
    assert distance[1] < 0.1


def test_lists_from_before_a_change_make_the_curve_after_it_surer():
    before, after = lists(20_000, 0.5, 1, noise=0), lists(1_500, 1.5, 1, noise=0)
    start = Propensity.of(TRUTH**0.5)
    alone, both = curve_of_today(start, after), curve_of_today(start, after, before)
    reach = [np.log(each.high / each.examination)[1:] for each in (alone, both)]
    assert (reach[1] < reach[0]).mean() > 0.7
    assert np.abs(np.log(both.examination / TRUTH**1.5)).max() < 0.35


def test_a_position_that_nobody_clicked_has_no_interval():
    today = without_clicks(lists(2_000, 1.0, 3), -1)
    found = curve_of_today(Propensity.of(TRUTH), today)
    assert found.high[-1] == np.inf
    assert 0 < found.examination[-1] < TRUTH[-1]


def test_too_few_queries_or_too_long_lists_give_no_curve():
    assert curve_of_today(Propensity.of(TRUTH), lists(50, 1.0, 1, queries=5)) is None
    assert curve_of_today(Propensity.of(TRUTH[:3]), lists(500, 1.0, 1)) is None


def test_a_step_of_habits_raises_an_alarm_and_says_where():
    moved = movement(lists(8_000, 0.5, 1), lists(2_000, 1.5, 2))
    assert moved.is_clear
    assert moved.said.startswith("users look ")
    assert "times less at position" in moved.said
    truth = TRUTH
    inside = np.abs(np.log(moved.factor / truth)) < moved.needed * np.maximum(moved.error, 1e-9)
    assert inside[1:].all()


def test_without_a_change_there_is_no_alarm_and_errors_are_right():
    strength = []
    for seed in range(12):
        moved = movement(lists(6_000, 1.0, seed), lists(2_000, 1.0, 100 + seed))
        assert not moved.is_clear
        strength.append(np.log(moved.factor[1:]) / moved.error[1:])
    assert 0.7 < np.std(strength) < 1.3


def test_another_ranking_of_the_same_users_is_no_change():
    before, after = lists(8_000, 1.0, 1, noise=0), lists(4_000, 1.0, 2, noise=0)
    order = np.random.default_rng(0).permutation(len(after))
    turned = LaidOut(
        after.scores[order], after.clicks[order], after.mask[order], after.query[order], 1
    )
    assert not movement(before, turned).is_clear


def test_a_position_that_nobody_happened_to_click_is_no_change():
    before = lists(4_000, 2.5, 1)
    unclicked = 0
    for seed in range(12):
        after = lists(70, 2.5, 100 + seed)
        unclicked += int((after.clicks.sum(axis=0) == 0).any())
        assert not movement(before, after).is_clear
    assert unclicked >= 6


def test_a_position_that_nobody_clicks_any_more_is_noticed_once_clicks_are_missed():
    before, after = lists(8_000, 1.0, 1), lists(1_000, 1.0, 2)
    assert after.clicks[:, 3].sum() > 50
    moved = movement(before, without_clicks(after, 3))
    assert moved.is_clear
    assert "times less at position 4 than before" in moved.said
    few = lists(60, 1.0, 3)
    assert not movement(before, without_clicks(few, 3)).is_clear


def test_a_change_of_a_tenth_is_not_notable_however_sure():
    moved = movement(lists(2_000, 1.0, 1), lists(2_000, 1.0, 2))
    sure = replace(moved, factor=np.full(DEPTH, 1.09), error=np.full(DEPTH, 1e-6))
    assert not sure.is_clear
    assert replace(sure, factor=np.full(DEPTH, 2.0)).is_clear


def test_too_little_to_tell_is_no_alarm():
    assert movement(lists(2_000, 0.5, 1), lists(300, 1.5, 2, queries=5)) is None
    nothing = lists(10, 1.0, 1)
    empty = LaidOut(nothing.scores[:0], nothing.clicks[:0], nothing.mask[:0], nothing.query[:0], 0)
    assert movement(lists(2_000, 0.5, 1), empty) is None
