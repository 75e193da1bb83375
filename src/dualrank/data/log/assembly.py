"""A click log from the tables of a reduction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dualrank.data.catalogue import Catalogue
from dualrank.data.click_log import PERIOD, ClickLog, Column
from dualrank.data.lists import PADDING, RankedLists
from dualrank.data.log.reduction import WORD, Reduced


def assemble(reduced: Reduced) -> ClickLog:
    """The log with a catalogue of its own: the query–document pairs that it shows, sorted."""
    shown, happened = reduced.shown, reduced.happened
    number = shown["list"].to_numpy()
    present = np.bincount(number) > 0
    row_of_list = np.cumsum(present) - 1
    list_of_row, place = row_of_list[number], shown["place"].to_numpy() - 1
    catalogue, query_of_row, pair_of_row = catalogue_of(shown["query"], shown["document"])
    depth = int(place.max(initial=-1)) + 1
    documents = np.full((int(present.sum()), depth), PADDING, dtype=np.int32)
    documents[list_of_row, place] = pair_of_row
    queries = np.zeros(len(documents), dtype=np.int32)
    queries[list_of_row] = query_of_row
    list_of = row_of_list[happened["list"].to_numpy()]
    columns = {
        name: _column(happened[f"context_{number}"]) for number, name in enumerate(reduced.contexts)
    }
    if reduced.periods:
        columns[PERIOD] = Column(reduced.periods, happened["period"].to_numpy().astype(np.int32))
    log = in_order(
        RankedLists(documents, queries),
        list_of,
        _clicks(happened, depth),
        happened["sessions"].to_numpy().astype(np.int64),
        columns,
        catalogue,
        _events(reduced, depth),
    )
    return replace(log, reading=reduced.report)


def in_order(
    lists: RankedLists,
    list_of: NDArray[np.integer],
    clicks: NDArray[np.bool_],
    counts: NDArray[np.int64],
    columns: dict[str, Column],
    catalogue: Catalogue,
    events: Mapping[str, NDArray[np.float64]] | None = None,
) -> ClickLog:
    """A log whose lists are distinct and sorted by their documents, with only lists that occur."""
    used = np.bincount(list_of, minlength=len(lists)) > 0
    list_of = (np.cumsum(used) - 1)[list_of]
    documents, first, new = np.unique(
        lists.documents[used], axis=0, return_index=True, return_inverse=True
    )
    return ClickLog.from_clicks(
        RankedLists(documents, lists.queries[used][first]),
        new.reshape(-1).astype(np.int32)[list_of],
        clicks,
        counts,
        columns=columns,
        catalogue=catalogue,
        events=events,
    )


def catalogue_of(
    query: pa.Array | pa.ChunkedArray, document: pa.Array | pa.ChunkedArray
) -> tuple[Catalogue, NDArray[np.int64], NDArray[np.int64]]:
    """The distinct pairs, and of each row the index of its query and of its pair."""
    query_ids, query_of_row = _sorted_names(query)
    doc_ids, document_of_row = _sorted_names(document)
    key = query_of_row.astype(np.int64) * max(len(doc_ids), 1) + document_of_row
    pairs, pair_of_row = np.unique(key, return_inverse=True)
    query_of_pair, document_of_pair = np.divmod(pairs, max(len(doc_ids), 1))
    return (
        Catalogue(query_ids, doc_ids[document_of_pair], query_of_pair),
        query_of_row,
        pair_of_row.reshape(-1),
    )


def _sorted_names(
    values: pa.Array | pa.ChunkedArray,
) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    encoded = values.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    names = np.asarray(encoded.dictionary.to_pylist(), dtype=np.str_)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return names[order], rank[encoded.indices.to_numpy()]


def _column(values: pa.ChunkedArray) -> Column:
    names, codes = _sorted_names(values)
    return Column(tuple(names.tolist()), codes.astype(np.int32))


def _clicks(happened: pa.Table, depth: int) -> NDArray[np.bool_]:
    clicks = np.zeros((happened.num_rows, depth), dtype=bool)
    for position in range(depth):
        word, bit = divmod(position, WORD)
        clicks[:, position] = (happened[f"clicks_{word}"].to_numpy() >> bit) & 1
    return clicks


def _events(reduced: Reduced, depth: int) -> dict[str, NDArray[np.float64]]:
    """The amounts of every kind of event, laid out like clicks."""
    events = {}
    for number, kind in enumerate(reduced.events):
        laid_out = np.zeros((reduced.happened.num_rows, depth))
        if reduced.amounts is not None:
            row = reduced.amounts["happening"].to_numpy()
            place = reduced.amounts["place"].to_numpy()
            laid_out[row, place - 1] = reduced.amounts[f"amount_{number}"].to_numpy()
        events[kind] = laid_out
    return events
