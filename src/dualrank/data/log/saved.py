"""A reduced log as a Parquet file, and back.

One row per distinct list: `query_id`, `doc_ids` in the order in which they were displayed (where
lists have gaps also `places`, at which positions), and `happened`, a list of what was done on it:
the clicked positions, the contexts, in how many sessions, and of every further kind of event what
these add up to at which positions. Any reader of Parquet can use it; the key `dualrank.log` of its
metadata holds the order of context values and the account of how the log was read.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog, Column
from dualrank.data.lists import PADDING, RankedLists
from dualrank.data.log.assembly import catalogue_of, in_order
from dualrank.data.log.examples import MAX_DEPTH
from dualrank.data.log.reading_report import ReadingReport
from dualrank.errors import DataError
from dualrank.storage import require_suffix, write_table

FORMAT = 1
PARTIAL_FORMAT = 2
"""That of logs whose lists have gaps, which the first readers would close."""
KEY = b"dualrank.log"


def write_log(log: ClickLog, path: Path) -> None:
    """Save a reduced log; nothing appears under this name before all of it is written."""
    require_suffix(path, "a reduced log", ".parquet")
    write_table(path, to_table(log), "a reduced log")


def to_table(log: ClickLog) -> pa.Table:
    """The reduced log as an Arrow table of one row per list."""
    if log.catalogue is None:
        raise DataError("this log does not know the names of its documents")
    mask = log.lists.mask
    shown = pa.array(log.catalogue.doc_ids).take(pa.array(log.lists.documents[mask]))
    order = np.argsort(log.list_of, kind="stable")
    clicks = log.clicks[order]
    where = np.nonzero(clicks)[1].astype(np.int32) + 1
    fields: dict[str, Any] = {
        "clicks": pa.ListArray.from_arrays(_offsets(clicks.sum(axis=1)), where),
        "sessions": pa.array(log.counts[order]),
    }
    for name, column in log.columns.items():
        codes = pa.array(column.codes[order])
        fields[name] = pa.DictionaryArray.from_arrays(codes, list(column.names)).cast(pa.string())
    if log.events:
        fields["events"] = _struct(
            {kind: _amounts(amounts[order]) for kind, amounts in log.events.items()}
        )
    happened = _struct(fields)
    of_list = np.bincount(log.list_of, minlength=len(log.lists))
    lengths = _offsets(mask.sum(axis=1))
    partial = bool(log.lists.have_gaps.any())
    places = {"places": pa.ListArray.from_arrays(lengths, _places(mask))} if partial else {}
    note = {
        "format": PARTIAL_FORMAT if partial else FORMAT,
        "columns": {name: column.names for name, column in log.columns.items()},
        "events": list(log.events),
        "reading": None if log.reading is None else log.reading.to_dict(),
    }
    return pa.table(
        {
            "query_id": pa.array(log.catalogue.query_ids).take(pa.array(log.lists.queries)),
            "doc_ids": pa.ListArray.from_arrays(lengths, shown),
            **places,
            "happened": pa.ListArray.from_arrays(_offsets(of_list), happened),
        },
        metadata={KEY: json.dumps(note).encode()},
    )


def is_saved(path: str) -> bool:
    """Whether a Parquet file is a reduced log."""
    try:
        metadata = pq.read_schema(path).metadata
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path}: not a readable Parquet file ({reason})") from error
    return metadata is not None and KEY in metadata


def read_saved(path: str) -> ClickLog:
    """Read what `write_log` wrote."""
    try:
        table = pq.read_table(path)
        note = json.loads(table.schema.metadata[KEY])
        found = note["format"]
        if found not in (FORMAT, PARTIAL_FORMAT):
            raise DataError(
                f"{path}: a reduced log of format {found}; this version reads {FORMAT} and "
                f"{PARTIAL_FORMAT}"
            )
        return _from_table(table, note)
    except (OSError, KeyError, ValueError, TypeError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path}: damaged: not a reduced log ({reason})") from error


def _from_table(table: pa.Table, note: dict[str, Any]) -> ClickLog:
    shown = table["doc_ids"].combine_chunks()
    lengths = shown.value_lengths().to_numpy()
    list_of_row = np.repeat(np.arange(table.num_rows), lengths)
    place = np.arange(len(list_of_row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    if note["format"] == PARTIAL_FORMAT:
        place = _read_places(table["places"].combine_chunks(), lengths)
    queries = table["query_id"].combine_chunks()
    catalogue, query_of_row, pair_of_row = catalogue_of(
        queries.take(pa.array(list_of_row)), shown.flatten()
    )
    documents = np.full((table.num_rows, int(place.max()) + 1), PADDING, dtype=np.int32)
    documents[list_of_row, place] = pair_of_row
    query_of_list = query_of_row[np.cumsum(lengths) - lengths]

    happened = table["happened"].combine_chunks()
    rows = happened.flatten()
    list_of = np.repeat(np.arange(table.num_rows), happened.value_lengths().to_numpy())
    where = rows.field("clicks")
    clicks = np.zeros((len(rows), documents.shape[1]), dtype=bool)
    row_of_click = np.repeat(np.arange(len(rows)), where.value_lengths().to_numpy())
    clicks[row_of_click, where.flatten().to_numpy() - 1] = True
    columns = {}
    for name, names in note["columns"].items():
        codes = pc.index_in(rows.field(name), pa.array(names, pa.string()))
        columns[name] = Column(tuple(names), codes.to_numpy().astype(np.int32))
    log = in_order(
        RankedLists(documents, query_of_list.astype(np.int32)),
        list_of,
        clicks,
        rows.field("sessions").to_numpy(),
        columns,
        catalogue,
        # Logs that were reduced before there were events have none.
        {
            kind: _laid_out(rows.field("events").field(kind), clicks.shape)
            for kind in note.get("events", [])
        },
    )
    reading = None if note["reading"] is None else ReadingReport.from_dict(note["reading"])
    return replace(log, reading=reading)


def _offsets(lengths: Any) -> pa.Array:
    return pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32))


def _places(mask: NDArray[np.bool_]) -> pa.Array:
    """Where the documents of each list stand, from 1."""
    return pa.array(np.nonzero(mask)[1].astype(np.int32) + 1)


def _read_places(places: pa.ListArray, lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Where the documents of each list stand, from 0; rising within a list."""
    found = places.flatten().to_numpy().astype(np.int64) - 1
    of_list = np.repeat(np.arange(len(lengths)), lengths)
    if not np.array_equal(places.value_lengths().to_numpy(), lengths):
        raise ValueError("places and doc_ids differ in number")
    rising = (np.diff(found) > 0) | (np.diff(of_list) > 0)
    if not (rising.all() and (found >= 0).all() and (found < MAX_DEPTH).all()):
        raise ValueError("places do not rise from 1")
    return found


def _struct(fields: dict[str, Any]) -> pa.StructArray:
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))


def _amounts(laid_out: NDArray[np.float64]) -> pa.ListArray:
    """The positions with an amount above nothing, and the amounts."""
    row, place = np.nonzero(laid_out)
    pairs = _struct(
        {
            "position": pa.array((place + 1).astype(np.int32)),
            "amount": pa.array(laid_out[row, place]),
        }
    )
    return pa.ListArray.from_arrays(_offsets((laid_out != 0).sum(axis=1)), pairs)


def _laid_out(pairs: pa.ListArray, shape: tuple[int, ...]) -> NDArray[np.float64]:
    row = np.repeat(np.arange(shape[0]), pairs.value_lengths().to_numpy())
    flat = pairs.flatten()
    laid_out = np.zeros(shape)
    laid_out[row, flat.field("position").to_numpy() - 1] = flat.field("amount").to_numpy()
    return laid_out
