"""A click log written out again: one row per displayed document of every session."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dualrank.data.catalogue import Catalogue
from dualrank.data.click_log import ClickLog
from dualrank.storage import atomic_file, marked, require_suffix

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
    turn_of = _turns(pattern_of, len(log.counts)) if log.events else pattern_of
    for start in range(0, max(len(pattern_of), 1), SESSIONS_PER_TABLE):
        pattern = pattern_of[start : start + SESSIONS_PER_TABLE]
        turn = turn_of[start : start + SESSIONS_PER_TABLE]
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
                "query_id": pa.array(catalogue.query_ids[queries], pa.large_string()),
                "doc_id": pa.array(
                    catalogue.doc_ids[documents[session, position]], pa.large_string()
                ),
                "position": (position + 1).astype(np.int32),
                "clicked": log.clicks[pattern][session, position],
                **contexts,
                **{
                    kind: _dealt(amounts[pattern], log.counts[pattern], turn)[session, position]
                    for kind, amounts in log.events.items()
                },
            }
        )


def _turns(pattern_of: NDArray[np.integer], patterns: int) -> NDArray[np.integer]:
    """Which of the sessions with its pattern each session is, from 0."""
    order = np.argsort(pattern_of, kind="stable")
    counts = np.bincount(pattern_of, minlength=patterns)
    turns = np.empty(len(pattern_of), dtype=np.int64)
    turns[order] = np.arange(len(pattern_of)) - np.repeat(np.cumsum(counts) - counts, counts)
    return turns


def _dealt(
    sums: NDArray[np.float64], sessions: NDArray[np.integer], turn: NDArray[np.integer]
) -> NDArray[np.float64]:
    """What sessions did, of whom the sum is known: whole numbers one by one, others evenly.

    So a purchase that was 0 or 1 is that again, and what is read again adds up to the same.
    """
    each, left = np.divmod(sums, sessions[:, None])
    dealt = each + (turn[:, None] < left)
    return np.where(sums == np.floor(sums), dealt, sums / sessions[:, None])


def write_long_log(
    log: ClickLog, path: Path, catalogue: Catalogue, rng: np.random.Generator
) -> None:
    """Write the long log as Parquet, sessions in random order, in little memory."""
    require_suffix(path, "a log", ".parquet")
    tables = long_tables(log, catalogue, rng)
    first = next(tables)
    with (
        atomic_file(path) as file,
        pq.ParquetWriter(file, marked(first.schema, "a log"), compression="zstd") as writer,
    ):
        for table in chain([first], tables):
            writer.write_table(table.replace_schema_metadata(writer.schema.metadata))
