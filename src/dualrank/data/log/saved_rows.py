"""The rows of a saved log, checked for what no log can hold, as a `ClickLog`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dualrank.data.click_log import MOST_SESSIONS, ClickLog, Column
from dualrank.data.lists import PADDING, RankedLists
from dualrank.data.log.assembly import catalogue_of, in_order
from dualrank.data.log.examples import MAX_DEPTH
from dualrank.data.log.reading_report import ReadingReport


def log_of(
    table: pa.Table, note: dict[str, Any], more: Mapping[str, Column] | None = None
) -> ClickLog:
    """The log of a table without nulls, or a `ValueError` that says what is wrong with a row.

    Rows that are alike become one. `more` columns have a value for everything that `happened`.
    """
    lengths, names = _lengths(table["doc_ids"]), _inner(table["doc_ids"])
    _refuse(lengths < 1, "has no document")
    _refuse(lengths > MAX_DEPTH, f"has more than {MAX_DEPTH} documents")
    list_of_row = np.repeat(np.arange(table.num_rows), lengths)
    place = np.arange(len(list_of_row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    if "places" in table.column_names:
        place = _places(table["places"], lengths, list_of_row)
    catalogue, query_of_list, pair_of_row = catalogue_of(table["query_id"], names, list_of_row)
    depth = int(place.max(initial=-1)) + 1
    documents = np.full((table.num_rows, depth), PADDING, dtype=np.int32)
    documents[list_of_row, place] = pair_of_row
    beside = np.sort(documents, axis=1)
    twice = (beside[:, 1:] == beside[:, :-1]) & (beside[:, 1:] != PADDING)
    _refuse(twice.any(axis=1), "shows a document twice")

    list_of = np.repeat(np.arange(table.num_rows), _lengths(table["happened"]))
    rows = _inner(table["happened"])
    shown = documents[list_of] != PADDING
    sessions = _numbers(_field(rows, "sessions"))
    _refuse(sessions < 1, "happened in less than one session", list_of)
    if sessions.sum(dtype=np.float64) >= MOST_SESSIONS:
        raise ValueError("it has more sessions than can be counted")
    columns = {}
    for name, known in note["columns"].items():
        codes = pc.index_in(_field(rows, name), pa.array(known, pa.large_string()))
        if codes.null_count or len(set(known)) < len(known):
            raise ValueError(f"a value of {name} is not among those that it has")
        columns[name] = Column(tuple(known), _numbers(codes).astype(np.int32))
    events = {}
    for kind in note.get("events", []):
        amounts = _inner(_field(_field(rows, "events"), kind))
        value = _numbers(_field(amounts, "amount"))
        laid_out = np.zeros(shown.shape)
        row, column = _cells(_field(_field(rows, "events"), kind), shown, kind, list_of, "position")
        good = np.isfinite(value) & (value >= 0)
        _refuse(~good, f"has an amount of {kind} that is no number from 0", list_of[row])
        laid_out[row, column] = value
        events[kind] = laid_out
    clicks = np.zeros(shown.shape, dtype=bool)
    clicks[_cells(_field(rows, "clicks"), shown, "clicks", list_of)] = True
    log = in_order(
        RankedLists(documents, query_of_list.astype(np.int32)),
        list_of,
        clicks,
        sessions,
        {**columns, **(more or {})},
        catalogue,
        events,
    )
    reading = None if note["reading"] is None else ReadingReport.from_dict(note["reading"])
    return replace(log, reading=reading)


def one_table(tables: Sequence[pa.Table]) -> pa.Table:
    """Rows of several logs, one below the other; only those of logs with gaps have `places`."""
    if any("places" in table.column_names for table in tables):
        tables = [_with_places(table) for table in tables]
    return pa.concat_tables(tables)


def _with_places(table: pa.Table) -> pa.Table:
    """Lists without gaps, as they are written among lists that have some."""
    if "places" in table.column_names:
        return table
    lengths = pc.list_value_length(table["doc_ids"]).to_numpy()
    ends = np.append(0, np.cumsum(lengths)).astype(np.int32)
    place = np.arange(ends[-1], dtype=np.int32) - np.repeat(ends[:-1], lengths) + 1
    places = pa.ListArray.from_arrays(ends, place.astype(np.int32))
    return table.add_column(2, pa.field("places", pa.list_(pa.int32())), places)


def _places(
    places: pa.ChunkedArray, lengths: NDArray[np.integer], list_of_row: NDArray[np.integer]
) -> NDArray[np.int64]:
    """Where the documents of each list stand, from 0; rising within a list."""
    found = _numbers(_inner(places)).astype(np.int64) - 1
    _refuse(_lengths(places) != lengths, "has another number of places than of documents")
    _refuse((found < 0) | (found >= MAX_DEPTH), "has a place out of range", list_of_row)
    falling = (np.diff(found) <= 0) & (np.diff(list_of_row) == 0)
    _refuse(falling, "has places that do not rise", list_of_row[1:])
    return found


def _cells(
    positions: pa.ChunkedArray,
    shown: NDArray[np.bool_],
    what: str,
    list_of: NDArray[np.integer],
    field: str | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows and columns of lists of positions, all of them within what was shown."""
    row = np.repeat(np.arange(len(shown)), _lengths(positions))
    inner = _inner(positions)
    place = _numbers(inner if field is None else _field(inner, field)).astype(np.int64) - 1
    outside = (place < 0) | (place >= shown.shape[1])
    there = ~outside
    outside[there] = ~shown[row[there], place[there]]
    _refuse(outside, f"has {what} where it shows no document", list_of[row])
    return row, place


def _refuse(bad: NDArray[np.bool_], what: str, row_of: NDArray[np.integer] | None = None) -> None:
    if bad.any():
        first = int(bad.argmax())
        raise ValueError(f"row {first if row_of is None else int(row_of[first])} {what}")


def _lengths(lists: pa.ChunkedArray) -> NDArray[np.int64]:
    return _numbers(pc.list_value_length(lists)).astype(np.int64)


def _inner(lists: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = lists.type.value_type
    return pa.chunked_array([chunk.flatten() for chunk in lists.chunks], type=kind)


def _field(structs: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    kind = structs.type.field(name).type
    return pa.chunked_array([pc.struct_field(chunk, name) for chunk in structs.chunks], type=kind)


def _numbers(values: pa.ChunkedArray) -> NDArray[Any]:
    return values.to_numpy()
