import threading

import numpy as np
import pyarrow.parquet as pq
import pytest

from dualrank.data.features import read_features
from dualrank.data.log.read_log import read_log
from dualrank.errors import StorageError
from dualrank.online.events import collector as collectors
from dualrank.online.events import segment_files
from dualrank.online.events.event_store import EventStore
from dualrank.online.events.segments import Segments

from ..waiting import wait_until
from .stores import Clock, clicked, collector_of, record, rows_of, shown


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path, clock):
    with EventStore(tmp_path / "events", wait=0.0, clock=clock) as made:
        yield made


@pytest.fixture
def segments(store):
    return Segments(store.folder)


def test_a_segment_is_the_documented_click_log(store, segments):
    store.show(shown(1, client="anna", swapped=2))
    store.show(shown(2, documents=2))
    record(store, clicked(1, 1), clicked(2, 0, "purchase", amount=2.5), clicked(2, 1, amount=0))
    record(store, clicked(2, 0, "purchase", amount=1.0, event_id="another"))
    assert collector_of(store).collect() == [1]
    table = pq.read_table(segments.clicks(1))
    assert table.column_names == [
        "session_id",
        "query_id",
        "doc_id",
        "position",
        "clicked",
        "timestamp",
        "version",
        "swapped",
        "client_id",
        "purchase",
    ]
    rows = [tuple(row.values()) for row in table.drop_columns(["timestamp"]).to_pylist()]
    assert rows == [
        ("i1", "q1", "d0", 1, False, 1, 2, "anna", 0.0),
        ("i1", "q1", "d1", 2, True, 1, 2, "anna", 0.0),
        ("i1", "q1", "d2", 3, False, 1, 2, "anna", 0.0),
        ("i2", "q2", "d0", 1, False, 1, 0, None, 3.5),
        ("i2", "q2", "d1", 2, False, 1, 0, None, 0.0),
    ]
    assert segments.features(1) is None
    assert segments.closed() == [1]


def test_segments_are_read_as_one_log_while_kinds_of_events_are_added(store):
    store.show(shown(1))
    record(store, clicked(1))
    collector_of(store).collect()
    store.show(shown(2))
    record(store, clicked(2, 2), clicked(2, 2, "purchase", amount=3))
    collector_of(store).collect()
    log = read_log(store.folder, event_kinds=["purchase"])
    assert log.sessions == 2
    assert log.clicks.sum() == 2
    assert log.events["purchase"].sum() == 3


def test_features_of_several_segments_are_read_and_the_last_holds(store, segments):
    store.show(shown(1, features=rows_of([[1, 1], [2, 2], [3, 3]])))
    store.show(shown(5, documents=1, features=rows_of([[4, 4]])))
    collector_of(store).collect()
    store.show(shown(2))  # Its documents are in a table, and not here.
    collector_of(store).collect()
    store.show(shown(9, documents=2, features=rows_of([[7, 7], [8, 8]])))
    collector_of(store).collect()
    assert [segments.features(n) is None for n in (1, 2, 3)] == [False, True, False]
    found = read_features(store.folder / "_features")
    values = dict(zip(found.catalogue.doc_ids, found.features[:, 0].tolist(), strict=True))
    assert values == {"d0": 7, "d1": 8, "d2": 3}
    one = read_features(segments.features(1))
    assert one.features[:, 0].tolist() == [4, 2, 3]


def test_impressions_wait_for_their_events(tmp_path, clock):
    with EventStore(tmp_path, wait=60, clock=clock) as store:
        collector = collector_of(store)
        store.show(shown(1))
        record(store, clicked(1))
        clock.time += 50
        store.show(shown(2))
        assert record(store, clicked(1, 1)) == ["new"]
        assert collector.collect() == []
        clock.time += 20
        assert collector.collect() == [1]
        assert record(store, clicked(1, 2), clicked(2, 0)) == ["late", "new"]
        assert set(pq.read_table(Segments(tmp_path).clicks(1))["session_id"].to_pylist()) == {"i1"}


def test_a_segment_is_closed_when_it_is_time_or_when_it_is_full(store, segments, clock):
    collector = collector_of(store, every=100.0, most=4)
    for number in range(10):
        store.show(shown(number))
    record(store, clicked(0))
    assert collector.collect() == [1, 2]
    assert collector.collect() == []
    clock.time += 200
    assert collector.collect() == [3]
    assert [pq.read_metadata(segments.clicks(n)).num_rows for n in (1, 2, 3)] == [12, 12, 6]


def test_time_goes_on_where_the_clock_is_set_back(tmp_path, clock):
    with EventStore(tmp_path, wait=0, clock=clock) as store:
        store.show(shown(1))
        record(store, clicked(1))
    clock.time -= 100_000
    with EventStore(tmp_path, wait=0, clock=clock) as store:
        store.show(shown(2))
        assert record(store, clicked(2), clicked(1)) == ["new", "again"]
        assert collector_of(store).collect() == [1]
    times = pq.read_table(Segments(tmp_path).clicks(1))["timestamp"].to_pylist()
    assert times == sorted(times)
    assert (times[-1] - times[0]).total_seconds() < 10


def _filled(store, impressions=50):
    for number in range(impressions):
        features = np.full((3, 2), number)
        store.show(shown(number, features=rows_of(features)))
    record(store, *(clicked(number, number % 3) for number in range(impressions)))
    record(store, *(clicked(number, 1, "cart", amount=0.1) for number in range(impressions)))


STEPS = ["write_segment", "mark_written"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("after", [False, True])
def test_whoever_is_killed_at_a_step_leaves_what_the_next_one_writes_alike(
    tmp_path, monkeypatch, step, after
):
    class Killed(BaseException):
        pass

    def die(*args, **kwargs):
        if after:
            real(*args, **kwargs)
        raise Killed

    with EventStore(tmp_path / "a", wait=0, clock=Clock()) as store:
        _filled(store)
        collector_of(store).collect()
    real = getattr(collectors, step)
    with EventStore(tmp_path / "b", wait=0, clock=Clock()) as store:
        _filled(store)
        monkeypatch.setattr(collectors, step, die)
        with pytest.raises(Killed):
            collector_of(store).collect()
        monkeypatch.setattr(collectors, step, real)
        # What comes in between belongs to the next one.
        store.show(shown(99))
        assert record(store, clicked(0, 2), clicked(99)) == ["late", "new"]
    with EventStore(tmp_path / "b", wait=0, clock=Clock()) as store:
        collector_of(store).collect()
    for place in ("clicks", "_features"):
        one, other = (tmp_path / x / place / "000001.parquet" for x in "ab")
        # Impressions arrive at slightly different times in the two.
        drop = ["timestamp"] if place == "clicks" else []
        assert pq.read_table(one).drop_columns(drop) == pq.read_table(other).drop_columns(drop)
    assert Segments(tmp_path / "b").closed() == [1, 2]


def test_the_same_bytes_are_written_again(store, segments):
    _filled(store)
    collector_of(store).collect()
    wanted = segments.clicks(1).read_bytes(), segments.features(1).read_bytes()
    for damage in (
        lambda path: path.unlink(),
        lambda path: path.write_bytes(path.read_bytes()[:-7]),
        lambda path: path.write_bytes(
            path.read_bytes()[:100] + b"\0" * 8 + path.read_bytes()[108:]
        ),
    ):
        for path in (segments.clicks(1), segments.features_place(1)):
            damage(path)
            assert collector_of(store).collect() == [1]
            assert (segments.clicks(1).read_bytes(), segments.features(1).read_bytes()) == wanted


def test_a_torn_segment_is_not_closed_until_it_is_mended(store, segments):
    _filled(store)
    collector_of(store).collect()
    path = segments.clicks(1)
    path.write_bytes(path.read_bytes()[:-7])
    assert segments.closed() == []
    collector_of(store).collect()
    assert segments.closed() == [1]


def test_what_is_old_is_forgotten_and_segments_stay(store, segments, clock):
    collector = collector_of(store, kept=1_000.0)
    _filled(store, 5_000)
    collector.collect()
    (pages,) = store.alone(lambda tables: tables.execute("PRAGMA page_count").fetchone())
    assert record(store, clicked(1, 2)) == ["late"]
    clock.time += 2_000
    store.show(shown(9_999))
    record(store, clicked(9_999))
    collector.collect()
    assert record(store, clicked(1, 2)) == ["unknown impression"]
    assert record(store, clicked(9_999)) == ["again"]
    assert segments.closed() == [1, 2]
    assert collector_of(store).collect() == []
    (left,) = store.alone(lambda tables: tables.execute("PRAGMA page_count").fetchone())
    assert left < pages / 2
    store.close()
    with EventStore(store.folder, wait=0, clock=clock) as again:
        again.show(shown(7))
        assert record(again, clicked(7)) == ["new"]
        assert collector_of(again).collect() == [3]


def test_segments_that_are_forgotten_leave_the_tables_and_may_be_moved_away(store, segments, clock):
    collector = collector_of(store, kept=1_000.0)
    for number in range(1, 6):
        store.show(shown(number))
        record(store, clicked(number))
        assert collector.collect() == [number]
        clock.time += 100
    segments.clicks(1).unlink()
    assert collector_of(store).collect() == [1]  # Its rows are there: it is taken for lost.
    clock.time += 2_000
    collector.collect()
    (rows,) = store.alone(lambda tables: tables.execute("SELECT count(*) FROM segments").fetchone())
    assert rows == 1
    for number in range(1, 6):
        segments.clicks(number).unlink()
    later = collector_of(store)
    store.show(shown(6))
    assert record(store, clicked(6)) == ["new"]
    assert later.collect() == [6]
    assert segments.closed() == [6]


def test_files_are_not_listed_by_the_thread_that_commits(store, monkeypatch):
    listing = Segments.files
    threads = []

    def listed(self):
        threads.append(threading.current_thread().name)
        return listing(self)

    monkeypatch.setattr(Segments, "files", listed)
    collector = collector_of(store)
    for number in range(3):
        store.show(shown(number))
        record(store, clicked(number))
        collector.collect()
    assert threads == [threading.current_thread().name]


def test_nothing_is_forgotten_while_a_stream_may_bring_it_again(store, clock):
    _filled(store, 5)
    collector = collector_of(store, kept=10.0)
    collector.collect()
    store.may_forget = False
    clock.time += 100
    collector.collect()
    assert record(store, clicked(1, 2)) == ["late"]


def test_a_new_database_goes_on_after_the_segments_that_are_there(store, segments):
    _filled(store, 5)
    collector_of(store).collect()
    store.close()
    for path in store.folder.glob("_events.db*"):
        path.unlink()
    with EventStore(store.folder, wait=0) as again:
        again.show(shown(7))
        record(again, clicked(7))
        assert collector_of(again).collect() == [2]
    assert segments.closed() == [1, 2]


def test_a_thread_closes_segments_and_goes_on_after_a_full_disk(tmp_path, monkeypatch):
    def full(*args):
        raise StorageError("the disk is full")

    with EventStore(tmp_path, wait=0) as store:
        store.show(shown(1))
        record(store, clicked(1))
        collector = collector_of(store, every=0.01)
        real = segment_files.write_segment
        monkeypatch.setattr(collectors, "write_segment", full)
        with collector:
            wait_until(lambda: collector.problem == "the disk is full")
            monkeypatch.setattr(collectors, "write_segment", real)
            wait_until(lambda: Segments(tmp_path).closed() == [1])
            wait_until(lambda: collector.problem is None)


def test_others_read_while_one_writes(store, segments):
    assert Segments(store.folder / "nowhere").closed() == []
    assert segments.closed() == []
    _filled(store)
    collector_of(store).collect()
    assert segments.closed() == [1]
    store.close()
    assert segments.closed() == [1]
