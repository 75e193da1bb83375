from dataclasses import replace

import numpy as np
import pytest

from dualrank.data.click_log import ClickLog
from dualrank.data.lists import RankedLists
from dualrank.data.log.reading_report import Client, ReadingReport
from dualrank.diagnostics.facts import LogFacts
from dualrank.diagnostics.traffic import clicks_everything, clicks_only_last, traffic


def with_robots(log, share, clicks_of):
    """Some more sessions, whose clicks are given."""
    count = int(share * log.sessions)
    rng = np.random.default_rng(0)
    robots = np.tile(np.array(clicks_of, dtype=bool), (count, 1))
    return ClickLog.from_clicks(
        log.lists,
        np.concatenate([log.list_of, rng.integers(len(log.lists), size=count)]),
        np.concatenate([log.clicks, robots]),
        np.concatenate([log.counts, np.ones(count, dtype=np.int64)]),
    )


EVERYTHING = [1] * 10
LAST = [0] * 9 + [1]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rankers", [1, 4])
def test_people_are_left_alone(world, seed, rankers):
    point = traffic(world(seed=seed).facts(rankers=rankers))
    assert point.status == "good"
    assert "the log names no clients" in point.meaning


@pytest.mark.parametrize(("share", "status"), [(0.005, "warning"), (0.05, "failed")])
def test_sessions_that_click_everything_are_found(world, share, status):
    log = with_robots(world().log(20_000), share, EVERYTHING)
    point = traffic(LogFacts(log))
    assert clicks_everything(log)[0] == pytest.approx(share * 20_000, abs=2)
    assert point.status == status
    assert "sessions that click every result" in point.meaning.lower()
    assert "max_clicks" in point.advice


@pytest.mark.parametrize(("share", "status"), [(0.03, "warning"), (0.2, "failed")])
def test_sessions_that_click_the_last_only_are_found(world, share, status):
    log = with_robots(world().log(20_000), share, LAST)
    point = traffic(LogFacts(log))
    assert point.status == status
    assert "click the last result only" in point.meaning


def test_what_the_ranks_above_suggest_is_counted_on_lists_of_any_length(world):
    log = world().log(20_000)
    documents = log.lists.documents.copy()
    documents[::2, 7:] = -1
    clicks = log.clicks & (documents[log.list_of] >= 0)
    cut = replace(log, lists=type(log.lists)(documents, log.lists.queries), clicks=clicks)
    last = above = 0
    for row, count in zip(range(len(cut.counts)), cut.counts, strict=True):
        length = (documents[cut.list_of[row]] >= 0).sum()
        places = np.flatnonzero(cut.clicks[row])
        if len(places) == 1:
            last += count * (places[0] == length - 1)
            above += count * (places[0] in (length - 2, length - 3))
    assert clicks_only_last(cut) == (last, above / 2)


def test_short_lists_may_be_clicked_all_over():
    lists = world_of_pairs()
    rng = np.random.default_rng(0)
    log = ClickLog.from_clicks(lists, rng.integers(50, size=3_000), rng.random((3_000, 2)) < 0.6)
    assert traffic(LogFacts(log)).status == "good"


def world_of_pairs():
    from dualrank.data.lists import RankedLists

    return RankedLists(np.arange(100, dtype=np.int32).reshape(50, 2), np.arange(50, dtype=np.int32))


@pytest.mark.parametrize(("share", "status"), [(0.02, "good"), (0.1, "warning"), (0.4, "failed")])
def test_a_large_client_is_found(world, share, status):
    log = world().log(5_000)
    clients = (
        Client("gone", 10, 10, 0.9, 0.9, left_out=True),
        Client("crawler", 100, 100, share, share),
    )
    reading = ReadingReport("log", 1, 5_000, 5_000, 1, clients=clients)
    point = traffic(LogFacts(replace(log, reading=reading)))
    assert point.status == status
    assert point.numbers["largest_client"] == "crawler"
    assert ("client crawler made" in point.meaning.lower()) == (status != "good")


def test_no_clicks_no_robots(world):
    log = world().log(100)
    quiet = ClickLog(log.lists, log.list_of, log.clicks & False, log.counts)
    assert traffic(LogFacts(quiet)).status == "good"


def test_gaps_above_the_last_result_do_not_move_it():
    """Five results logged among seven, once with each of them clicked alone."""
    documents = np.array([[-1, 0, 1, -1, 2, 3, 4]], dtype=np.int32)
    lists = RankedLists(documents, np.zeros(1, dtype=np.int32))
    clicks = np.eye(7, dtype=bool)[[1, 2, 4, 5, 6]]
    log = ClickLog.from_clicks(lists, np.zeros(5, int), clicks, np.array([1, 2, 4, 8, 16]))
    assert clicks_only_last(log) == (16, (8 + 4) / 2)
