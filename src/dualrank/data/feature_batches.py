"""Features some rows at a time, for files that are larger than memory.

What `read_features` refuses is refused here in the same words, as soon as it is met; only what
takes all documents (one that stands there twice) is left to whoever brings them together.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dualrank.data.feature_rows import (
    FEATURES,
    GRADE,
    KEYS,
    columns_to_read,
    ids_as_texts,
    lengths_of_lists,
    matrix_of,
    uneven,
)
from dualrank.data.features import LATEST
from dualrank.data.index_columns import numbering_in, say_left_out, unread
from dualrank.data.log.log_files import find_source
from dualrank.data.shards.sharded_log import ShardedLog
from dualrank.errors import DataError
from dualrank.sentences import reason_of
from dualrank.storage import MARK

BLOCK = 4_096
"""Rows of a batch are a multiple of this: as many as networks score at once."""
VALUES_AT_ONCE = 1 << 21
_BUFFER = 1 << 16
"""Bytes of a column that are read at once: groups of rows may be as large as the file."""

_UNREADABLE = (OSError, ValueError, LookupError, OverflowError, MemoryError, pa.ArrowException)


@dataclass(frozen=True, eq=False)
class FeatureBatch:
    """Some documents: ids of queries and documents as text, and a row of features for each."""

    queries: pa.Array
    documents: pa.Array
    features: NDArray[np.float32]


class FeatureSource(Protocol):
    """Features that come in batches; `where` is what the user calls them."""

    where: str
    names: tuple[str, ...] | None

    @property
    def documents(self) -> int:
        """How many documents there are."""

    def batches(self) -> Iterator[FeatureBatch]:
        """All of them, some at a time."""


def rows_at_once(features: int) -> int:
    """How many documents of so many features make a batch."""
    return BLOCK * max(1, VALUES_AT_ONCE // (BLOCK * max(features, 1)))


@dataclass(frozen=True)
class _File:
    """A file of features: its rows, columns to read, and which are features (None for lists)."""

    path: str
    rows: int
    columns: list[str]
    own: tuple[str, ...] | None
    left_out: tuple[str, ...]
    latest: bool


class FeatureFiles:
    """Parquet files of features: a file, a folder with all below it, or a pattern.

    `count` is how many features there must be, and `names` picks them by name, in this order.
    """

    def __init__(
        self, features: str | os.PathLike[str], *, count: int, names: Sequence[str] | None = None
    ) -> None:
        self.where = os.fspath(features)
        self._count = count
        self._files = [_look(file, names) for file in find_source(features).files]
        lists = [file for file in self._files if file.own is None]
        if lists and len(lists) < len(self._files):
            raise DataError(f"{self.where}: some files have a column 'features', others do not")
        self.names = None
        if not lists:
            every = (name for file in self._files for name in file.own or ())
            self.names = tuple(dict.fromkeys(every))
        if self.documents == 0:
            raise DataError(f"{self.where}: there are no documents")
        if self.names is not None and len(self.names) != count:
            raise DataError(f"{self.where}: {len(self.names)} features; expected {count}")

    @property
    def documents(self) -> int:
        """How many rows there are."""
        return sum(file.rows for file in self._files)

    @property
    def latest(self) -> bool:
        """Whether a document may stand there several times, of which the last one holds."""
        return all(file.latest for file in self._files)

    def batches(self) -> Iterator[FeatureBatch]:
        """The rows in the order of the files; a feature that one of them has not is missing."""
        if left_out := dict.fromkeys(name for file in self._files for name in file.left_out):
            say_left_out(self.where, list(left_out))
        for file in self._files:
            before = 0
            for batch in _read(file.path, file.columns, self._count):
                yield self._batch(file, batch, before)
                before += len(batch)

    def _batch(self, file: _File, table: pa.Table, before: int) -> FeatureBatch:
        queries, documents = (ids_as_texts(table[key], key, file.path, before) for key in KEYS)
        if file.own is None:
            if lengths_of_lists(table[FEATURES]) != (self._count, self._count):
                self._refuse_lengths()
            return FeatureBatch(queries, documents, matrix_of(table, None, file.path))
        matrix = matrix_of(table, file.own, file.path)
        if self.names is not None and self.names != file.own:
            spread = np.full((len(matrix), len(self.names)), np.nan, dtype=np.float32)
            spread[:, [self.names.index(name) for name in file.own]] = matrix
            matrix = spread
        return FeatureBatch(queries, documents, matrix)

    def _refuse_lengths(self) -> None:
        """Say how long the lists are, for which all of them are looked at."""
        widths = set[int]()
        for file in self._files:
            spans = [lengths_of_lists(batch[FEATURES]) for batch in _read(file.path, [FEATURES], 1)]
            found = {each for span in spans for each in span if each is not None}
            if len(found) > 1:
                raise DataError(uneven(file.path, min(found), max(found)))
            if found == {0}:
                raise DataError(f"{file.path}: there are no features in the lists")
            widths |= found
        if len(widths) > 1:
            raise DataError(uneven(self.where, min(widths), max(widths)))
        raise DataError(f"{self.where}: {min(widths)} features; expected {self._count}")


class ShardedFeatures:
    """The features of a log in shards, as they were joined to it: documents by query and name."""

    def __init__(self, log: ShardedLog, *, count: int, names: Sequence[str] | None = None) -> None:
        self.where, self.names = str(log.folder), log.feature_names
        self._log, self._columns = log, None
        log.require_features()
        if names is not None and self.names is not None and tuple(names) != self.names:
            missing = [name for name in names if name not in self.names]
            if missing:
                raise DataError(f"{self.where}: feature {missing[0]!r} is missing")
            self._columns = [self.names.index(name) for name in names]
            self.names = tuple(names)
        elif log.feature_count != count:
            raise DataError(f"{self.where}: {log.feature_count} features; expected {count}")

    @property
    def documents(self) -> int:
        """How many there are, over all shards."""
        return self._log.documents

    def batches(self) -> Iterator[FeatureBatch]:
        """Shard by shard."""
        # Of a shard that is opened anew nothing stays mapped when the next one comes.
        for shard in map(replace, self._log.shards):
            shard.verify()
            matrix, start = shard.dataset.features, 0
            for names in shard.names():
                rows = matrix[start : start + len(names)]
                start += len(names)
                yield FeatureBatch(
                    names.column("query_id"),
                    names.column("doc_id"),
                    rows if self._columns is None else rows[:, self._columns],
                )


def _look(path: str, names: Sequence[str] | None) -> _File:
    """What a file holds, of which nothing but its columns is read."""
    try:
        with pq.ParquetFile(path) as opened:
            schema, rows = opened.schema_arrow, opened.metadata.num_rows
            columns = columns_to_read(schema, path, names=names)
            index: tuple[str, ...] = ()
            if names is None and FEATURES not in columns:
                index = numbering_in(opened, columns)
    except _UNREADABLE as error:
        raise DataError(f"{path}: not readable as Parquet ({reason_of(error)})") from error
    left_out = (*unread(schema, columns), *index) if names is None else ()
    columns = [name for name in columns if name not in (GRADE, *index)]
    own: tuple[str, ...] | None = None
    if FEATURES not in columns:
        own = tuple(name for name in columns if name not in KEYS) if names is None else tuple(names)
        if not own:
            raise DataError(f"{path}: there are no features beside query_id and doc_id")
    latest = (schema.metadata or {}).get(MARK) == LATEST.encode()
    return _File(path, rows, columns, own, left_out, latest)


def _read(path: str, columns: list[str], width: int) -> Iterator[pa.Table]:
    """Columns of a file, some rows at a time, checked."""
    try:
        # Ids as numbers of a dictionary: one that is long, and repeated, is not copied out.
        with pq.ParquetFile(
            path, read_dictionary=list(KEYS), buffer_size=_BUFFER, pre_buffer=False
        ) as opened:
            for batch in opened.iter_batches(rows_at_once(width), columns=columns):
                table = pa.Table.from_batches([batch])
                table.validate(full=True)
                yield table
    except _UNREADABLE as error:
        raise DataError(f"{path}: not readable as Parquet ({reason_of(error)})") from error
