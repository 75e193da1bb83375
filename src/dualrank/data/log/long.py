"""A click log written out again: one row per displayed document of every session."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dualrank.data.catalogue import Catalogue
from dualrank.data.click_log import ClickLog
from dualrank.storage import atomic_file, require_suffix

SESSIONS_PER_TABLE = 100_000


def long_tables(
    log: ClickLog, catalogue: Catalogue, rng: np.random.Generator | None = None
) -> Iterator[pa.Table]:
    """The rows of the long log, some sessions at a time.

    Sessions are numbered, in the order of the log's own rows or, given `rng`, in a random one.
    """
    pattern_of = np.repeat(np.arange(len(log.counts), dtype=np.int32), log.counts)
    if rng is not None:
        rng.shuffle(pattern_of)
    query_names, doc_names = pa.array(catalogue.query_ids), pa.array(catalogue.doc_ids)
    for start in range(0, max(len(pattern_of), 1), SESSIONS_PER_TABLE):
        pattern = pattern_of[start : start + SESSIONS_PER_TABLE]
        documents = log.lists.documents[log.list_of[pattern]]
        session, position = np.nonzero(documents >= 0)
        queries = log.lists.queries[log.list_of[pattern]][session]
        contexts = {
            name: pa.array(column.names).take(pa.array(column.codes[pattern][session]))
            for name, column in log.columns.items()
        }
        yield pa.table(
            {
                "session_id": session + start,
                "query_id": query_names.take(pa.array(queries)),
                "doc_id": doc_names.take(pa.array(documents[session, position])),
                "position": (position + 1).astype(np.int32),
                "clicked": log.clicks[pattern][session, position],
                **contexts,
            }
        )


def write_long_log(
    log: ClickLog, path: Path, catalogue: Catalogue, rng: np.random.Generator
) -> None:
    """Write the long log as Parquet, sessions in random order, in little memory."""
    require_suffix(path, "a log", ".parquet")
    tables = long_tables(log, catalogue, rng)
    first = next(tables)
    with (
        atomic_file(path) as file,
        pq.ParquetWriter(file, first.schema, compression="zstd") as writer,
    ):
        for table in chain([first], tables):
            writer.write_table(table)
