"""The files of a segment, made of the rows that were assigned to it: the same bytes each time."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dualrank.data.features import LATEST
from dualrank.data.log.event_amounts import LARGEST
from dualrank.errors import DataError, StorageError
from dualrank.online.events.event_tables import NAME, mendable
from dualrank.online.events.segment_assignments import Assigned, Files
from dualrank.online.events.segments import Segments
from dualrank.online.records import CLICK
from dualrank.sentences import reason_of
from dualrank.storage import atomic_file, marked, remove_unfinished, sha256_of_file

_IMPRESSIONS_AT_ONCE = 1_000


def write_segment(tables: sqlite3.Connection, segments: Segments, segment: Assigned) -> Files:
    """Write both files of a segment, features first: who finds clicks finds their features."""
    clicks, features = segments.clicks(segment.number), segments.features_place(segment.number)
    try:
        with mendable(segments.folder / NAME):
            found = dict[tuple[str, str], bytes]()
            for part in _parts(tables, segment):
                _gather(part, found)
            if found:
                _write(features, _feature_tables(found), LATEST)
            else:
                features.unlink(missing_ok=True)
            _write(clicks, (_rows(part, segment) for part in _parts(tables, segment)), "a log")
        known = (features.stat().st_size, sha256_of_file(features)) if found else None
        return Files((clicks.stat().st_size, sha256_of_file(clicks)), known)
    except OSError as error:
        raise StorageError(f"{clicks}: cannot be written: {error.strerror}") from error
    except (ValueError, TypeError, LookupError, pa.ArrowException) as error:
        raise DataError(
            f"{segments.folder / NAME}: damaged: segment {segment.number} cannot be made of it "
            f"({reason_of(error)})"
        ) from error


def are_there(segments: Segments, segment: Assigned, *, contents: bool) -> bool:
    """Whether the files of a segment are those that were written: by size, or by `contents` too."""
    if segment.files is None:
        return False
    places = (
        (segments.clicks(segment.number), segment.files.clicks),
        (segments.features_place(segment.number), segment.files.features),
    )
    try:
        return all(
            path.stat().st_size == known[0] and (not contents or sha256_of_file(path) == known[1])
            for path, known in places
            if known is not None
        )
    except OSError:
        return False


def _parts(tables: sqlite3.Connection, segment: Assigned) -> Iterator[tuple[list[Any], list[Any]]]:
    """Impressions and their events, some at a time, each as one answer (see `event_tables.py`)."""
    for first in range(segment.first, segment.last + 1, _IMPRESSIONS_AT_ONCE):
        between = (first, min(first + _IMPRESSIONS_AT_ONCE - 1, segment.last))
        (impressions,) = tables.execute(
            "SELECT json_group_array(json_array(number, id, CAST(round(time * 1e6) AS INTEGER), "
            "query, documents, version, swapped, client, hex(features))) FROM "
            "(SELECT * FROM impressions WHERE number BETWEEN ? AND ? ORDER BY number)",
            between,
        ).fetchone()
        (events,) = tables.execute(
            "SELECT json_group_array(json_array(impression, position, kind, amount)) FROM "
            "(SELECT * FROM events WHERE impression BETWEEN ? AND ? AND NOT late "
            "ORDER BY impression, id)",
            between,
        ).fetchone()
        shown = json.loads(impressions)
        for row in shown:
            row[4] = json.loads(row[4])
        yield shown, json.loads(events)


def _rows(part: tuple[list[Any], list[Any]], segment: Assigned) -> pa.Table:
    """The long log of some impressions."""
    impressions, events = part
    lengths = [len(row[4]) for row in impressions]
    start_of = dict(
        zip((row[0] for row in impressions), np.cumsum([0, *lengths]).tolist(), strict=False)
    )
    rows = sum(lengths)
    amounts = np.zeros((len(segment.kinds), rows))
    for impression, position, kind, amount in events:
        amounts[kind, start_of[impression] + position - 1] += amount

    def each(place: int, kind: pa.DataType) -> pa.Array:
        return pa.array([row[place] for row in impressions], kind).take(of)

    of = pa.array(np.repeat(np.arange(len(impressions)), lengths))
    clients = [row[7] or None for row in impressions]
    return pa.table(
        {
            "session_id": each(1, pa.string()),
            "query_id": each(3, pa.string()),
            "doc_id": pa.array(chain.from_iterable(row[4] for row in impressions), pa.string()),
            "position": pa.array(
                chain.from_iterable(range(1, length + 1) for length in lengths), pa.int32()
            ),
            "clicked": amounts[segment.kinds.index(CLICK)] > 0,
            "timestamp": each(2, pa.timestamp("us", tz="UTC")),
            "version": each(5, pa.int32()),
            "swapped": each(6, pa.int32()),
            "client_id": pa.array(clients, pa.string()).take(of),
            **{
                # A column of amounts that is read again: sums of many must stay below its limit.
                kind: np.minimum(amounts[number], LARGEST - 1)
                for number, kind in enumerate(segment.kinds)
                if kind != CLICK
            },
        }
    )


def _gather(part: tuple[list[Any], list[Any]], found: dict[tuple[str, str], bytes]) -> None:
    """The features of every pair as they were displayed last."""
    for row in part[0]:
        if features := bytes.fromhex(row[8]):
            width = len(features) // len(row[4])
            for place, document in enumerate(row[4]):
                found[row[3], document] = features[place * width : (place + 1) * width]


def _feature_tables(found: dict[tuple[str, str], bytes]) -> Iterator[pa.Table]:
    pairs, rows = list(found), list(found.values())
    for start in range(0, len(pairs), 20_000):
        part = rows[start : start + 20_000]
        offsets = np.cumsum([0, *(len(row) // 4 for row in part)]).astype(np.int32)
        values = np.frombuffer(b"".join(part), dtype="<f4")
        queries, documents = zip(*pairs[start : start + 20_000], strict=True)
        yield pa.table(
            {
                "query_id": pa.array(queries, pa.string()),
                "doc_id": pa.array(documents, pa.string()),
                "features": pa.ListArray.from_arrays(pa.array(offsets), pa.array(values)),
            }
        )


def _write(path: Path, tables: Iterable[pa.Table], what: str) -> None:
    """Write a file, and sync its name too: what is said to be written must be there."""
    remove_unfinished(path)
    tables = iter(tables)
    first = next(tables)
    with (
        atomic_file(path) as file,
        pq.ParquetWriter(file, marked(first.schema, what), compression="zstd") as writer,
    ):
        for table in chain([first], tables):
            writer.write_table(table.replace_schema_metadata(writer.schema.metadata))
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
