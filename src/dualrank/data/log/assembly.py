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

LARGEST_TEXT = 2**31 - 1
"""Bytes of text that Arrow's plain strings can hold in one array."""


def assemble(reduced: Reduced) -> ClickLog:
    """The log with a catalogue of its own: the query–document pairs that it shows, sorted."""
    shown, happened, account = reduced.shown, _by_happening(reduced.happened), reduced.account
    lists = _Numbers(shown, "list")
    number, place = lists(shown), shown["place"].to_numpy() - 1
    present = np.bincount(number) > 0
    row_of_list = np.cumsum(present) - 1
    list_of_row = row_of_list[number]
    catalogue, row_of_pair = _catalogue(reduced.pairs)
    pair = row_of_pair[_Numbers(reduced.pairs, "pair")(shown)]
    depth = int(place.max(initial=-1)) + 1
    documents = np.full((int(present.sum()), depth), PADDING, dtype=np.int32)
    documents[list_of_row, place] = pair
    queries = np.zeros(len(documents), dtype=np.int32)
    queries[list_of_row] = catalogue.query_of_document[pair]
    columns = {
        name: _column(happened[f"context_{number}"]) for number, name in enumerate(account.contexts)
    }
    if account.periods:
        columns[PERIOD] = Column(account.periods, happened["period"].to_numpy().astype(np.int32))
    log = in_order(
        RankedLists(documents, queries),
        row_of_list[lists(happened)],
        _clicks(happened, depth),
        happened["sessions"].to_numpy().astype(np.int64),
        columns,
        catalogue,
        _events(reduced, depth),
    )
    return replace(log, reading=account.report)


class _Numbers:
    """What is numbered within shards, numbered over all of them."""

    def __init__(self, table: pa.Table, name: str) -> None:
        self.name = name
        largest = table.group_by("shard").aggregate([(name, "max")])
        shard = largest["shard"].to_numpy()
        sizes = np.zeros(shard.max(initial=0) + 2, dtype=np.int32)
        sizes[shard + 1] = largest[f"{name}_max"].to_numpy() + 1
        self.starts = np.cumsum(sizes, dtype=np.int32)

    def __call__(self, table: pa.Table) -> NDArray[np.int32]:
        """The numbers of the rows of a table."""
        numbers = self.starts[table["shard"].to_numpy()]
        numbers += table[self.name].to_numpy()
        return numbers


def _by_happening(happened: pa.Table) -> pa.Table:
    """Rows in the order of their numbers, where they have any."""
    if "happening" not in happened.column_names:
        return happened
    return happened.sort_by([("shard", "ascending"), ("happening", "ascending")])


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


def catalogue_in_order(pairs: pa.Table) -> Catalogue:
    """Of distinct pairs that stand in the order of query and document."""
    query_ids, query_of_pair = _sorted_names(pairs["query"])
    doc_ids, document_of_pair = _sorted_names(pairs["document"])
    return Catalogue(query_ids, doc_ids[document_of_pair], query_of_pair)


def _catalogue(pairs: pa.Table) -> tuple[Catalogue, NDArray[np.int32]]:
    """Of distinct pairs, in order, and the row of each by its number over all shards."""
    query_ids, query_of_pair = _sorted_names(pairs["query"])
    doc_ids, document_of_pair = _sorted_names(pairs["document"])
    order = np.argsort(query_of_pair * max(len(doc_ids), 1) + document_of_pair)
    row_of_pair = np.empty(len(order), dtype=np.int32)
    row_of_pair[_Numbers(pairs, "pair")(pairs)[order]] = np.arange(len(order), dtype=np.int32)
    return Catalogue(query_ids, doc_ids[document_of_pair[order]], query_of_pair[order]), row_of_pair


def catalogue_of(
    query: pa.ChunkedArray, document: pa.ChunkedArray, row_of: NDArray[np.integer]
) -> tuple[Catalogue, NDArray[np.int64], NDArray[np.int64]]:
    """The distinct pairs, the index of each query, and of each document's pair.

    The query of a document is the one that `row_of` points to.
    """
    query_ids, query_of_row = _sorted_names(query)
    doc_ids, document_of_row = _sorted_names(document)
    width = max(len(doc_ids), 1)
    key = query_of_row[row_of] * width
    key += document_of_row
    pairs, pair_of_row = np.unique(key, return_inverse=True)
    query_of_pair, document_of_pair = np.divmod(pairs, width)
    return (
        Catalogue(query_ids, doc_ids[document_of_pair], query_of_pair),
        query_of_row,
        pair_of_row.reshape(-1),
    )


def _sorted_names(values: pa.ChunkedArray) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """The distinct names in order, and the index of each value.

    Names are Python's own texts, each held once: an array of numpy's gives every one of them the
    room of the longest.
    """
    if pa.types.is_string(values.type) and values.nbytes > LARGEST_TEXT:
        values = values.cast(pa.large_string())
    encoded = values.dictionary_encode()
    if not encoded.num_chunks:
        return np.empty(0, dtype=object), np.empty(0, dtype=np.int64)
    # All chunks share the dictionary that was complete at the last of them.
    dictionary = encoded.chunk(encoded.num_chunks - 1).dictionary
    order = pc.sort_indices(dictionary).to_numpy()
    names = np.empty(len(order), dtype=object)
    names[:] = dictionary.take(pa.array(order)).to_pylist()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    codes = np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks])
    return names, rank[codes]


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
    for number, kind in enumerate(reduced.account.events):
        laid_out = np.zeros((reduced.happened.num_rows, depth))
        if reduced.amounts is not None:
            row = _Numbers(reduced.happened, "happening")(reduced.amounts)
            place = reduced.amounts["place"].to_numpy()
            laid_out[row, place - 1] = reduced.amounts[f"amount_{number}"].to_numpy()
        events[kind] = laid_out
    return events
