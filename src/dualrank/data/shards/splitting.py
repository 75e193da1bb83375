"""A log that is in memory, cut into shards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualrank.data.catalogue import Catalogue
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import PADDING, RankedLists
from dualrank.data.shards.shard_writing import ShardWriter, new_shards
from dualrank.data.shards.sharded_log import ShardedLog, shard_of
from dualrank.errors import DataError


def write_shards(
    log: ClickLog, folder: Path, shards: int, dataset: Dataset | None = None
) -> ShardedLog:
    """Write a log that points to the documents of a data set, if there is one, in shards."""
    if log.catalogue is None or log.reading is None:
        raise DataError("this log does not know the names of its documents; read it from a file")
    with new_shards(folder, shards) as new:
        writer = ShardWriter(
            new,
            log.lists.depth,
            feature_count=None if dataset is None else dataset.feature_count,
            feature_names=None if dataset is None else dataset.feature_names,
        )
        for part, features in _parts(log, log.catalogue, shards, dataset):
            writer.add(part, features)
        writer.finish(log.reading)
    return ShardedLog.open(folder)


def _parts(
    log: ClickLog, catalogue: Catalogue, shards: int, dataset: Dataset | None
) -> Iterator[tuple[ClickLog, NDArray[np.float32] | None]]:
    queries = np.array([shard_of(str(query), shards) for query in catalogue.query_ids], np.int64)
    names = np.array([str(name) for name in catalogue.doc_ids], dtype=object)
    query_names = np.array([str(name) for name in catalogue.query_ids], dtype=object)
    _, rank_of_query = np.unique(query_names, return_inverse=True)
    _, rank_of_name = np.unique(names, return_inverse=True)
    # Documents by query and name, as they stand in every shard.
    order = np.lexsort((rank_of_name, rank_of_query[catalogue.query_of_document]))
    shard_of_row = queries[catalogue.query_of_document[order]]
    shard_of_list = queries[log.lists.queries]
    for number in range(shards):
        rows = order[shard_of_row == number]
        part = log.take_lists(np.flatnonzero(shard_of_list == number))
        new = np.full(len(names) + 1, PADDING, dtype=np.int32)
        new[rows] = np.arange(len(rows))
        kept, query_of = np.unique(
            rank_of_query[catalogue.query_of_document[rows]], return_inverse=True
        )
        named = np.empty(len(rank_of_query), dtype=object)
        named[rank_of_query] = query_names
        own = Catalogue(named[kept], names[rows], query_of.reshape(-1))
        documents = new[part.lists.documents]
        any_document = documents.max(axis=1, initial=PADDING)
        lists = RankedLists(documents, own.query_of_document[any_document].astype(np.int32))
        part = _sorted(replace(part, lists=lists, catalogue=own, reading=None))
        features = None if dataset is None else dataset.features[rows]
        yield part, features


def _sorted(log: ClickLog) -> ClickLog:
    """The same log, its lists in the order of their documents."""
    order = np.lexsort(log.lists.documents.T[::-1])
    moved = log.take_lists(order)
    rows = np.argsort(moved.list_of, kind="stable")
    return moved.take_rows(rows)
