"""Documents that come in any order leave in that of a run."""

import os
import signal
from concurrent.futures import wait

import numpy as np
import pyarrow as pa
import pytest

from dualrank.data.dataset import Dataset
from dualrank.data.feature_rows import by_query
from dualrank.data.lists import rank_documents
from dualrank.data.log.duckdb_engine import DuckDBEngine
from dualrank.data.score_order import ScoreOrder
from dualrank.errors import DataError, SettingsError

COUNT = 5_000


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def documents(rng, *, shuffled):
    queries = np.sort(rng.integers(0, 300, COUNT)).astype(str)
    if shuffled:
        rng.shuffle(queries)
    # Few values, so that many are equal; zero has two signs.
    scores = (rng.integers(-3, 4, COUNT) * rng.choice([-0.0, 1.0, 0.25], COUNT)).astype(np.float32)
    return queries, np.arange(COUNT).astype(str), scores


def added(order, queries, names, scores, rng):
    cuts = np.sort(rng.integers(0, COUNT, 20))
    for rows in np.split(np.arange(COUNT), cuts):
        order.add(pa.array(queries[rows]), pa.array(names[rows]), scores[rows])


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_order_is_that_of_documents_held_in_memory(folder, monkeypatch, shuffled, seed):
    monkeypatch.setattr("dualrank.data.score_order.ROWS_AT_ONCE", 700)
    rng = np.random.default_rng(seed)
    queries, names, scores = documents(rng, shuffled=shuffled)
    with ScoreOrder("here") as order:
        added(order, queries, names, scores, rng)
        found = list(order.ranked())
    together = by_query(queries)
    data = Dataset.from_arrays(np.zeros((COUNT, 1)), queries[together], doc_ids=names[together])
    best_first = rank_documents(data, scores[together])
    table = pa.concat_tables(found)
    assert table["query_id"].to_pylist() == queries[together].tolist()
    assert table["doc_id"].to_pylist() == names[together][best_first].tolist()
    assert table["score"].to_pylist() == scores[together][best_first].tolist()
    assert table["rank"].to_pylist() == [rank + 1 for n in data.lengths for rank in range(n)]
    assert all(part["rank"][0].as_py() == 1 for part in found), "queries are not cut"
    assert list(folder.iterdir()) == []


def test_nothing_is_in_order_too(folder):
    with ScoreOrder("here") as order:
        order.add(pa.array([], pa.string()), pa.array([], pa.string()), np.empty(0, np.float32))
        order.add(pa.array(["q"]), pa.array(["d"]), np.ones(1, np.float32))
        (table,) = order.ranked()
    assert table.to_pylist() == [{"query_id": "q", "doc_id": "d", "score": 1.0, "rank": 1}]


def test_a_sort_that_outgrows_memory_goes_on_on_disk(folder, monkeypatch):
    """More bytes than DuckDB may hold, no two rows of a query together."""
    set_up = DuckDBEngine._set_up  # Each thread needs memory, however many this machine has.
    monkeypatch.setattr(DuckDBEngine, "_set_up", lambda engine, _: set_up(engine, 1))
    total = 400_000
    name = np.char.add("a-document-with-a-long-name-", np.arange(total).astype(str))
    scores = np.random.default_rng(0).random(total, dtype=np.float32)
    with ScoreOrder("here", "50MB") as order:
        for rows in np.split(np.arange(total), 10):
            queries = pa.array((rows % 1_000).astype(str))
            order.add(queries, pa.array(name[rows]), scores[rows])
        ranked = order.ranked()
        tables = [next(ranked)]
        assert list(folder.rglob("*.tmp")), "nothing is on disk"
        tables += ranked
    assert sum(map(len, tables)) == total
    assert (
        tables[-1]["score"].to_numpy()[-400:].tolist() == np.sort(scores[999::1_000])[::-1].tolist()
    )


def test_memory_that_is_no_size_and_too_little_of_it_are_said(folder):
    with pytest.raises(SettingsError, match="memory is a size such as 4GB, not 'much'"):
        ScoreOrder("here", "much")
    names = pa.array(np.arange(200_000).astype(str))
    with ScoreOrder("features.parquet", "2MB") as order:
        order.add(names, names, np.zeros(len(names), np.float32))
        with pytest.raises(DataError) as caught:
            list(order.ranked())
        assert "features.parquet: the ranking does not fit into the memory" in str(caught.value)
    assert list(folder.iterdir()) == []


def test_an_interrupt_ends_the_sort_and_leaves_nothing(folder, monkeypatch):
    rows = np.arange(200_000)
    names = pa.array(rows.astype(str))
    signals = iter([signal.SIGINT])

    def interrupt_once(futures, timeout):
        for number in signals:
            os.kill(os.getpid(), number)
        return wait(futures, timeout)

    with ScoreOrder("here") as order:
        order.add(names, names, rows.astype(np.float32))
        monkeypatch.setattr("dualrank.data.log.duckdb_engine.wait", interrupt_once)
        with pytest.raises(KeyboardInterrupt):
            list(order.ranked())
    assert list(folder.iterdir()) == []
