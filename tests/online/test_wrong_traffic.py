"""What looks wrong in a round, and what is left of it."""

import numpy as np
import pyarrow as pa
import pytest

from dualrank.online.learner.wrong_traffic import Sessions, wrong_sessions


def table(clicks, clients=None):
    """Sessions by their clicks on each position, and their clients."""
    clicks = np.asarray(clicks, dtype=bool)
    session = np.repeat(np.arange(len(clicks)), clicks.shape[1])
    columns = {"session_id": session, "clicked": clicks.reshape(-1)}
    if clients is not None:
        columns["client_id"] = [clients[i] for i in session]
    return pa.table(columns)


def people(count, seed=0, depth=8):
    """Users who click here and there."""
    return np.random.default_rng(seed).random((count, depth)) < 0.1


def judged(clicks, clients=None, rates=()):
    left_out, said = wrong_sessions(Sessions.of(table(clicks, clients)), rates)
    return left_out, [(each.kind, each.said) for each in said]


def test_people_are_left_alone():
    clients = [f"u{i % 40}" for i in range(400)]
    left_out, said = judged(people(400), clients, rates=(0.8, 0.9))
    assert not left_out.any()
    assert said == []


def test_a_client_that_clicks_everything_is_left_out_and_named():
    clicks = np.concatenate([people(400), np.ones((30, 8), bool)])
    clients = [f"u{i % 40}" for i in range(400)] + ["bot"] * 30
    left_out, said = judged(clicks, clients)
    assert np.flatnonzero(left_out).tolist() == list(range(400, 430))
    assert said == [
        ("client", "client 'bot' clicked every result in 100% of 30 sessions: left out of learning")
    ]


def test_sessions_without_a_client_that_click_everything_are_left_out():
    clicks = np.concatenate([people(400), np.ones((30, 8), bool)])
    left_out, said = judged(clicks)
    assert left_out.sum() == 30
    assert said[0][0] == "clicks"
    assert "30 sessions clicked every result" in said[0][1]


def test_a_few_short_lists_that_are_all_clicked_are_no_machine():
    left_out, said = judged(np.ones((50, 3), bool))
    assert not left_out.any()
    assert said == []


def test_one_client_with_a_large_part_of_the_clicks_is_left_out():
    busy = np.zeros((100, 8), bool)
    busy[:, :3] = True
    clicks = np.concatenate([people(400), busy])
    clients = [f"u{i % 40}" for i in range(400)] + ["busy"] * 100
    left_out, said = judged(clicks, clients)
    assert left_out[400:].all()
    assert not left_out[:400].any()
    assert said[0][1].startswith("client 'busy' made ")


def test_where_all_come_through_one_client_none_is_left_out():
    left_out, _ = judged(people(400), ["frontend"] * 400)
    assert not left_out.any()


def test_a_flood_of_clicks_leaves_the_round_out_until_it_is_the_rule():
    flood = np.zeros((200, 8), bool)
    flood[:, :4] = True
    left_out, said = judged(flood, rates=(0.8, 0.9, 0.8))
    assert left_out.all()
    assert said[0] == (
        "clicks",
        "4 clicks a session, where it were 0.8: the round is left out of learning",
    )
    left_out, _ = judged(flood, rates=(0.8, 4.0, 4.0))
    assert not left_out.any()


def test_clicks_that_begin_are_no_flood():
    left_out, said = judged(people(400), rates=(0.0, 0.0, 0.8))
    assert not left_out.any()
    assert said == []


def test_clicks_that_no_longer_come_are_said():
    left_out, said = judged(np.zeros((500, 8), bool), rates=(0.8,))
    assert not left_out.any()
    assert "none of 500 sessions has a click" in said[0][1]


@pytest.mark.parametrize("clicked", [[True, None], [1, 0], [1.0, np.nan]])
def test_clicks_may_be_numbers_and_missing(clicked):
    rows = pa.table({"session_id": ["a", "a"], "clicked": clicked, "client_id": [None, None]})
    sessions = Sessions.of(rows)
    assert sessions.clicks.tolist() == [1]
    assert sessions.client.tolist() == [-1]
