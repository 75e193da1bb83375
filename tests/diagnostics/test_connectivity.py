import numpy as np
import pytest

from dualrank.data.click_log import ClickLog
from dualrank.data.lists import RankedLists
from dualrank.diagnostics.connectivity import connectivity, interval_width
from dualrank.diagnostics.facts import LogFacts
from dualrank.propensity.propensity import Propensity


def islands(sessions=50):
    """Documents change places within ranks 1 and 2, and within 3 and 4, but not across."""
    documents, queries = [], []
    for q in range(40):
        a, b, c, d = 4 * q + np.arange(4)
        for order in ((a, b, c, d), (b, a, d, c)):
            documents.append(order)
            queries.append(q)
    lists = RankedLists(np.array(documents, np.int32), np.array(queries, np.int32))
    rng = np.random.default_rng(0)
    shown = np.repeat(np.arange(len(lists)), sessions)
    return ClickLog.from_clicks(lists, shown, rng.random((len(shown), 4)) < 0.3)


def test_positions_that_no_document_joins_stand_apart():
    point = connectivity(LogFacts(islands()))
    assert point.numbers["parts"] == [[1, 2], [3, 4]]
    assert point.numbers["positions_apart"] == [3, 4]
    assert point.numbers["edges"] == ["1-2", "3-4"]
    assert point.numbers["share_of_pairs_at_two_positions"] == 1
    assert not point.numbers["can_harvest"]
    assert point.status == "failed"
    assert "positions 3–4 stand apart from the first" in point.meaning


def test_documents_that_were_never_clicked_join_nothing():
    log = islands()
    quiet = ClickLog(log.lists, log.list_of, log.clicks & (np.arange(4) != 1), log.counts)
    assert connectivity(LogFacts(quiet)).numbers["positions_apart"] == [2, 3, 4]


@pytest.mark.parametrize("seed", range(3))
def test_one_ranker_connects_nothing_and_several_connect_all(world, seed):
    here = world(seed=seed)
    alone = connectivity(here.facts(rankers=1))
    assert alone.status == "failed"
    assert alone.numbers["positions_apart"] == list(range(2, 11))
    assert alone.numbers["share_of_impressions_of_such_pairs"] == 0
    several = connectivity(here.facts(rankers=4))
    assert several.status == "good"
    assert several.numbers["parts"] == [list(range(1, 11))]
    assert 0.5 < several.numbers["share_of_pairs_at_two_positions"] < 1


def test_with_features_standing_apart_is_a_warning(world):
    here = world()
    log = here.log(rankers=1)
    assert connectivity(LogFacts(log, here.data)).status == "warning"


def test_weak_connections_are_told(world):
    point = connectivity(world().facts(sessions=3_000, rankers=2))
    assert point.status in ("warning", "failed")
    assert "so weakly" in point.meaning
    assert "Log longer" in point.advice


def test_shares_count_pairs_and_impressions():
    # Pair 0 and 1 change places in one of four sessions, pair 2 stays.
    lists = RankedLists(np.array([[0, 1, 2], [1, 0, 2]], np.int32), np.zeros(2, np.int32))
    clicks = np.ones((4, 3), dtype=bool)
    numbers = connectivity(LogFacts(ClickLog.from_clicks(lists, [0, 0, 0, 1], clicks))).numbers
    assert numbers["pairs"] == 3
    assert numbers["share_of_pairs_at_two_positions"] == pytest.approx(2 / 3)
    assert numbers["share_of_impressions_of_such_pairs"] == pytest.approx(2 / 3)


def test_a_curve_without_intervals_is_of_unknown_width():
    assert interval_width("no curve") == np.inf
    assert interval_width(Propensity.of([1.0, 0.5])) == np.inf
