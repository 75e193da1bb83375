"""Estimates of a log in shards are those of the same log in one piece."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists
from dualrank.data.log_parts import LogParts
from dualrank.data.shards.shard import Shard
from dualrank.errors import DataError, SettingsError
from dualrank.learning.estimates import estimate_propensities
from dualrank.propensity.bootstrap import Evidence, log_ratio
from dualrank.propensity.estimators import ESTIMATORS, estimate, require_shuffled
from dualrank.propensity.grouped_clicks import GroupedClicks
from dualrank.propensity.grouped_parts import GroupedParts
from dualrank.propensity.randomisation import position_memory


@pytest.fixture(scope="module", params=["of_several_rankers", "swapped"])
def both(request, world, in_shards):
    here = world(queries=60)
    return in_shards(getattr(here, request.param)(8_000), here.data)


@pytest.mark.parametrize("over", ["queries", "sessions"])
@pytest.mark.parametrize("method", ESTIMATORS)
def test_every_estimate_is_that_of_the_whole_log(method, over, both):
    log, sharded = both
    parts = GroupedParts.of(LogParts.of(sharded), over)
    try:
        whole = estimate(GroupedClicks.of(log, over), method)
    except DataError as refused:
        with pytest.raises(DataError, match=str(refused)):
            estimate(parts, method)
        return
    found = estimate(parts, method)
    np.testing.assert_allclose(found.examination, whole.examination, rtol=1e-9)
    np.testing.assert_array_equal(found.support, whole.support)
    assert found.sessions == whole.sessions
    assert found.details == whole.details
    # The standard deviation of 400 resamples is known to some 4%, and worse where tails are heavy.
    widths = [np.log(each.high / each.low)[1:] for each in (found, whole)]
    bounded = np.isfinite(widths).all(axis=0)
    assert np.median(widths[0][bounded] / widths[1][bounded]) == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("method", ["click-through", "harvest-pivot", "harvest-all-pairs", "pbm"])
def test_what_needs_sums_of_pairs_alone_maps_no_list(method, both, monkeypatch):
    log, sharded = both
    parts = LogParts.of(sharded)
    monkeypatch.setattr(Shard, "log", property(lambda shard: pytest.fail("lists are mapped")))
    found = estimate(GroupedParts.of(parts), method)
    np.testing.assert_allclose(found.examination, estimate(log, method).examination, rtol=1e-9)


def test_a_log_of_which_no_session_is_left_is_refused(both):
    nothing = np.empty(0, dtype=np.int64)
    log, sharded = both
    shards, whole = (
        LogParts.of(each).changed(lambda part: part.log.take_rows(nothing))
        for each in (sharded, log)
    )
    assert (len(shards), len(whole), shards.sessions) == (0, 1, 0)
    assert whole.read().sessions == 0
    for parts in (shards, whole):
        with pytest.raises(DataError, match="the log has no session that could be counted"):
            GroupedParts.of(parts)


def test_there_may_be_more_shards_than_queries(world, in_shards):
    here = world(queries=12)
    log, sharded = in_shards(here.of_several_rankers(5_000), here.data, 24)
    assert min(shard.sessions for shard in sharded.shards) == 0
    found = estimate(sharded, "harvest-all-pairs")
    assert found.details["groups"] == 12
    np.testing.assert_allclose(found.examination, estimate(log, "harvest-all-pairs").examination)


def test_groups_have_equally_many_queries_over_all_shards(world, in_shards, monkeypatch):
    monkeypatch.setattr("dualrank.propensity.grouped_clicks.MOST_GROUPS", 50)
    here = world(queries=130)
    _, sharded = in_shards(here.of_one_ranker(20_000), here.data, 7)
    parts = GroupedParts.of(LogParts.of(sharded))
    seen = [set() for _ in range(parts.group_count)]
    for number, part in enumerate(parts):
        for group, query in zip(part.group, part.lists.queries[part.list_of], strict=True):
            seen[group].add((number, int(query)))
    assert sorted(set(map(len, seen))) == [2, 3]
    assert len(set.union(*seen)) == 130


def test_one_shard_has_the_intervals_of_the_whole_log(world, in_shards):
    """All queries are in it, in the order of their names."""
    here = world(queries=100)
    named = replace(here.data, query_ids=np.char.zfill(np.arange(100).astype(str), 3))
    log, sharded = in_shards(here.of_several_rankers(8_000), named, 1)
    one, other = (estimate(each, "harvest-pivot") for each in (log, sharded))
    np.testing.assert_allclose(one.high, other.high, rtol=1e-12)


def test_memory_of_positions_is_that_of_the_whole_log(world, in_shards):
    here = world(queries=30)
    log, sharded = in_shards(here.shuffled(4_000), here.data)
    parts = GroupedParts.of(LogParts.of(sharded))
    assert position_memory(parts) == pytest.approx(position_memory(GroupedClicks.of(log)))
    require_shuffled(parts)


def test_an_estimator_of_your_own_adds_up(both):
    def first_click(grouped):
        clicks, shown = grouped.total(lambda part: (part.clicks_by_group, part.shown_by_group))
        sums = np.stack([clicks, shown], axis=1)
        return Evidence("own", sums, log_ratio, shown.sum(axis=0).astype(int), str)

    log, sharded = both
    found = estimate_propensities(sharded, methods=[first_click]).found["first_click"]
    whole = estimate(log, "click-through")
    np.testing.assert_array_equal(found.examination, whole.examination)


@pytest.fixture
def featured(world, in_shards):
    here = world(queries=80)
    return in_shards(here.of_several_rankers(12_000), here.data, 4, features=True)


def test_estimators_that_train_take_the_features_beside_the_shards(featured, monkeypatch):
    _, sharded = featured
    found = estimate_propensities(sharded, methods=["regression-em"], resamples=50)
    whole = found.found["regression-em"]
    assert whole.sessions == 12_000
    assert "looked_at" not in whole.details
    # Room for the first two shards.
    from dualrank.data.shards import whole_shards

    room = sum(map(whole_shards.bytes_of, sharded.shards[:2]))
    monkeypatch.setattr(whole_shards.sample_shards, "__defaults__", (room,))
    found = estimate_propensities(sharded, methods=["regression-em"], resamples=50)
    some = found.found["regression-em"]
    sessions = sum(shard.sessions for shard in sharded.shards[:2])
    assert some.sessions == sessions
    assert some.details["looked_at"] == (
        f"looked at 2 of 4 shards, {sessions:,} of 12,000 sessions"
    )
    np.testing.assert_allclose(some.examination, whole.examination, rtol=0.3)


def test_shards_without_features_and_features_beside_shards_are_refused(both, featured, world):
    refused = estimate_propensities(both[1], methods=["dla"]).refused
    assert refused == {"dla": "it needs the features of the documents"}
    with pytest.raises(SettingsError, match="has its features beside it"):
        estimate_propensities(featured[1], world(queries=80).data)


def test_a_shard_that_is_cut_off_meanwhile_is_a_sentence(world, in_shards):
    here = world(queries=60)
    _, sharded = in_shards(here.of_several_rankers(8_000), here.data)
    parts = LogParts.of(sharded)
    counted = GroupedParts.of(parts)
    path = sharded.shards[3].folder / "pair_counts.npy"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(DataError, match=r"00003/pair_counts\.npy: not the array that was written"):
        estimate(counted, "harvest-pivot")
    with pytest.raises(DataError, match=r"00003/pair_counts\.npy: has .* bytes"):
        LogParts.of(sharded)


def large(queries=1_000, lists=6, depth=5, candidates=9):
    """Many distinct lists, made at once."""
    rng = np.random.default_rng(0)
    order = rng.permuted(np.tile(np.arange(candidates), (queries * lists, 1)), axis=1)[:, :depth]
    query = np.repeat(np.arange(queries), lists)
    shown = RankedLists((order + candidates * query[:, None]).astype(np.int32), query)
    clicks = rng.random(order.shape) < 0.6 / (1 + np.arange(depth))
    log = ClickLog.from_clicks(shown, np.arange(len(order)), clicks)
    documents = np.repeat(np.arange(queries), candidates)
    return log, Dataset.from_arrays(np.zeros((len(documents), 1)), documents)


@pytest.mark.parametrize(
    "method", ["harvest-all-pairs", pytest.param("pbm", marks=pytest.mark.slow)]
)
def test_memory_is_that_of_a_shard(method, in_shards, monkeypatch):
    """Mapped arrays are not copied whole; EM keeps its counts on disk and a number per pair."""
    monkeypatch.setattr("dualrank.propensity.grouped_clicks.MOST_GROUPS", 50)
    monkeypatch.setattr("dualrank.clicks.models.kept_counts.MOST_BYTES", 0)
    log, sharded = in_shards(*large(), 10)
    peaks = []
    for each in (log, LogParts.of(sharded)):
        tracemalloc.start()
        estimate(each, method, resamples=10)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 0.3 * peaks[0]
