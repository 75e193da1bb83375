"""A plan of swaps: what it promises, and where it says that it cannot."""

import json

import numpy as np
import pytest

import dualrank as dr
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.click_log import PERIOD, ClickLog, Column
from dualrank.data.interventions import join_lists
from dualrank.data.lists import RankedLists
from dualrank.errors import DataError, SettingsError
from dualrank.propensity.estimators import estimate
from dualrank.propensity.swap_planning import FEWEST_CLICKS, sessions_per_day


def with_period(log, names, codes):
    return ClickLog(
        log.lists, log.list_of, log.clicks, log.counts, {PERIOD: Column(tuple(names), codes)}
    )


def test_a_plan_has_three_designs_and_recommends_one(world):
    plan = dr.plan_swaps(world(seed=5).of_one_ranker(60_000))
    assert [design.name for design in plan.designs] == [
        "first with k", "neighbours", "full shuffles",
    ]  # fmt: skip
    assert plan.recommended in plan.designs
    assert plan.curve_by == "the worst"
    assert plan.sessions_per_day is None
    for design in plan.designs:
        assert sum(design.shares.values()) == pytest.approx(0.05)
        assert design.reached.shape == (10,)
        assert design.reached.max() == pytest.approx(0.1, rel=1e-3)
        assert design.after(design.sessions) == pytest.approx(0.1, rel=1e-3)
        assert design.lost == pytest.approx(design.lost_per_thousand * design.sessions / 1_000)
        assert design.lost_share == pytest.approx(
            design.lost_per_thousand / plan.clicks_per_session / 1_000
        )
    first, chain, shuffles = plan.designs
    assert list(first.shares) == [f"1-{k}" for k in range(2, 11)]
    assert list(chain.shares) == [f"{k}-{k + 1}" for k in range(1, 10)]
    # With the first result, all positions are known at once; along the chain, the last one last.
    assert first.reached[1:].min() > 0.09
    assert (np.diff(chain.reached) > 0).all()
    assert chain.lost < first.lost < shuffles.lost
    assert plan.summary.startswith("Swap the first result with one of the others in 5% of sessions")
    assert "costs at most" in plan.summary
    content = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert content["recommended"] == "first with k"
    assert content["designs"][0]["sessions"] == first.sessions


def test_more_precision_takes_longer_and_more_traffic_less_long(world):
    log = world(seed=6).of_one_ranker(40_000)
    plans = {p: dr.plan_swaps(log, precision=p) for p in (0.4, 0.2, 0.1, 0.05)}
    for design in range(3):
        sessions = [plan.designs[design].sessions for plan in plans.values()]
        assert sessions == sorted(sessions)
        # Lists are shown so often that only the number of swaps counts.
        ratio = (np.log(1.1) / np.log(1.05)) ** 2
        assert sessions[-1] / sessions[-2] == pytest.approx(ratio, rel=0.03)
    more = dr.plan_swaps(log, share=0.1)
    for one, other in zip(plans[0.1].designs, more.designs, strict=True):
        # Fewer sessions that are not swapped tell a little less.
        assert other.sessions == pytest.approx(one.sessions / 2, rel=0.05)
        assert other.lost_per_thousand == pytest.approx(2 * one.lost_per_thousand, rel=0.05)
    fewer = dr.plan_swaps(log, positions=5)
    assert len(fewer.curve) == 5
    for one, other in zip(plans[0.1].designs, fewer.designs, strict=True):
        assert other.sessions < one.sessions / 2


@pytest.mark.parametrize("noise", [4.0, 1.0])
def test_swaps_as_planned_give_the_precision_planned(noise, world):
    """One experiment of 150 queries: each half width is known to 6%, resampling adds 4%.

    Before a ranker that knows relevance well, all the fall of clicks is not examination, and the
    plan is on the safe side.
    """
    w = world(seed=7)
    lists = w.ranked(noise)
    plan = dr.plan_swaps(w.log(lists, 60_000), precision=0.3, share=0.3)
    first = plan.designs[0]
    documents, weights = [lists.documents], [np.full(len(lists), 0.7)]
    for k, share in enumerate(first.shares.values(), start=1):
        swapped = lists.documents.copy()
        swapped[:, [0, k]] = swapped[:, [k, 0]]
        documents.append(swapped)
        weights.append(np.full(len(lists), share))
    shown = RankedLists(np.concatenate(documents), np.tile(lists.queries, len(documents)))
    user, weights = PositionBasedUser(), np.concatenate(weights)
    log = sample_log(w.data, shown, user, int(first.sessions), w.rng, weights=weights)
    found = estimate(log, first.method)
    ratio = np.log(found.high / found.examination)[1:] / np.log1p(first.reached[1:])
    assert -0.1 * (1 + 2 * (noise == 1)) < np.log(ratio).mean() < 0.1
    assert np.log(ratio).max() < 0.3


def test_a_log_that_tells_the_curve_needs_no_swaps(world):
    log = world(seed=3).of_several_rankers(100_000)
    plan = dr.plan_swaps(log, precision=0.2)
    assert plan.curve_by == "harvested"
    assert plan.known < 0.2
    assert plan.recommended is None
    assert plan.summary.startswith("No swaps are needed")
    sharper = dr.plan_swaps(log, precision=0.02)
    assert sharper.recommended is not None
    assert "costs at most" not in sharper.summary
    # Chance alone lies between these queries.
    assert sharper.limit == 0


def test_where_queries_differ_no_number_of_sessions_is_enough(world, monkeypatch):
    """Half of the queries are examined far down, and half hardly at all."""
    w = world(queries=40, seed=8)
    logs = []
    for part, eta in ((0, 0.2), (1, 2.0)):
        lists = join_lists([w.ranked() for _ in range(4)])
        rows = np.flatnonzero(lists.queries % 2 == part)
        some = RankedLists(lists.documents[rows], lists.queries[rows])
        logs.append(sample_log(w.data, some, PositionBasedUser(eta=eta), 60_000, w.rng))
    log = ClickLog.from_clicks(
        RankedLists(
            np.concatenate([each.lists.documents for each in logs]),
            np.concatenate([each.lists.queries for each in logs]),
        ),
        np.concatenate([logs[0].list_of, logs[1].list_of + len(logs[0].lists)]),
        np.concatenate([each.clicks for each in logs]),
        np.concatenate([each.counts for each in logs]),
    )
    plan = dr.plan_swaps(log, precision=0.05)
    assert plan.limit > 0.05
    assert not any(design.ends for design in plan.designs)
    assert plan.recommended is None
    assert "queries differ so much" in plan.summary
    content = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert content["designs"][0]["sessions"] is None
    # A third of the sessions shows it as well.
    monkeypatch.setattr("dualrank.propensity.between_queries.ENOUGH_SESSIONS", 40_000)
    assert dr.plan_swaps(log, precision=0.05).limit == pytest.approx(plan.limit, rel=0.1)


def test_time_is_told_where_periods_have_dates(world):
    log = world(seed=1).of_one_ranker(8_000)
    codes = (np.arange(len(log.counts)) % 4).astype(np.int32)
    days = [f"2026-05-{day:02d}T00:00:00" for day in (1, 3, 5, 7)]
    timed = with_period(log, days, codes)
    before_the_last = log.counts[codes < 3].sum()
    assert sessions_per_day(timed) == pytest.approx(before_the_last / 6)
    plan = dr.plan_swaps(timed)
    design = plan.recommended
    assert design.days == pytest.approx(design.sessions / sessions_per_day(timed))
    assert f"about {design.days:,.0f} days" in plan.summary
    epoch = [str(1_777_593_600 + 2 * 86_400 * k) for k in range(4)]
    assert sessions_per_day(with_period(log, epoch, codes)) == sessions_per_day(timed)
    for names in (["1", "2", "3", "4"], ["a", "b", "c", "d"], [days[0]] * 4):
        assert sessions_per_day(with_period(log, names, codes)) is None


def test_a_plan_ends_where_clicks_are_too_few(world):
    log = world(seed=2).of_one_ranker(20_000)
    clicks = log.clicks.copy()
    clicks[:, 7] = False
    quiet = ClickLog(log.lists, log.list_of, clicks, log.counts)
    plan = dr.plan_swaps(quiet)
    assert len(plan.curve) == 7
    assert plan.cut.startswith("The plan is for positions 1 to 7: position 8 was clicked 0 times")
    assert "within ±10% down to position 7" in plan.summary
    with pytest.raises(DataError, match=f"position 8 .* needs {FEWEST_CLICKS} clicks"):
        dr.plan_swaps(quiet, positions=8)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"precision": 0}, "the precision is above 0% and below 100%, not 0%"),
        ({"precision": 2.0}, "the precision is above 0% and below 100%, not 200%"),
        ({"precision": float("nan")}, "the precision is above 0% and below 100%, not nan%"),
        ({"share": 1.5}, "the share is above 0% and below 100%, not 150%"),
        ({"positions": 1}, "a plan is for 2 positions or more, not 1"),
        ({"positions": 11}, "a plan for 11 positions, but lists show 10"),
    ],
)
def test_what_nobody_can_want_is_refused(options, sentence, world):
    with pytest.raises(SettingsError, match=sentence):
        dr.plan_swaps(world(queries=20).of_one_ranker(200), **options)


def test_a_log_without_clicks_or_with_one_position_cannot_be_planned_from(world):
    log = world(queries=20).of_one_ranker(2_000)
    silent = ClickLog(log.lists, log.list_of, log.clicks & False, log.counts)
    with pytest.raises(DataError, match=r"position 1 was clicked 0 times .* log longer"):
        dr.plan_swaps(silent)
    top = ClickLog(
        RankedLists(log.lists.documents[:, :1], log.lists.queries),
        log.list_of,
        log.clicks[:, :1],
        log.counts,
    )
    with pytest.raises(DataError, match="one position only"):
        dr.plan_swaps(top)
    everything = ClickLog(log.lists, log.list_of, log.lists.mask[log.list_of], log.counts)
    with pytest.raises(DataError, match="every document that the log shows was clicked"):
        dr.plan_swaps(everything)
