"""The sample of Yandex's relevance prediction challenge as a click log.

    python -m benchmarks.yandex yandex.parquet

run at the root of a clone, reads `$DUALRANK_DATA/yandex_clicks/sessions.tsv.zst` (56,477 result
pages of ten documents, 20 queries; after a header, a line has split, query, ten documents and ten
clicks, by tabs, the latter two by blanks) and writes one row per displayed
document, with a column `split` (train or test, as in the file). Then, for instance,

    dualrank clicks compare yandex.parquet --held-out split=test
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

DEPTH = 10


def pages() -> Path:
    """Where the pages are, or the end of the program."""
    folder = os.environ.get("DUALRANK_DATA")
    if folder is None:
        sys.exit("DUALRANK_DATA is not set: it names the folder that holds yandex_clicks/")
    path = Path(folder) / "yandex_clicks" / "sessions.tsv.zst"
    if not path.exists():
        sys.exit(f"{path}: there is no such file; the pages are not part of dualrank")
    return path


def long_log(path: Path) -> pa.Table:
    """One row per displayed document."""
    with path.open("rb") as file:
        text = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), "utf-8")
        rows = [line.rstrip("\n").split("\t") for line in text][1:]
    sessions = np.repeat(np.arange(len(rows)), DEPTH)
    return pa.table(
        {
            "session_id": sessions,
            "query_id": pa.array([row[1] for row in rows]).take(pa.array(sessions)),
            "doc_id": [document for row in rows for document in row[2].split()],
            "position": np.tile(np.arange(1, DEPTH + 1), len(rows)),
            "clicked": [click == "1" for row in rows for click in row[3].split()],
            "split": pa.array([row[0] for row in rows]).take(pa.array(sessions)),
        }
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m benchmarks.yandex OUT.parquet")
    pq.write_table(long_log(pages()), sys.argv[1])
