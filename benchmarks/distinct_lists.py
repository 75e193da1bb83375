"""Reducing a log whose lists hardly ever repeat, as personalised ones do: memory at its peak.

Run as `python -m benchmarks.distinct_lists [--lists N]`. Every session displays ten of the 37 pages
that its query has, in an order of its own; pages have ids of some hundred characters, as URLs do.
`dualrank reduce` does the work with the memory limit that it has by default.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

URL = "https://example.org/a/rather/long/path/of/a/shop/with/categories/and/more/page-"
LOG = """
    COPY (
        SELECT session AS session_id, 'query ' || query AS query_id,
               '{url}' || query || '-' || ((start + place * step) % 37) AS doc_id,
               place + 1 AS position, CAST(hash(session, place) % 10 = 0 AS INTEGER) AS clicked
        FROM (SELECT range AS session, range % ({lists} // 50) AS query, hash(range) % 37 AS start,
                     1 + hash(range, 1) % 36 AS step FROM range({lists})),
             (SELECT range AS place FROM range(10))
    ) TO '{path}' (FORMAT PARQUET)
"""


def main() -> None:
    """Write the log, reduce it in a process of its own, and say what that took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lists", type=int, default=1_000_000)
    asked = parser.parse_args().lists
    with tempfile.TemporaryDirectory() as folder:
        log, out = Path(folder) / "log.parquet", Path(folder) / "reduced.parquet"
        duckdb.execute(LOG.format(url=URL, lists=asked, path=log))
        begin = time.perf_counter()
        command = [sys.executable, "-m", "dualrank", "reduce", str(log), "--out", str(out)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - begin
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
        lists = pq.read_metadata(out).num_rows
        print(
            f"{asked:,} sessions, {lists:,} distinct lists, {log.stat().st_size / 1e6:.0f} MB of "
            f"Parquet: {seconds:.0f} s, {peak:.1f} GB at the peak, "
            f"{out.stat().st_size / 1e6:.0f} MB reduced"
        )


if __name__ == "__main__":
    main()
