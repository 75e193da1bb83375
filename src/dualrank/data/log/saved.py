"""A reduced log as a Parquet file, and back.

One row per distinct list: `query_id`, `doc_ids` in the order in which they were displayed (where
lists have gaps also `places`, at which positions), and `happened`, a list of what was done on it:
the clicked positions, the contexts, in how many sessions, and of every further kind of event what
these add up to at which positions. Any reader of Parquet can use it; the key `dualrank.log` of its
metadata holds the order of context values, the account of how the log was read, and a digest of all
of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog
from dualrank.data.log.content_digest import ContentDigest
from dualrank.data.log.saved_rows import log_of
from dualrank.data.table_files import refuse_many, refuse_swollen
from dualrank.errors import DataError
from dualrank.sentences import reason_of, shortened
from dualrank.storage import atomic_file, require_suffix

FORMAT = 1
PARTIAL_FORMAT = 2
"""That of logs whose lists have gaps, which the first readers would close."""
KEY = b"dualrank.log"
LISTS_PER_TABLE = 65_536
LISTS_AT_ONCE = 4_096
"""So many are read before it is looked at how much they hold."""
BROKEN = (
    ArithmeticError,
    AttributeError,
    KeyError,
    MemoryError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    pa.ArrowException,
)
"""What Arrow, JSON and the checks say against a file that is not what was written."""


def write_log(log: ClickLog, path: Path, **notes: Any) -> None:
    """Save a reduced log; nothing appears under this name before all of it is written.

    Further `notes`, which JSON can hold, stand beside the account of how the log was read.
    """
    require_suffix(path, "a reduced log", ".parquet")
    schema = _schema_with_note(log, notes)
    with (
        atomic_file(path) as file,
        pq.ParquetWriter(file, schema, compression="zstd") as writer,
    ):
        for table in _tables(log):
            writer.write_table(table)


def to_table(log: ClickLog) -> pa.Table:
    """The reduced log as an Arrow table of one row per list."""
    metadata = _schema_with_note(log, {}).metadata
    return pa.concat_tables(_tables(log)).replace_schema_metadata(metadata)


def is_saved(path: str) -> bool:
    """Whether a Parquet file is a reduced log."""
    return _note_of(path) is not None


def note_of(path: str) -> dict[str, Any]:
    """What is noted in a Parquet file, unproven as yet; nothing where it is no reduced log."""
    with refusing_damage(path):
        note = json.loads(_note_of(path) or b"{}")
        if not isinstance(note, dict):
            raise ValueError("its note is no object")
        return note


def _note_of(path: str) -> bytes | None:
    try:
        with pa.OSFile(path) as file:
            metadata = pq.read_schema(file).metadata
    except BROKEN as error:
        raise DataError(f"{path}: not a readable Parquet file ({reason_of(error)})") from error
    return (metadata or {}).get(KEY)


def read_saved(path: str) -> ClickLog:
    """Read what `write_log` wrote, and check that it is that."""
    with refusing_damage(path):
        return log_of(*rows_and_note(path))


@contextmanager
def refusing_damage(path: str) -> Iterator[None]:
    """Whatever is found to be wrong with a reduced log, in one sentence that names the file."""
    try:
        yield
    except BROKEN as error:
        raise DataError(
            f"{path}: damaged: not a reduced log ({reason_of(error)}); reduce the log again"
        ) from error


def rows_and_note(path: str) -> tuple[pa.Table, dict[str, Any]]:
    """The rows of a reduced log, and its note, if they are those that were written."""
    with refusing_damage(path), pa.OSFile(path) as opened:
        file = pq.ParquetFile(opened)
        refuse_swollen(Path(path), file.metadata)
        note = json.loads(file.schema_arrow.metadata[KEY])
        found = note["format"]
        if found not in (FORMAT, PARTIAL_FORMAT):
            raise DataError(
                f"{path}: a reduced log of format {shortened(found)}; this version reads "
                f"{FORMAT} and {PARTIAL_FORMAT}"
            )
        wanted = _schema(list(note["columns"]), note.get("events", []), found > FORMAT)
        return _read(Path(path), file, wanted, note), note


def _read(path: Path, file: pq.ParquetFile, wanted: pa.Schema, note: dict[str, Any]) -> pa.Table:
    """The rows, if they are those that were written."""
    digest, pieces, values = ContentDigest(), [], 0
    for batch in file.iter_batches(LISTS_AT_ONCE, columns=wanted.names):
        piece = pa.Table.from_batches([batch]).select(wanted.names).cast(wanted)
        lists = (piece[name] for name in ("doc_ids", "happened"))
        values += max(pc.sum(pc.list_value_length(each)).as_py() or 0 for each in lists)
        refuse_many(path, values)
        for name in wanted.names:
            for chunk in piece[name].chunks:
                _require_values(chunk, name)
        digest.add(piece)
        pieces.append(piece)
    if not pieces:
        pieces = [pa.Table.from_batches([pa.RecordBatch.from_pylist([], wanted)])]
        digest.add(pieces[0])
    # Files that were written before there was a digest have none.
    written = note.pop("digest", None)
    if written is not None and written != digest.result(_canonical(note)):
        raise ValueError("its digest differs from that of what was written")
    return pa.concat_tables(pieces)


def _require_values(values: pa.Array, name: str) -> None:
    if values.null_count:
        raise ValueError(f"a value of {name} is missing")
    if pa.types.is_struct(values.type):
        for field, inner in zip(values.type, values.flatten(), strict=True):
            _require_values(inner, f"{name}.{field.name}")
    elif pa.types.is_list(values.type):
        _require_values(values.flatten(), name)


def _schema(columns: Sequence[str], events: Sequence[str], partial: bool) -> pa.Schema:
    """What a reduced log with these columns and events looks like."""
    text, places = pa.large_string(), pa.list_(pa.int32())
    happened = [("clicks", places), ("sessions", pa.int64()), *((name, text) for name in columns)]
    if events:
        amounts = pa.list_(pa.struct([("position", pa.int32()), ("amount", pa.float64())]))
        happened.append(("events", pa.struct([(kind, amounts) for kind in events])))
    return pa.schema(
        [
            ("query_id", text),
            ("doc_ids", pa.list_(text)),
            *([("places", places)] if partial else []),
            ("happened", pa.list_(pa.struct(happened))),
        ]
    )


def _schema_with_note(log: ClickLog, notes: Mapping[str, Any]) -> pa.Schema:
    note: dict[str, Any] = {
        **notes,
        "format": PARTIAL_FORMAT if log.lists.have_gaps.any() else FORMAT,
        "columns": {name: column.names for name, column in log.columns.items()},
        "events": list(log.events),
        "reading": None if log.reading is None else log.reading.to_dict(),
    }
    digest = ContentDigest()
    for table in _tables(log):
        digest.add(table)
    note["digest"] = digest.result(_canonical(note))
    schema = _schema(list(log.columns), list(log.events), bool(log.lists.have_gaps.any()))
    return schema.with_metadata({KEY: json.dumps(note).encode()})


def _canonical(note: dict[str, Any]) -> str:
    """A note as text that is the same before it is written and after it is read."""
    return json.dumps(json.loads(json.dumps(note)), sort_keys=True)


def _tables(log: ClickLog) -> Iterator[pa.Table]:
    """The rows, some lists at a time: names are long, and all of them together need not fit."""
    catalogue, lists = log.catalogue, log.lists
    if catalogue is None:
        raise DataError("this log does not know the names of its documents")
    schema = _schema(list(log.columns), list(log.events), bool(log.lists.have_gaps.any()))
    order = np.argsort(log.list_of, kind="stable")
    of_list = np.bincount(log.list_of, minlength=len(lists))
    ends = np.append(0, np.cumsum(of_list))
    for start in range(0, max(len(lists), 1), LISTS_PER_TABLE):
        chosen = slice(start, min(start + LISTS_PER_TABLE, len(lists)))
        documents = lists.documents[chosen]
        mask = documents >= 0
        lengths = mask.sum(axis=1)
        content = {
            "query_id": _texts(catalogue.query_ids[lists.queries[chosen]]),
            "doc_ids": _lists(lengths, _texts(catalogue.doc_ids[documents[mask]])),
            "places": _lists(lengths, np.nonzero(mask)[1].astype(np.int32) + 1),
            "happened": _lists(
                of_list[chosen], _happened(log, order[ends[chosen.start] : ends[chosen.stop]])
            ),
        }
        yield pa.table([content[name] for name in schema.names], schema=schema)


def _happened(log: ClickLog, rows: NDArray[np.intp]) -> pa.StructArray:
    clicks = log.clicks[rows]
    where = np.nonzero(clicks)[1].astype(np.int32) + 1
    fields: dict[str, Any] = {
        "clicks": _lists(clicks.sum(axis=1), where),
        "sessions": pa.array(log.counts[rows]),
    }
    for name, column in log.columns.items():
        fields[name] = _texts(np.array(column.names, dtype=object)[column.codes[rows]])
    if log.events:
        fields["events"] = _struct(
            {kind: _amounts(amounts[rows]) for kind, amounts in log.events.items()}
        )
    return _struct(fields)


def _amounts(laid_out: NDArray[np.float64]) -> pa.ListArray:
    """The positions with an amount above nothing, and the amounts."""
    row, place = np.nonzero(laid_out)
    pairs = _struct(
        {
            "position": pa.array((place + 1).astype(np.int32)),
            "amount": pa.array(laid_out[row, place]),
        }
    )
    return _lists((laid_out != 0).sum(axis=1), pairs)


def _texts(names: NDArray[Any]) -> pa.Array:
    return pa.array(names, pa.large_string())


def _lists(lengths: NDArray[np.integer], values: Any) -> pa.ListArray:
    return pa.ListArray.from_arrays(np.append(0, np.cumsum(lengths)).astype(np.int32), values)


def _struct(fields: dict[str, Any]) -> pa.StructArray:
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))
