"""Every estimator finds the examination behind its kind of log, within the intervals it states."""

import numpy as np
import pytest

from dualrank.data.click_log import ClickLog
from dualrank.data.lists import PADDING, RankedLists
from dualrank.errors import DataError, SettingsError
from dualrank.propensity import bootstrap
from dualrank.propensity.bootstrap import with_intervals
from dualrank.propensity.estimators import ESTIMATORS, estimate, require_shuffled
from dualrank.propensity.grouped_clicks import GroupedClicks
from dualrank.propensity.harvesting import harvest, interventional_sums
from dualrank.propensity.pair_swaps import swapped_lists
from dualrank.propensity.randomisation import position_memory

RIGHT = {
    "harvest-pivot": "of_several_rankers",
    "harvest-adjacent": "of_several_rankers",
    "harvest-all-pairs": "of_several_rankers",
    "pair-swaps": "swapped",
    "randomisation": "shuffled",
    "click-through": "shuffled",
    "pbm": "of_several_rankers",
}


@pytest.mark.parametrize(("method", "kind"), RIGHT.items())
def test_the_truth_is_recovered_where_the_assumptions_hold(method, kind, world, errors):
    log = getattr(world(seed=3), kind)(200_000)
    found = estimate(log, method)
    # Nine errors of 4 standard errors hold but once in 1,800 logs.
    assert np.abs(errors(found)).max() < 4
    assert np.log(found.high / found.low)[1:].max() < 1.5
    assert found.examination[0] == found.low[0] == found.high[0] == 1
    assert (found.method, found.sessions) == (method, 200_000)
    assert found.support.shape == (10,)
    assert (found.support > 0).all()
    assert found.details == {"intervals_over": "queries", "groups": 150}


@pytest.mark.parametrize(("method", "kind"), RIGHT.items())
def test_intervals_cover_the_truth_as_often_as_they_say(method, kind, world):
    """Twelve logs and nine positions: 108 intervals of 95%, those of one log correlated.

    With as much as a third of the information of independent ones, fewer than 85% happen once
    in 300 tests.
    """
    covered = []
    for seed in range(12):
        found = estimate(getattr(world(seed=seed), kind)(30_000), method, resamples=200)
        k = found.depth
        covered.append((found.low <= world.truth[:k])[1:] & (found.high >= world.truth[:k])[1:])
    assert np.concatenate(covered).mean() >= 0.85


def test_click_through_is_biased_where_a_ranker_works_and_harvesting_is_not(world, errors):
    log = world(seed=1).of_several_rankers(200_000)
    raw = estimate(log, "click-through")
    assert (errors(raw) < -4).sum() >= 6
    assert np.abs(errors(estimate(log, "harvest-all-pairs"))).max() < 4


def test_all_pairs_uses_more_of_the_log_than_the_chain_and_the_pivot(world):
    log = world(seed=2).of_several_rankers(100_000)
    width = {
        way: np.log(p.high / p.low)[1:].mean()
        for way in ("pivot", "adjacent", "all-pairs")
        if (p := estimate(log, f"harvest-{way}"))
    }
    assert width["all-pairs"] < 0.6 * min(width["adjacent"], width["pivot"])


def log_of(rows):
    """A log from (query, documents, clicks at each position, sessions); clicks are counts."""
    depth = max(len(documents) for _, documents, _, _ in rows)
    shown = np.full((len(rows), depth), PADDING, dtype=np.int32)
    list_of, patterns, counts = [], [], []
    for row, (_, documents, clicks, sessions) in enumerate(rows):
        shown[row, : len(documents)] = documents
        for position, times in enumerate(clicks):
            list_of.append(row)
            patterns.append(np.arange(depth) == position)
            counts.append(times)
        list_of.append(row)
        patterns.append(np.zeros(depth, dtype=bool))
        counts.append(sessions - sum(clicks))
    lists = RankedLists(shown, np.array([row[0] for row in rows], dtype=np.int32))
    return ClickLog.from_clicks(lists, np.array(list_of), np.array(patterns), np.array(counts))


def test_harvesting_by_hand():
    """Document 0 at 1 (100 times) and at 2 (50 times), document 1 the other way round."""
    log = log_of([(0, [0, 1], [40, 12], 100), (0, [1, 0], [30, 10], 50)])
    grouped = GroupedClicks.of(log, "queries")
    sums = interventional_sums(grouped.cells.moved, grouped.group_count)[0]
    assert sums[0, 1] == pytest.approx(40 * 50 / 150 + 30 * 100 / 150)
    assert sums[1, 0] == pytest.approx(10 * 100 / 150 + 12 * 50 / 150)
    equal = interventional_sums(grouped.cells.moved, grouped.group_count, "equal")[0]
    assert equal[0, 1] == pytest.approx(0.4 + 0.6)
    assert equal[1, 0] == pytest.approx(0.2 + 0.12)
    for way in ("pivot", "adjacent", "all-pairs"):
        found = estimate(grouped, f"harvest-{way}", resamples=0)
        assert found.examination[1] == pytest.approx(sums[1, 0] / sums[0, 1])
        assert found.support.tolist() == [150, 150]
        assert found.low is None


def test_a_swap_by_hand_ignores_lists_that_differ_elsewhere():
    log = log_of(
        [
            (0, [0, 1, 2], [40, 5, 12], 100),
            (0, [2, 1, 0], [30, 5, 10], 50),
            (0, [1, 0, 2], [50, 9, 9], 100),
            (0, [2, 0, 8], [90, 9, 9], 100),
        ]
    )
    found = estimate(GroupedClicks.of(log, "queries"), "pair-swaps", resamples=0)
    at_3 = (12 * 50 + 10 * 100) / (40 * 50 + 30 * 100)
    at_2 = (5 + 9) / (40 + 50)
    assert found.examination.tolist() == pytest.approx([1, at_2, at_3])
    assert found.support.tolist() == [200, 200, 150]


def test_swapped_lists_are_found_once_each():
    documents = np.array([[0, 1, 2], [2, 1, 0], [1, 0, 2], [5, 6, PADDING], [6, 5, PADDING]])
    lists = RankedLists(documents.astype(np.int32), np.zeros(5, dtype=np.int32))
    assert [part.tolist() for part in swapped_lists(lists, 1)] == [[0, 3], [2, 4]]
    assert [part.tolist() for part in swapped_lists(lists, 2)] == [[0], [1]]


def test_shuffled_lists_of_several_lengths_are_compared_on_those_that_reach_down(world, errors):
    """Short lists hold the best documents here, which would lift the upper positions."""
    w = world(queries=300, lengths=(3, 14), seed=5)
    found = estimate(w.shuffled(200_000), "randomisation")
    assert np.abs(errors(found)).max() < 4


def test_shuffled_and_fixed_lists_are_told_apart(world):
    w = world()
    grouped = {kind: GroupedClicks.of(getattr(w, kind)(20_000)) for kind in ("shuffled", "swapped")}
    assert abs(position_memory(grouped["shuffled"])) < 0.05
    assert position_memory(GroupedClicks.of(w.of_one_ranker(5_000))) == pytest.approx(1)
    require_shuffled(grouped["shuffled"])
    with pytest.raises(DataError, match=r"not shuffled: the document tells \d+% of its position"):
        require_shuffled(grouped["swapped"])
    once = GroupedClicks.of(log_of([(0, [0, 1], [1, 0], 1)]))
    with pytest.raises(DataError, match="no query–document pair was seen twice"):
        require_shuffled(once)


def test_what_a_log_does_not_determine_is_said(world):
    one = world(queries=40).of_one_ranker(3_000)
    with pytest.raises(DataError, match="no query–document pair was seen at positions 1 and 2"):
        estimate(one, "harvest-pivot")
    with pytest.raises(DataError, match="was seen at position 2 and at another one"):
        estimate(one, "harvest-all-pairs")
    with pytest.raises(DataError, match="was seen at position 2 and at another one"):
        estimate(one, "pbm")
    with pytest.raises(DataError, match="no two lists differ by a swap of positions 1 and 2"):
        estimate(one, "pair-swaps")


def test_a_curve_ends_before_the_first_position_that_is_not_determined():
    moved = [(0, [0, 1, 2], [40, 12, 9], 100), (0, [1, 0, 2], [30, 10, 9], 50)]
    for way, reason in {
        "pivot": "no query–document pair was seen at positions 1 and 3",
        "adjacent": "no query–document pair was seen at positions 2 and 3",
        "all-pairs": "no query–document pair was seen at position 3 and at another one",
    }.items():
        found = estimate(log_of(moved), f"harvest-{way}")
        assert found.depth == len(found.support) == len(found.low) == 2
        assert found.details["ends"] == reason
    quiet = [(0, [0, 1], [40, 0], 100), (0, [1, 0], [30, 0], 50)]
    with pytest.raises(DataError, match="were never clicked at 2"):
        estimate(log_of(quiet), "harvest-adjacent")
    with pytest.raises(DataError, match="position 2 was never clicked in 150 sessions"):
        estimate(log_of(quiet), "click-through")
    with pytest.raises(DataError, match="swapped between 1 and 2 were never clicked at 2"):
        estimate(log_of(quiet), "pair-swaps")
    with pytest.raises(DataError, match="connected to the first through no clicked document"):
        estimate(log_of(quiet), "harvest-all-pairs")


@pytest.mark.parametrize("method", ESTIMATORS)
def test_a_log_without_a_click_at_the_first_position_or_anywhere_is_refused(method):
    for clicks in ([0, 9], [0, 0]):
        rows = [(q, [2 * q, 2 * q + 1], clicks, 20) for q in range(12)]
        rows += [(q, [2 * q + 1, 2 * q], clicks, 20) for q in range(12)]
        with pytest.raises(DataError, match=r"never clicked|no clicked document"):
            estimate(log_of(rows), method)
    with pytest.raises(DataError, match="the lists show one position only"):
        estimate(log_of([(q, [q], [9], 20) for q in range(12)]), "click-through")


def test_all_pairs_goes_round_positions_that_the_chain_needs():
    """Documents were seen at 1 and 3 and at 2 and 3, never at 1 and 2."""
    log = log_of(
        [
            (0, [0, 1, 2], [80, 40, 20], 200),
            (0, [2, 9, 0], [80, 40, 20], 200),
            (1, [10, 11, 12], [40, 40, 20], 200),
            (1, [13, 12, 11], [40, 40, 20], 200),
        ]
    )
    with pytest.raises(DataError, match="seen at positions 1 and 2"):
        estimate(log, "harvest-adjacent")
    found = estimate(log, "harvest-all-pairs", resamples=0)
    assert found.examination.tolist() == pytest.approx([1, 0.5, 0.25])


def test_weights_matter_where_exposure_is_unequal(world):
    """Both weights are consistent; the harmonic ones do not let rare pairs speak as loudly."""
    w = world(queries=100, seed=8)
    many, few = w.of_several_rankers(60_000), w.of_several_rankers(3_000)
    lists = RankedLists(
        np.concatenate([many.lists.documents, few.lists.documents]),
        np.concatenate([many.lists.queries, few.lists.queries]),
    )
    log = ClickLog.from_clicks(
        lists,
        np.concatenate([many.list_of, few.list_of + len(many.lists)]),
        np.concatenate([many.clicks, few.clicks]),
        np.concatenate([many.counts, few.counts]),
    )
    grouped = GroupedClicks.of(log)
    harmonic, equal = (
        with_intervals(harvest(grouped, "all-pairs", weights), grouped)
        for weights in ("harmonic", "equal")
    )
    widths = [np.log(p.high / p.low)[1:].mean() for p in (harmonic, equal)]
    assert widths[0] < 0.8 * widths[1]


def test_few_queries_are_resampled_by_session(world):
    few, enough = (world(queries=n, seed=4).of_several_rankers(20_000) for n in (9, 10))
    found = estimate(few, "harvest-all-pairs")
    assert found.details == {"intervals_over": "sessions", "groups": 200}
    found = estimate(enough, "harvest-all-pairs")
    assert found.details == {"intervals_over": "queries", "groups": 10}


def test_many_queries_are_thrown_together_without_changing_the_interval(world, monkeypatch):
    log = world(queries=600, seed=6).of_several_rankers(60_000)
    apart = estimate(log, "harvest-all-pairs")
    monkeypatch.setattr("dualrank.propensity.grouped_clicks.MOST_GROUPS", 150)
    together = estimate(log, "harvest-all-pairs")
    assert (apart.details["groups"], together.details["groups"]) == (600, 150)
    assert together.examination.tolist() == pytest.approx(apart.examination.tolist())
    widths = [np.log(p.high / p.low)[1:] for p in (apart, together)]
    # Deviations over 150 groups are known to about 6%.
    np.testing.assert_allclose(widths[0], widths[1], rtol=0.35)


@pytest.mark.parametrize("over", ["queries", "sessions"])
def test_groups_add_up_to_the_log(over, world):
    log = world(queries=40, lengths=(3, 14), seed=7).of_several_rankers(5_000)
    grouped = GroupedClicks.of(log, over)
    assert grouped.sessions.sum() == log.sessions
    assert np.array_equal(grouped.clicks.sum(axis=0), log.clicks_per_list.sum(axis=0))
    cells = grouped.cells
    by_list = log.sessions_per_list[:, None] * log.lists.mask
    assert cells.impressions.sum() == by_list.sum() == cells.shown.sum()
    assert cells.clicks.sum() == log.clicks_per_list.sum() == cells.clicked.sum()
    assert np.array_equal(grouped.impressions, by_list.sum(axis=0))
    first = log.lists.documents[0, 0]
    at = (log.lists.documents[:, 0] == first) @ log.clicks_per_list[:, 0]
    assert cells.clicks[(cells.document == first) & (cells.position == 0)] == at


def test_a_bound_that_resampling_cannot_give_is_unbounded_and_survives_json(tmp_path):
    rows = [(q, [2 * q, 2 * q + 1], [40, int(q == 0)], 100) for q in range(40)]
    rows += [(q, [2 * q + 1, 2 * q], [30, 0], 100) for q in range(40)]
    found = estimate(log_of(rows), "harvest-adjacent")
    assert (found.low[1], found.high[1]) == (0, np.inf)
    found.write(tmp_path / "p.json")
    read = type(found).read(tmp_path / "p.json")
    assert read.high.tolist() == [1, np.inf]
    assert read.support.tolist() == found.support.tolist()


def test_unknown_estimators_and_empty_logs_are_refused(world):
    log = world(queries=40).of_one_ranker(100)
    with pytest.raises(SettingsError, match=r"no estimator 'magic'.*click-through"):
        estimate(log, "magic")
    with pytest.raises(DataError, match="the log has no session"):
        estimate(log.take_rows(np.array([], dtype=int)), "click-through")


def thinned(log, share, seed=0):
    """Every impression is logged with this chance, whatever list it stands on."""
    rng = np.random.default_rng(seed)
    pattern = np.repeat(np.arange(len(log.counts)), log.counts)
    documents = log.lists.documents[log.list_of[pattern]]
    documents = np.where(rng.random(documents.shape) < share, documents, PADDING).astype(np.int32)
    some = (documents != PADDING).any(axis=1)
    documents, pattern = documents[some], pattern[some]
    shown, list_of = np.unique(documents, axis=0, return_inverse=True)
    queries = np.zeros(len(shown), dtype=np.int32)
    queries[list_of.reshape(-1)] = log.lists.queries[log.list_of[pattern]]
    clicks = log.clicks[pattern] & (documents != PADDING)
    return ClickLog.from_clicks(RankedLists(shown, queries), list_of.reshape(-1), clicks)


def test_shuffled_lists_with_gaps_are_compared_where_both_positions_were_logged(world, errors):
    part = thinned(world(queries=60).shuffled(60_000), 0.5)
    found = estimate(part, "randomisation")
    assert np.abs(errors(found)).max() < 4
    both = part.lists.mask & part.lists.mask[:, :1]
    np.testing.assert_array_equal(found.support, part.sessions_per_list @ both)


def test_gaps_do_not_look_like_another_order(world):
    w = world(queries=60)
    assert abs(position_memory(GroupedClicks.of(thinned(w.shuffled(20_000), 0.5)))) < 0.05
    single = GroupedClicks.of(log_of([(0, [PADDING, 1], [0, 1], 9)]))
    with pytest.raises(DataError, match="seen twice beside others"):
        require_shuffled(single)


def test_sums_of_long_lists_are_held_some_at_a_time(world, monkeypatch):
    log = world(queries=40).of_several_rankers(5_000)
    whole = estimate(log, "harvest-all-pairs")
    monkeypatch.setattr(bootstrap, "MOST_SUMS", 700)
    parts = estimate(log, "harvest-all-pairs")
    assert parts.low.tolist() == pytest.approx(whole.low.tolist(), rel=1e-9)
