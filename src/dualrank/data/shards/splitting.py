"""A log that is in memory, cut into shards."""

from __future__ import annotations

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
        cut = _Cut(log, log.catalogue, shards, dataset)
        for number in range(shards):
            writer.add(*cut.part(number))
        writer.finish(log.reading)
    return ShardedLog.open(folder)


class _Cut:
    """A log over so many shards, of which a copy is made one at a time."""

    def __init__(
        self, log: ClickLog, catalogue: Catalogue, shards: int, dataset: Dataset | None
    ) -> None:
        self._log, self._dataset = log, dataset
        self._names = np.array([str(name) for name in catalogue.doc_ids], dtype=object)
        query_names = np.array([str(name) for name in catalogue.query_ids], dtype=object)
        self._query_names, rank_of_query = np.unique(query_names, return_inverse=True)
        _, rank_of_name = np.unique(self._names, return_inverse=True)
        self._query_of = rank_of_query[catalogue.query_of_document]
        shard = np.array([shard_of(name, shards) for name in query_names], np.int64)
        # Documents by query and name, as they stand in every shard.
        self._order = np.lexsort((rank_of_name, self._query_of))
        self._shard_of_row = shard[catalogue.query_of_document[self._order]]
        self._shard_of_list = shard[log.lists.queries]
        self._row_in_shard = np.full(len(self._names) + 1, PADDING, dtype=np.int32)

    def part(self, number: int) -> tuple[ClickLog, NDArray[np.float32] | None]:
        """The lists of a shard, and the features of its documents."""
        rows = self._order[self._shard_of_row == number]
        self._row_in_shard[rows] = np.arange(len(rows))
        kept, query_of = np.unique(self._query_of[rows], return_inverse=True)
        own = Catalogue(self._query_names[kept], self._names[rows], query_of.reshape(-1))
        part = self._log.take_lists(np.flatnonzero(self._shard_of_list == number))
        documents = self._row_in_shard[part.lists.documents]
        any_document = documents.max(axis=1, initial=PADDING)
        lists = RankedLists(documents, own.query_of_document[any_document].astype(np.int32))
        part = _sorted(replace(part, lists=lists, catalogue=own, reading=None))
        return part, None if self._dataset is None else self._dataset.features[rows]


def _sorted(log: ClickLog) -> ClickLog:
    """The same log, its lists in the order of their documents."""
    order = np.lexsort(log.lists.documents.T[::-1])
    moved = log.take_lists(order)
    rows = np.argsort(moved.list_of, kind="stable")
    return moved.take_rows(rows)
