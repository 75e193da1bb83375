"""`read_features`: documents with their features, from Parquet, LETOR text or a data frame."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dualrank.data.dataset import Dataset
from dualrank.data.feature_rows import KEYS, FeatureRows, by_query, columns_to_read
from dualrank.data.frames import to_table
from dualrank.data.index_columns import say_left_out, unread
from dualrank.data.letor.reader import read_letor
from dualrank.data.log.formats import PARQUET, by_suffix
from dualrank.data.log.log_files import find_source, suffix_of
from dualrank.data.memory_limits import require_memory
from dualrank.errors import DataError
from dualrank.progress import shows_progress
from dualrank.sentences import document_of, reason_of
from dualrank.storage import MARK

THE_FEATURES = "the features"
"""What features are called that come from no file."""
LATEST = "features as displayed"
"""What a service marks its files with: the last row of a document, in the last file, holds."""


@shows_progress("reading the features")
def read_features(
    features: str | os.PathLike[str] | Any,
    *,
    count: int | None = None,
    names: Sequence[str] | None = None,
    max_grade: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Dataset:
    """Read documents keyed by `query_id` and `doc_id`: Parquet files, LETOR text or a data frame.

    Of a table the features are one list column `features`, or all other columns, which must be
    numbers, or empty where they are missing; `grade` is the judgment, if there is one. Columns that
    only number the rows, such as the index of pandas, are left out with a warning. `count` is
    how many features there must be, and `names` picks features of these names in this order: those
    that a model was trained on. Of a document that a service displayed several times the last
    row of the last file holds; in any other table it must stand once.

    >>> import pyarrow as pa
    >>> import dualrank as dr
    >>> documents = dr.read_features(pa.table({
    ...     "query_id": ["shoes", "shoes", "hats"], "doc_id": ["a", "b", "c"],
    ...     "bm25": [7.5, 3.25, 4.0], "price": [30.0, 50.0, None]}))
    >>> documents.feature_names, documents.lengths.tolist()
    (('bm25', 'price'), [2, 1])
    """
    if not isinstance(features, str | os.PathLike):
        where = THE_FEATURES
        parts = [FeatureRows.of(to_table(features, where), where, names=names)]
    else:
        where = os.fspath(features)
        if not is_parquet(where):
            if (known := by_suffix().get(suffix_of(where))) not in (None, PARQUET):
                raise DataError(
                    f"{where}: features are Parquet files or LETOR text, not {known.title}"
                )
            letor = read_letor(features, features=count, max_grade=max_grade, progress=progress)
            return replace(letor, source=where)
        parts = [_read_parquet(file, names) for file in find_source(features).files]
    if left_out := dict.fromkeys(name for part in parts for name in part.left_out):
        say_left_out(where, list(left_out))
    rows = _joined(parts, where)
    if all(part.latest for part in parts):
        rows = rows.last_of_each()
    if len(rows.matrix) == 0:
        raise DataError(f"{where}: there are no documents")
    if count is not None and rows.matrix.shape[1] != count:
        raise DataError(f"{where}: {rows.matrix.shape[1]} features; expected {count}")
    rows.require_finite(where)
    return _dataset(rows, where, max_grade)


def _read_parquet(file: str, names: Sequence[str] | None) -> FeatureRows:
    """The rows of one file; the names of its folders say nothing about them."""
    try:
        schema = pq.read_schema(file)
        columns = columns_to_read(schema, file, names=names)
        left_out = unread(schema, columns) if names is None else ()
        # Ids as numbers of a dictionary: one that is long, and repeated, is not copied out.
        with pq.ParquetFile(file, read_dictionary=list(KEYS)) as opened:
            require_memory(_least_size(opened.metadata), f"{file}: its values")
            table = opened.read(columns)
        table.validate(full=True)
    except (OSError, ValueError, LookupError, OverflowError, MemoryError, pa.ArrowException) as e:
        raise DataError(f"{file}: not readable as Parquet ({reason_of(e)})") from e
    rows = FeatureRows.of(table, file, names=names)
    latest = (schema.metadata or {}).get(MARK) == LATEST.encode()
    return replace(rows, left_out=(*left_out, *rows.left_out), latest=latest)


def _least_size(metadata: pq.FileMetaData) -> int:
    """Bytes that all values take at least, each as a number of four bytes."""
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    return 4 * sum(
        max(group.column(number).num_values, group.num_rows, 0)
        for group in groups
        for number in range(group.num_columns)
    )


def _joined(parts: Sequence[FeatureRows], where: str) -> FeatureRows:
    """The rows of several files; a feature that one of them has not is missing there."""
    if len(parts) == 1:
        return parts[0]
    lists = [part for part in parts if part.names is None]
    widths = {part.matrix.shape[1] for part in lists}
    if lists and len(lists) < len(parts):
        raise DataError(f"{where}: some files have a column 'features', others do not")
    if len(widths) > 1:
        raise DataError(
            f"{where}: documents have {min(widths)} to {max(widths)} features; expected equally "
            "many"
        )
    names = None
    matrices = [part.matrix for part in parts]
    if not lists:
        names = tuple(dict.fromkeys(name for part in parts for name in part.names or ()))
        matrices = [_spread(part, names) for part in parts]
    grades = None
    if any(part.grades is not None for part in parts):
        grades = np.concatenate([_or_missing(part.grades, len(part.matrix)) for part in parts])
    return FeatureRows(
        np.concatenate(matrices),
        names,
        np.concatenate([part.queries for part in parts if part.queries is not None]),
        np.concatenate([part.documents for part in parts if part.documents is not None]),
        grades,
    )


def _spread(part: FeatureRows, names: Sequence[str]) -> NDArray[np.float32]:
    if part.names == names:
        return part.matrix
    spread = np.full((len(part.matrix), len(names)), np.nan, dtype=np.float32)
    spread[:, [names.index(name) for name in part.names or ()]] = part.matrix
    return spread


def _or_missing(values: NDArray[np.float32] | None, count: int) -> NDArray[np.float32]:
    return np.full(count, np.nan, dtype=np.float32) if values is None else values


def _dataset(rows: FeatureRows, where: str, max_grade: float | None) -> Dataset:
    """The data set of the rows, those of a query together."""
    assert rows.queries is not None
    assert rows.documents is not None
    order = by_query(rows.queries)
    try:
        dataset = Dataset.from_arrays(
            rows.matrix[order],
            rows.queries[order],
            None if rows.grades is None else rows.grades[order],
            doc_ids=rows.documents[order],
            max_grade=max_grade,
            feature_names=rows.names,
        )
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
    for query, document in sorted(dataset.catalogue.pairs_twice()):
        raise DataError(
            f"{where}: {document_of(query, document)} stands there twice; "
            "expected one row of features"
        )
    return replace(dataset, source=where)


def is_parquet(path: str) -> bool:
    """Whether features of this name are Parquet files, rather than LETOR text."""
    if os.path.isfile(path):
        with open(path, "rb") as file:
            return file.read(len(PARQUET.begins)) == PARQUET.begins
    return os.path.isdir(path) or Path(path).suffix in PARQUET.suffixes
