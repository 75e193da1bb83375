"""`read_features`: documents with their features, from Parquet or LETOR text."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dualrank.data.dataset import Dataset
from dualrank.data.letor.reader import read_letor
from dualrank.data.log.formats import PARQUET, by_suffix
from dualrank.data.log.log_files import find_source, suffix_of
from dualrank.errors import DataError

KEYS = ("query_id", "doc_id")
GRADE = "grade"
FEATURES = "features"


def read_features(
    path: str | os.PathLike[str],
    *,
    count: int | None = None,
    names: Sequence[str] | None = None,
    max_grade: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Dataset:
    """Read documents keyed by `query_id` and `doc_id`, from Parquet files or LETOR text.

    In Parquet the features are one list column `features`, or all other columns, which must be
    numbers, or empty where they are missing; `grade` is the judgment, if there is one. `count` is
    how many features there must be, and `names` picks features of these names in this order: those
    that a model was trained on.
    """
    where = os.fspath(path)
    if not _is_parquet(where):
        if (known := by_suffix().get(suffix_of(where))) not in (None, PARQUET):
            raise DataError(f"{where}: features are Parquet files or LETOR text, not {known.title}")
        letor = read_letor(path, features=count, max_grade=max_grade, progress=progress)
        return replace(letor, source=where)
    files = find_source(path).files
    try:
        table = pa.concat_tables([pq.read_table(file) for file in files], promote_options="default")
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{where}: not readable as Parquet ({reason})") from error
    for key in KEYS:
        if key not in table.column_names:
            raise DataError(
                f"{where}: column {key!r} is missing; features are keyed by query_id and doc_id"
            )
        if table[key].null_count:
            row = pc.index(pc.is_null(table[key]), True).as_py()
            raise DataError(f"{where}: row {row} has no {key}")
    if table.num_rows == 0:
        raise DataError(f"{where}: there are no documents")
    queries = _names_of(table["query_id"])
    documents = _names_of(table["doc_id"])
    matrix, own_names = _matrix(table, where, names)
    if count is not None and matrix.shape[1] != count:
        raise DataError(f"{where}: {matrix.shape[1]} features; expected {count}")
    bad = np.flatnonzero(np.isinf(matrix).any(axis=1))
    if len(bad):
        row, column = int(bad[0]), int(np.flatnonzero(np.isinf(matrix[bad[0]]))[0])
        feature = own_names[column] if own_names else f"feature {column + 1}"
        raise DataError(
            f"{where}: {feature} of document {str(documents[row])!r} of query "
            f"{str(queries[row])!r} is {matrix[row, column]}; features are finite, or missing "
            f"({len(bad)} such documents)"
        )
    order = _by_query(queries)
    grades = None
    if GRADE in table.column_names:
        grades = _numbers(table[GRADE], GRADE, where)[order]
    dataset = Dataset.from_arrays(
        matrix[order],
        queries[order],
        grades,
        doc_ids=documents[order],
        max_grade=max_grade,
        feature_names=own_names,
    )
    for query, document in sorted(dataset.catalogue.pairs_twice()):
        raise DataError(
            f"{where}: document {document!r} of query {query!r} stands there twice; "
            "expected one row of features"
        )
    return replace(dataset, source=where)


def _is_parquet(path: str) -> bool:
    if os.path.isfile(path):
        with open(path, "rb") as file:
            return file.read(len(PARQUET.begins)) == PARQUET.begins
    return os.path.isdir(path) or Path(path).suffix in PARQUET.suffixes


def _names_of(column: pa.ChunkedArray) -> NDArray[np.str_]:
    """Ids as text; whole numbers that became floats beside a missing value are written as such."""
    if pa.types.is_floating(column.type):
        values = column.to_numpy().astype(np.float64)
        whole = (values == np.floor(values)) & (np.abs(values) < 2**53)
        numbers = np.where(whole, values, 0).astype(np.int64).astype(np.str_)
        return np.where(whole, numbers, values.astype(np.str_))
    return np.asarray(column.cast(pa.string()).to_pylist(), dtype=np.str_)


def _matrix(
    table: pa.Table, where: str, wanted: Sequence[str] | None
) -> tuple[NDArray[np.float32], tuple[str, ...] | None]:
    """The features, and their names where they are columns of their own."""
    if FEATURES in table.column_names:
        column = table[FEATURES].combine_chunks()
        if not (pa.types.is_list(column.type) or pa.types.is_fixed_size_list(column.type)):
            raise DataError(f"{where}: column 'features' holds {column.type}; expected lists")
        column = column.cast(pa.list_(pa.float32()))
        lengths = column.value_lengths()
        span = pc.min_max(pc.fill_null(lengths, 0)).as_py()
        if span["min"] != span["max"]:
            raise DataError(
                f"{where}: documents have {span['min']} to {span['max']} features; "
                "expected equally many"
            )
        values = column.flatten().to_numpy(zero_copy_only=False)
        return values.reshape(table.num_rows, span["max"]), None
    names = [name for name in table.column_names if name not in (*KEYS, GRADE)]
    if wanted is not None:
        missing = [name for name in wanted if name not in names]
        if missing:
            raise DataError(f"{where}: feature {missing[0]!r} is missing")
        names = list(wanted)
    if not names:
        raise DataError(f"{where}: there are no features beside query_id and doc_id")
    matrix = np.empty((table.num_rows, len(names)), dtype=np.float32)
    for number, name in enumerate(names):
        matrix[:, number] = _numbers(table[name], name, where)
    return matrix, tuple(names)


def _numbers(column: pa.ChunkedArray, name: str, where: str) -> NDArray[np.float32]:
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise DataError(f"{where}: column {name!r} holds {kind}; features are numbers")
    return column.cast(pa.float32(), safe=False).to_numpy()


def _by_query(queries: NDArray[np.str_]) -> NDArray[np.int64]:
    """Rows of a query together, queries in the order of their first row."""
    _, first, query = np.unique(queries, return_index=True, return_inverse=True)
    return np.argsort(first[query], kind="stable")
