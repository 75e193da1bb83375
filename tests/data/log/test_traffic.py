"""Robots are named, and left out when told so."""

import numpy as np
import pyarrow as pa
import pytest

from dualrank.data.log.read_log import read_log
from dualrank.errors import DataError

from .conftest import long_table
from .reference import happenings

POSITIONS = 4


def people_and_a_robot(people=90, seed=0):
    """Each person clicks once; the robot makes a tenth of all clicks, all on the last rank."""
    luck = np.random.default_rng(seed)
    robot = people // 9
    rows, clients = [], []
    for session in range(people + robot):
        click = POSITIONS if session >= people else luck.integers(1, POSITIONS)
        for place in range(1, POSITIONS + 1):
            rows.append((session, "q", f"d{place}", place, int(place == click)))
            clients.append("robot" if session >= people else f"person {session}")
    return long_table(rows), pa.array(clients)


def test_a_robot_is_named_whether_or_not_it_is_left_out():
    table, clients = people_and_a_robot()
    table = table.append_column("client_id", clients)
    log = read_log(table)
    first = log.reading.clients[0]
    assert (first.name, first.sessions, first.clicks, first.left_out) == ("robot", 10, 10, False)
    assert first.share_of_clicks == first.share_of_sessions == 0.1
    assert log.sessions == 100

    filtered = read_log(table, max_client_share=0.05)
    assert filtered.reading.clients[0].left_out
    assert not filtered.reading.clients[1].left_out
    assert filtered.reading.filtered == {"max_client_share": 10}
    assert filtered.reading.bad == 0
    assert filtered.reading.table()[0][:2] == ("client with too many of all clicks", "10 sessions")


def test_without_its_robot_a_log_is_that_of_the_people():
    table, clients = people_and_a_robot()
    people = read_log(table.filter(pa.compute.not_equal(clients, "robot")))
    filtered = read_log(table.append_column("client_id", clients), max_client_share=0.05)
    assert happenings(filtered) == happenings(people)
    assert filtered.clicks_per_list[0, -1] == 0


def test_sessions_with_many_clicks_are_left_out_and_counted(clean):
    rows = [*clean, ("s4", "q1", "a", 1, 1), ("s4", "q1", "b", 2, 1)]
    log = read_log(long_table(rows), max_clicks=1)
    assert happenings(log) == happenings(read_log(long_table(clean)))
    assert log.reading.filtered == {"max_clicks": 1}
    assert read_log(long_table(rows), max_clicks=2).sessions == 4


def test_a_session_is_counted_by_the_first_filter_that_it_meets(clean):
    table = long_table(clean)
    clients = pa.array(["x", "x", "y", "z", "z"])
    table = table.append_column("who", clients)
    log = read_log(
        long_table([*clean, ("s4", "q1", "a", 1, 1), ("s4", "q1", "b", 2, 1)]).append_column(
            "who", pa.array(["x", "x", "y", "z", "z", "x", "x"])
        ),
        columns={"client_id": "who"},
        max_clicks=1,
        max_client_share=0.5,
    )
    assert log.reading.filtered == {"max_clicks": 1, "max_client_share": 1}
    assert log.sessions == 2


def test_a_share_of_clients_needs_clients(clean):
    with pytest.raises(DataError, match="max_client_share needs a column client_id"):
        read_log(long_table(clean), max_client_share=0.1)
