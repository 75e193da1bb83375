"""Reducing a log of the paper's size: against the same group-bys by hand, and in memory.

Run as `python -m benchmarks.log_reduction [LOG.parquet]`. Without a log, one is generated as
`dualrank simulate --rankings` does: 3,268,177 sessions of up to ten documents, 71,106 lists, about
333,813 documents. The work by hand is what one would write in DuckDB for a log that is known to be
clean: the list of every session as a hash, sessions per list and click pattern, and the documents
of each distinct list; and once with `list()` instead of hashes, which needs no second look at the
log. Processor time is compared, of pairs taken in turn.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np

from benchmarks.letor_reading import memory
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.generator import World, with_document_ids
from dualrank.data.lists import RankedLists
from dualrank.data.log.long import write_long_log
from dualrank.data.log.read_log import read_log
from dualrank.reproduce.simulation import rank_initially

SESSIONS, LISTS, DOCUMENTS, FEATURES = 3_268_177, 71_106, 333_813, 33
GIBIBYTE = 2**30
REPETITIONS = 5

BY_HASH = """
    CREATE OR REPLACE TEMP TABLE happened AS
    SELECT query_id, shown, clicks, count(*) AS sessions, min(session_id) AS one_of_them FROM (
        SELECT session_id, any_value(query_id) AS query_id, sum(hash(doc_id, position)) AS shown,
               bit_or(CAST(clicked AS BIGINT) << (position - 1)) AS clicks
        FROM read_parquet('{log}') GROUP BY session_id)
    GROUP BY query_id, shown, clicks;
    CREATE OR REPLACE TEMP TABLE lists AS
    SELECT query_id, shown, list(doc_id ORDER BY position) AS documents
    FROM read_parquet('{log}') JOIN (SELECT shown, min(one_of_them) AS one_of_them FROM happened
                                     GROUP BY query_id, shown) ON one_of_them = session_id
    GROUP BY query_id, shown;
"""
BY_LIST = """
    CREATE OR REPLACE TEMP TABLE happened AS
    SELECT query_id, documents, clicks, count(*) AS sessions FROM (
        SELECT session_id, any_value(query_id) AS query_id,
               list(doc_id ORDER BY position) AS documents,
               list(clicked ORDER BY position) AS clicks
        FROM read_parquet('{log}') GROUP BY session_id)
    GROUP BY query_id, documents, clicks;
"""


def paper_log(share: float = 1.0) -> tuple[Dataset, ClickLog]:
    """A log of the paper's size, or a share of it, from the project's own simulated users."""
    data = with_document_ids(World(FEATURES).generate(round(share * DOCUMENTS / 24), seed=0))
    lists = rank_initially(data, seed=0, rankings=8)
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(lists))[: round(share * LISTS)]
    lists = RankedLists(lists.documents[chosen], lists.queries[chosen])
    return data, sample_log(data, lists, PositionBasedUser(), round(share * SESSIONS), rng)


def write_log(path: Path) -> None:
    """The same as Parquet, one row per displayed document."""
    data, log = paper_log()
    write_long_log(log, path, data.catalogue, np.random.default_rng(0))
    print(
        f"{SESSIONS:,} sessions, {len(log.lists):,} lists, {data.document_count:,} documents, "
        f"{path.stat().st_size / 1e6:.0f} MB of Parquet"
    )


def by_hand(log: Path, statements: str, memory: str) -> None:
    """DuckDB alone."""
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        connection.execute(f"SET memory_limit = '{memory}'")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"SET temp_directory = '{folder}'")
        connection.execute(statements.format(log=log))
        connection.sql("FROM happened").to_arrow_table()


def processor_seconds(task: Callable[[], object]) -> float:
    """The processor time of one call, over all threads."""
    start = time.process_time()
    task()
    return time.process_time() - start


def report(name: str, ratios: list[float], limit: float) -> bool:
    """Print the median of ratios and whether it keeps to the limit."""
    ratio = float(np.median(ratios))
    low, high = np.quantile(ratios, [0.25, 0.75])
    holds = ratio <= limit
    print(
        f"{name:<58}{ratio:6.2f} × (quartiles {low:.2f} to {high:.2f})   "
        f"at most {limit:g} ×: {'holds' if holds else 'FAILS'}",
        flush=True,
    )
    return holds


def main() -> None:
    """Print each ratio; exit with 1 if a limit does not hold."""
    if sys.argv[1:2] == ["--memory"]:
        read_log(sys.argv[2])
        print(memory("VmHWM"))
        return
    with tempfile.TemporaryDirectory() as folder:
        log = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "log.parquet"
        if not log.exists():
            write_log(log)
        read_log(log)
        ours, hashed = [], []
        for _ in range(REPETITIONS):
            ours.append(processor_seconds(lambda: read_log(log)))
            hashed.append(processor_seconds(lambda: by_hand(log, BY_HASH, "1200MB")))
        listed = processor_seconds(lambda: by_hand(log, BY_LIST, "8GB"))
        print(
            f"processor seconds: read_log {np.median(ours):.1f}, by hand with hashes "
            f"{np.median(hashed):.1f}, by hand with list() {listed:.1f}"
        )
        ratios = [a / b for a, b in zip(ours, hashed, strict=True)]
        holds = [
            report("read_log / DuckDB by hand with hashes", ratios, 1.3),
            report("read_log / DuckDB by hand with list()", [x / listed for x in ours], 1.3),
        ]
        command = [sys.executable, "-m", "benchmarks.log_reduction", "--memory", str(log)]
        peak = int(subprocess.run(command, check=True, capture_output=True).stdout)
        holds.append(peak < 2 * GIBIBYTE)
        print(
            f"peak memory of reading and reducing {peak / GIBIBYTE:.2f} GiB   "
            f"below 2 GiB: {'holds' if holds[-1] else 'FAILS'}"
        )
    sys.exit(not all(holds))


if __name__ == "__main__":
    main()
