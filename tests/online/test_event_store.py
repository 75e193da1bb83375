import asyncio
import sqlite3
import subprocess
import sys

import pytest

from dualrank.errors import DataError, SettingsError, StorageError
from dualrank.online.events import event_tables, group_commit
from dualrank.online.events.event_store import EventStore
from dualrank.online.records import Event, Impression

from .stores import clicked, collector_of, record, shown


@pytest.fixture
def store(tmp_path):
    with EventStore(tmp_path / "events", wait=0.0) as made:
        yield made


def test_what_became_of_each_event_is_said(store):
    store.show(shown(1))
    unknown = Event("e", "i9", "d0")
    elsewhere = Event("e", "i1", "d9")
    no_kind = clicked(1, kind="doc_id")
    said = record(store, clicked(1), clicked(1), unknown, elsewhere, no_kind, clicked(1, 2))
    assert said == [
        "new",
        "again",
        "unknown impression",
        "not displayed",
        "unknown kind",
        "new",
    ]
    assert record(store, clicked(1), clicked(1, 1)) == ["again", "new"]


def test_an_event_id_belongs_to_its_impression(store):
    store.show(shown(1))
    store.show(shown(2))
    assert record(store, clicked(1, event_id="e"), clicked(2, event_id="e")) == ["new", "new"]


def test_events_are_still_there_and_known_after_the_store_was_closed(tmp_path):
    with EventStore(tmp_path, wait=0) as store:
        store.show(shown(1))
        store.show(shown(2))
        assert record(store, clicked(1)) == ["new"]
    with EventStore(tmp_path, wait=0) as store:
        assert record(store, clicked(1), clicked(2)) == ["again", "new"]
        counts = store.counts()
    assert (counts["impressions"], counts["events"], counts["again"]) == (2, 2, 1)


def test_impressions_that_nobody_clicked_are_written_when_the_store_closes(tmp_path):
    with EventStore(tmp_path) as store:
        for number in range(500):
            store.show(shown(number))
    with EventStore(tmp_path) as store:
        assert store.counts()["impressions"] == 500


def test_many_who_wait_share_transactions(store):
    for number in range(200):
        store.show(shown(number))

    async def everybody():
        return await asyncio.gather(
            *(store.record([clicked(number, place)]) for number in range(200) for place in range(3))
        )

    transactions = []
    store._connection.set_trace_callback(
        lambda text: transactions.append(text) if text == "COMMIT" else None
    )
    assert asyncio.run(everybody()) == [["new"]] * 600
    assert len(transactions) < 60
    assert store.counts()["events"] == 600


def test_late_events_are_counted_and_change_no_segment(store):
    store.show(shown(1))
    record(store, clicked(1))
    assert collector_of(store).collect() == [1]
    assert record(store, clicked(1, 1), clicked(1, 0)) == ["late", "again"]
    assert record(store, clicked(1, 1)) == ["again"]
    assert store.counts()["late"] == 1
    assert store.counts()["events"] == 2


def test_events_of_a_stream_wait_for_their_impression(store):
    events = [clicked(1), clicked(1), clicked(1, 1, "purchase", amount=3.5), Event("x", "i1", "d9")]
    assert store.copy([], events) == ["new", "again", "new", "new"]
    assert store.copy([], events) == ["again"] * 4
    assert store.counts()["events"] == 0
    store.copy([shown(1), shown(2)], [clicked(2)])
    assert store.counts()["events"] == 3
    assert store.copy([shown(1)], events) == ["again", "again", "again", "not displayed"]
    assert store.counts()["impressions"] == 2


def test_what_no_log_could_hold_is_refused_before_it_waits_with_others(store):
    for wrong in (
        Impression("", 0, "q", ("d",), 1),
        Impression("i", 0, "q\ud800", ("d",), 1),
        Impression("i", 0, "q", ("d\0",), 1),
        Impression("i", 0, "q", (), 1),
        Impression("i", 0, "q", ("d", "d"), 1),
        Impression("i", 0, "q", ("d",), -1),
        Impression("i", 0, "q", ("d", "e"), 1, features=b"1234"),
    ):
        with pytest.raises(DataError):
            store.show(wrong)
    for amount in (float("nan"), float("inf"), -1.0, 1e11):
        with pytest.raises(DataError, match="amount"):
            record(store, clicked(1, amount=amount))
    with pytest.raises(DataError, match="event_id"):
        record(store, clicked(1, event_id="\udfff"))


def test_at_most_so_many_kinds_become_columns(store):
    store.show(shown(1))
    said = record(store, *(clicked(1, kind=f"kind{number}") for number in range(40)))
    assert said == ["new"] * 31 + ["unknown kind"] * 9
    assert record(store, clicked(1, kind="kind3"), clicked(1, kind="click")) == ["again", "new"]


def _fill(store):
    """Leave no page of room, as a full disk does."""
    store.alone(lambda c: c.execute("SELECT 1"))
    store._connection.execute("PRAGMA max_page_count = 1").fetchone()


def test_a_full_disk_refuses_the_group_and_is_forgotten_when_there_is_room(store):
    store.show(shown(0))
    assert record(store, clicked(0)) == ["new"]
    _fill(store)
    store.show(shown(1, features=b"1234" * 3 * 9_000))
    with pytest.raises(StorageError, match=r"_events.db: .*full.*make room"):
        record(store, clicked(1))
    assert store.problem is not None
    assert store.counts()["events"] == 1
    store._connection.execute("PRAGMA max_page_count = 1000000").fetchone()
    assert record(store, clicked(1), clicked(0)) == ["new", "again"]
    assert store.problem is None


def test_a_kind_that_came_with_a_full_disk_is_numbered_later(store):
    store.show(shown(0))
    _fill(store)
    store.show(shown(1, features=b"1234" * 3 * 9_000))
    with pytest.raises(StorageError):
        record(store, clicked(0, kind="cart"))
    store._connection.execute("PRAGMA max_page_count = 1000000").fetchone()
    assert record(store, clicked(0, kind="buy"), clicked(0, kind="cart")) == ["new", "new"]


def test_impressions_wait_for_room_up_to_a_number(store, monkeypatch):
    monkeypatch.setattr(group_commit, "MOST_IMPRESSIONS", 50)
    monkeypatch.setattr(group_commit, "PATIENCE", 0.2)
    store.show(shown(0))
    record(store, clicked(0))
    _fill(store)
    for number in range(1, 100):
        store.show(shown(number, features=b"1234" * 3 * 9_000))
    with pytest.raises(StorageError):
        record(store, clicked(1))
    assert store.counts()["dropped"] > 0
    assert store.counts()["waiting"] <= 99
    store.close()


def test_nothing_is_taken_once_it_stops(store):
    store.close()
    with pytest.raises(StorageError, match="stopping"):
        record(store, clicked(1))


def test_a_mistake_in_one_group_is_not_made_for_ever(store, monkeypatch):
    store.show(shown(1))
    with monkeypatch.context() as patch:
        patch.setattr(event_tables, "insert", lambda *a, **k: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            record(store, clicked(1))
    store.show(shown(2))
    assert record(store, clicked(2)) == ["new"]


def test_one_process_writes(tmp_path):
    with EventStore(tmp_path), pytest.raises(SettingsError, match="is writing here"):
        EventStore(tmp_path)
    code = f"""
import sys, time
from dualrank.online.events.event_store import EventStore
with EventStore({str(tmp_path)!r}):
    print('holds', flush=True)
    sys.stdin.read()
"""
    other = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdout.readline() == b"holds\n"
    with pytest.raises(SettingsError, match=f"process {other.pid} is writing here"):
        EventStore(tmp_path)
    other.kill()
    other.wait()
    EventStore(tmp_path).close()


def test_another_format_is_refused(tmp_path):
    EventStore(tmp_path).close()
    with sqlite3.connect(tmp_path / "_events.db") as database:
        database.execute("PRAGMA user_version = 7")
    with pytest.raises(DataError, match="events of format 7; this version reads 1"):
        EventStore(tmp_path)


def test_the_database_of_another_program_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / "_events.db") as database:
        database.execute("CREATE TABLE theirs (a)")
    with pytest.raises(DataError, match="a database of another program"):
        EventStore(tmp_path)


def test_a_damaged_database_is_refused_with_what_to_do(tmp_path):
    with EventStore(tmp_path) as store:
        store.show(shown(1))
    (tmp_path / "_events.db").write_bytes(b"no database" * 1_000)
    with pytest.raises(DataError, match=r"damaged .*; move it away"):
        EventStore(tmp_path)
