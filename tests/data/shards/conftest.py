"""A log with contexts, periods, events and every length of lists, with features beside it."""

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualrank.data.shards.reduce_to_shards import reduce_to_shards
from dualrank.data.shards.sharded_log import ShardedLog

QUERIES, CANDIDATES, SESSIONS = 30, 12, 1500
OPTIONS = {"contexts": ["device"], "event_kinds": ["cart"], "periods": 2}


def rows_of_sessions(seed=0):
    """The columns of a long log."""
    rng = np.random.default_rng(seed)
    rows = []
    for session in range(SESSIONS):
        query = rng.integers(QUERIES)
        order = np.random.default_rng([query, rng.integers(3)]).permutation(CANDIDATES)
        for place, document in enumerate(order[: 1 + rng.integers(8)], start=1):
            clicked = rng.random() < 0.5 / place
            cart = int(clicked and rng.random() < 0.3)
            device = ("phone", "desk")[session % 2]
            rows.append(
                (f"s{session}", f"q {query}", f"d{document}", place, clicked, device, session, cart)
            )
    names = (
        *("session_id", "query_id", "doc_id", "position", "clicked"),
        *("device", "timestamp", "cart"),
    )
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def features_of_documents(seed=0):
    """Some documents that are never displayed, and names that are sorted as text."""
    rng = np.random.default_rng(seed)
    pairs = [(f"q {q}", f"d{d}") for q in range(QUERIES) for d in range(CANDIDATES + 1)]
    rng.shuffle(pairs)
    columns = {"query_id": [q for q, _ in pairs], "doc_id": [d for _, d in pairs]}
    return columns | {name: rng.normal(size=len(pairs)) for name in ("age", "shard", "bm25")}


def files_of(sharded):
    """The digests of all files, shard by shard."""
    return [{name: file.sha256 for name, file in shard.files.items()} for shard in sharded.shards]


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """The folder with `log.parquet` and `features.parquet`."""
    folder = tmp_path_factory.mktemp("sharded")
    pq.write_table(pa.table(rows_of_sessions()), folder / "log.parquet")
    pq.write_table(pa.table(features_of_documents()), folder / "features.parquet")
    return folder


@pytest.fixture(scope="session")
def reduced(files):
    """The log in four shards, with features: never changed."""
    return reduce_to_shards(
        files / "log.parquet", files / "shards", 4, files / "features.parquet", **OPTIONS
    )


@pytest.fixture
def sharded(reduced, tmp_path):
    """A copy of the log in four shards, to be changed."""
    shutil.copytree(reduced.folder, tmp_path / "log")
    return ShardedLog.open(tmp_path / "log")
