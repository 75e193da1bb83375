import json
import time

import numpy as np
import pyarrow.parquet as pq
import pytest

from dualrank.data.features import read_features
from dualrank.errors import SettingsError, StorageError
from dualrank.online.events import group_commit
from dualrank.online.events.collecting import collecting
from dualrank.online.events.event_store import EventStore
from dualrank.online.events.redis_stream import RedisStream
from dualrank.online.events.segments import Segments
from dualrank.online.events.stream_copying import StreamCopying
from dualrank.online.records import Event

from ..waiting import wait_until
from .redis_server import RedisServer, needs_redis
from .stores import clicked, collector_of, record, rows_of, shown

pytestmark = needs_redis


@pytest.fixture
def server(tmp_path):
    with RedisServer(tmp_path / "redis") as started:
        yield started


@pytest.fixture
def stream(server):
    with RedisStream(server.url) as made:
        yield made


@pytest.fixture
def store(tmp_path):
    with EventStore(tmp_path / "events", wait=0.0) as made:
        yield made


def _copy_all(stream, store):
    while stream.copy_into(store, wait=0.01):
        pass


def test_what_servers_hand_over_becomes_a_segment(server, stream, store):
    features = np.arange(6).reshape(3, 2)
    stream.show(shown(1, client="anna", features=rows_of(features)))
    said = record(stream, clicked(1, 1), clicked(1, 2, "cart", amount=2.5), clicked(1, 1))
    assert said == ["new"] * 3
    refused = record(stream, Event("e", "i1", "d9"), clicked(1, kind="doc_id"))
    assert refused == ["not displayed", "unknown kind"]
    _copy_all(stream, store)
    assert store.counts()["events"] == 2
    assert collector_of(store).collect() == [1]
    table = pq.read_table(Segments(store.folder).clicks(1))
    assert table["clicked"].to_pylist() == [False, True, False]
    assert table["cart"].to_pylist() == [0, 0, 2.5]
    assert table["client_id"].to_pylist() == ["anna"] * 3
    assert abs(table["timestamp"][0].as_py().timestamp() - time.time()) < 600
    assert read_features(store.folder / "_features").features.tolist() == features.tolist()


def test_another_server_takes_events_and_refuses_what_nobody_displayed(server, stream, store):
    with RedisStream(server.url) as other:
        stream.show(shown(1))
        assert record(other, clicked(1), clicked(2)) == ["new", "unknown impression"]
        assert record(stream, clicked(1, 1)) == ["new"]
    _copy_all(stream, store)
    assert store.counts()["events"] == 2


def test_what_comes_again_counts_once(server, stream, store):
    for _ in range(3):
        stream.show(shown(1))
        record(stream, clicked(1))
    _copy_all(stream, store)
    counts = store.counts()
    assert (counts["impressions"], counts["events"]) == (1, 1)


def test_what_was_copied_is_removed_and_nothing_else(server, stream, store):
    stream.show(shown(1))
    record(stream, clicked(1))
    assert stream._client.xlen("dualrank:events") == 2
    _copy_all(stream, store)
    assert stream._client.xlen("dualrank:events") == 0
    record(stream, clicked(1, 1))
    assert stream._client.xlen("dualrank:events") == 1


def test_a_reader_that_died_before_it_removed_what_it_copied_counts_nothing_twice(
    server, stream, store, monkeypatch
):
    stream.show(shown(1))
    record(stream, clicked(1))

    def die(*args, **kwargs):
        raise KeyboardInterrupt

    with RedisStream(server.url) as dying:
        monkeypatch.setattr(dying._reader, "pipeline", die)
        with pytest.raises(KeyboardInterrupt):
            dying.copy_into(store)
        assert not store.may_forget
    assert collector_of(store).collect() == [1]
    with RedisStream(server.url) as following:
        _copy_all(following, store)
        assert following._client.xpending("dualrank:events", "collector")["pending"] == 0
    assert store.may_forget
    assert collector_of(store).collect() == []
    counts = store.counts()
    assert (counts["impressions"], counts["events"]) == (1, 1)


def test_what_another_reader_left_is_taken_over(server, stream, store, monkeypatch):
    monkeypatch.setattr("dualrank.online.events.redis_stream._ABANDONED", 0.0)
    stream.show(shown(1))
    record(stream, clicked(1))
    client = stream._client
    client.xgroup_create("dualrank:events", "collector", id="0", mkstream=True)
    assert client.xreadgroup("collector", "somebody", {"dualrank:events": ">"})
    _copy_all(stream, store)
    assert store.counts()["events"] == 1


def test_a_full_disk_of_the_store_loses_nothing(server, stream, store):
    stream.show(shown(1))
    record(stream, clicked(1))
    stream.copy_into(store)
    stream.show(shown(2, features=b"1234" * 3 * 9_000))
    record(stream, clicked(2))
    store._connection.execute("PRAGMA max_page_count = 1").fetchone()
    for _ in range(2):
        with pytest.raises(StorageError, match="full"):
            stream.copy_into(store)
    store._connection.execute("PRAGMA max_page_count = 1000000").fetchone()
    _copy_all(stream, store)
    assert store.counts()["events"] == 2


def test_redis_gone_refuses_events_and_back_goes_on(server, stream, store):
    stream.show(shown(1))
    record(stream, clicked(1))
    server.kill()
    stream.show(shown(2))
    with pytest.raises(StorageError, match=r"Redis at 127\.0\.0\.1:"):
        record(stream, clicked(2))
    with pytest.raises(StorageError):
        stream.copy_into(store)
    assert stream.counts()["waiting"] == 1
    server.start()
    # The impression that waited is there before its event is acknowledged.
    assert record(stream, clicked(2), clicked(1), clicked(1, 1)) == ["new"] * 3
    _copy_all(stream, store)
    counts = store.counts()
    assert (counts["impressions"], counts["events"]) == (2, 3)


def test_impressions_that_redis_never_got_have_no_events(server, stream, monkeypatch):
    monkeypatch.setattr(group_commit, "MOST_IMPRESSIONS", 1)
    server.kill()
    for number in range(5):
        stream.show(shown(number))
    assert stream.counts()["dropped"] >= 3
    server.start()
    said = record(stream, *(clicked(number) for number in range(5)))
    assert said.count("unknown impression") >= 3


def test_a_thread_copies_and_goes_on_when_redis_is_back(server, stream, store):
    with StreamCopying(stream, store) as copying:
        stream.show(shown(1))
        record(stream, clicked(1))
        wait_until(lambda: store.counts()["events"] == 1)
        server.kill()
        wait_until(lambda: copying.problem is not None)
        server.start()
        record(stream, clicked(1, 1))
        wait_until(lambda: store.counts()["events"] == 2)
        wait_until(lambda: copying.problem is None)


def test_who_collects_can_be_asked_why_nothing_comes(server, tmp_path):
    with collecting(server.url, tmp_path / "events", wait=0.0, every=0.1) as problem:
        assert problem() is None
        server.kill()
        wait_until(lambda: problem() is not None)
        assert "cannot be reached" in problem()
        server.start()
        wait_until(lambda: problem() is None)


def test_a_poisoned_stream_is_read_past(server, stream, store, caplog):
    add = stream._client.xadd
    good = [["e", "i1", "d0", "click", 1]]
    shown_well = ["i1", "q", ["d0"], 1, 0, "", 0]
    add("dualrank:events", {"theirs": "1"})
    add("dualrank:events", {"said": "no JSON"})
    add("dualrank:events", {"said": json.dumps([1, 2])})
    add("dualrank:events", {"said": json.dumps({"impressions": [[1]], "events": []})})
    for place, wrong in [(0, 5), (1, ""), (2, "d"), (2, 7), (3, "1"), (3, 1e9), (5, None), (6, 99)]:
        row = [*shown_well[:place], wrong, *shown_well[place + 1 :]]
        add("dualrank:events", {"said": json.dumps({"impressions": [row], "events": []})})
    amounts = [(4, wrong) for wrong in (-1, "nan", None)]
    for place, wrong in [(0, ""), (1, []), (2, "\0"), (3, "doc_id"), *amounts]:
        row = [*good[0][:place], wrong, *good[0][place + 1 :]]
        add("dualrank:events", {"said": json.dumps({"impressions": [], "events": [row]})})
    wrong = stream._client.xlen("dualrank:events")
    add("dualrank:events", {"said": json.dumps({"impressions": [shown_well], "events": good})})
    _copy_all(stream, store)
    assert stream.refused == wrong == 19
    assert caplog.text.count("of the stream is left out: ") == 19
    assert store.counts()["events"] == 1
    assert stream._client.xlen("dualrank:events") == 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"appendonly": "no"}, "appendonly is no, .*; set `appendonly yes`"),
        ({"appendfsync": "everysec"}, "appendfsync is everysec, .*; set `appendfsync always`"),
        ({"no-appendfsync-on-rewrite": "yes"}, "no-appendfsync-on-rewrite is yes"),
    ],
)
def test_a_redis_that_does_not_sync_is_refused(tmp_path, settings, said):
    with RedisServer(tmp_path, **settings) as server, pytest.raises(StorageError, match=said):
        RedisStream(server.url)


def test_a_redis_that_drops_keys_is_refused(tmp_path):
    settings = {"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"}
    with (
        RedisServer(tmp_path, **settings) as server,
        pytest.raises(SettingsError, match="allkeys-lru may remove events"),
    ):
        RedisStream(server.url)


def test_a_redis_that_stops_syncing_is_refused_while_it_runs(stream):
    stream.show(shown(1))
    record(stream, clicked(1))
    stream._client.config_set("appendfsync", "everysec")
    with pytest.raises(StorageError, match="appendfsync is everysec"):
        record(stream, clicked(1, 1))
    stream._client.config_set("appendfsync", "always")
    assert record(stream, clicked(1, 1)) == ["new"]


def test_a_redis_whose_settings_are_secret_is_refused(server, stream):
    rules = {"categories": ["+@all"], "commands": ["-config"], "keys": ["*"]}
    stream._client.acl_setuser("shy", enabled=True, passwords=["+secret"], **rules)
    url = server.url.replace("redis://", "redis://shy:secret@")
    with pytest.raises(SettingsError, match=r"CONFIG GET is forbidden .*\+config\|get") as found:
        RedisStream(url)
    assert "secret" not in str(found.value)


def test_a_redis_that_is_not_there_and_an_address_that_is_none_are_refused(server):
    server.kill()
    with pytest.raises(StorageError, match="cannot be reached"):
        RedisStream(server.url)
    with pytest.raises(SettingsError, match="no address of Redis"):
        RedisStream("http://somewhere")
