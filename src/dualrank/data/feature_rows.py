"""The rows of a table of features: which documents, with which grades and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dualrank.data.frames import require_one_of_each
from dualrank.data.index_columns import numbering, unread, written_as_index
from dualrank.data.memory_limits import require_memory
from dualrank.errors import DataError
from dualrank.sentences import reason_of, shortened, start_of

KEYS = ("query_id", "doc_id")
GRADE = "grade"
FEATURES = "features"

Names = NDArray[np.str_]
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """Features row by row, in the table's own order.

    `names` are those of the columns of `matrix`, where they were columns of the table and not one
    list. Ids and grades are there where the table has them.
    """

    matrix: Floats
    names: tuple[str, ...] | None = None
    queries: Names | None = None
    documents: Names | None = None
    grades: Floats | None = None
    left_out: tuple[str, ...] = ()
    """Columns that were taken for an index of the rows."""
    latest: bool = False
    """Whether a document may stand there several times, of which the last one holds."""

    @classmethod
    def of(
        cls,
        table: pa.Table,
        where: str,
        *,
        names: Sequence[str] | None = None,
        keys: Sequence[str] = KEYS,
    ) -> FeatureRows:
        """Take a table apart; `names` picks features in this order, `keys` must be there."""
        columns = columns_to_read(table.schema, where, names=names, keys=keys)
        left_out = unread(table.schema, columns) if names is None else ()
        table = table.select(columns)
        found = {key: _ids(table[key], key, where) for key in KEYS if key in columns}
        grades = _numbers(table[GRADE], GRADE, where) if GRADE in columns else None
        queries, documents = found.get("query_id"), found.get("doc_id")
        if FEATURES in columns:
            return cls(matrix_of(table, None, where), None, queries, documents, grades)
        own = [name for name in columns if name not in (*KEYS, GRADE)]
        if names is None:
            counting = numbering(table.select(own))
            own = [name for name in own if name not in counting]
            left_out = (*left_out, *counting)
        else:
            own = list(names)
        matrix = matrix_of(table, own, where)
        return cls(matrix, tuple(own), queries, documents, grades, left_out)

    def last_of_each(self) -> FeatureRows:
        """The last row of every query and document, in the order of these."""
        if self.queries is None or self.documents is None:
            return self
        _, query = np.unique(self.queries, return_inverse=True)
        _, document = np.unique(self.documents, return_inverse=True)
        pair = query.astype(np.int64) * (document.max(initial=0) + 1) + document
        _, from_end = np.unique(pair[::-1], return_index=True)
        kept = np.sort(len(pair) - 1 - from_end)
        return replace(
            self,
            matrix=self.matrix[kept],
            queries=self.queries[kept],
            documents=self.documents[kept],
            grades=None if self.grades is None else self.grades[kept],
        )

    def require_finite(self, where: str) -> None:
        """Refuse infinite features, which a missing one (nan) is not."""
        bad = np.flatnonzero(np.isinf(self.matrix).any(axis=1))
        if len(bad) == 0:
            return
        row, column = int(bad[0]), int(np.flatnonzero(np.isinf(self.matrix[bad[0]]))[0])
        feature = self.names[column] if self.names else f"feature {column + 1}"
        value = self.matrix[row, column]
        raise DataError(infinite_feature(where, feature, self._named(row), value, len(bad)))

    def _named(self, row: int) -> str:
        if self.queries is None or self.documents is None:
            return f"row {row}"
        return f"document {str(self.documents[row])!r} of query {str(self.queries[row])!r}"


def columns_to_read(
    schema: pa.Schema,
    where: str,
    *,
    names: Sequence[str] | None = None,
    keys: Sequence[str] = KEYS,
) -> list[str]:
    """The columns that are used, by their names and types alone; what is missing is named."""
    require_one_of_each(schema.empty_table(), where)
    present = schema.names
    for key in keys:
        if key not in present:
            raise DataError(
                f"{where}: column {key!r} is missing; features are keyed by columns "
                "query_id and doc_id (no names of folders): rename those that hold the ids"
            )
    ids = [key for key in KEYS if key in present]
    for key in ids:
        kind = schema.field(key).type
        if not _can_be_id(kind):
            raise DataError(
                f"{where}: column {key!r} holds {start_of(str(kind))}; ids are text or numbers"
            )
    grade = [GRADE] if GRADE in present else []
    if FEATURES in present:
        kind = schema.field(FEATURES).type
        if not _is_list(kind) or not _is_number(kind.value_type):
            raise DataError(f"{where}: column 'features' holds {kind}; expected lists of numbers")
        own = [FEATURES]
    elif names is not None:
        missing = [name for name in names if name not in present]
        if missing:
            raise DataError(f"{where}: feature {missing[0]!r} is missing")
        own = list(names)
    else:
        index = written_as_index(schema)
        own = [name for name in present if name not in (*KEYS, GRADE, *index)]
    for name in (*grade, *own):
        kind = schema.field(name).type
        if name != FEATURES and not _is_number(kind):
            raise DataError(
                f"{where}: column {shortened(name)} holds {start_of(str(kind))}; features are "
                "numbers"
            )
    return list(dict.fromkeys([*ids, *grade, *own]))


def matrix_of(table: pa.Table, own: Sequence[str] | None, where: str) -> Floats:
    """The features of these columns, or those of the lists in the column `features`."""
    if own is None:
        return _lists(table[FEATURES], where)
    if not own:
        raise DataError(f"{where}: there are no features beside query_id and doc_id")
    require_memory(table.num_rows * len(own) * 4, f"{where}: {len(own)} features of each row")
    matrix = np.empty((table.num_rows, len(own)), dtype=np.float32)
    for number, name in enumerate(own):
        matrix[:, number] = _numbers(table[name], name, where)
    return matrix


def lengths_of_lists(column: pa.ChunkedArray) -> tuple[int | None, int | None]:
    """The length of the shortest and the longest list; what is missing is empty."""
    lengths = [pc.fill_null(pc.list_value_length(chunk), 0) for chunk in column.chunks]
    span = pc.min_max(pa.chunked_array(lengths, type=None if lengths else pa.int32())).as_py()
    return span["min"], span["max"]


def by_query(queries: Names) -> NDArray[np.int64]:
    """Rows of a query together, queries in the order of their first row."""
    _, first, query = np.unique(queries, return_index=True, return_inverse=True)
    return np.argsort(first[query], kind="stable")


def _ids(column: pa.ChunkedArray, key: str, where: str) -> Names:
    """Ids as text; whole numbers that became floats beside a missing value are written as such."""
    if not isinstance(column.type, pa.DictionaryType):
        column = _stored(column)
    if pa.types.is_floating(column.type):
        values = column.to_numpy().astype(np.float64)
        _require_all(pa.array(np.isnan(values)), key, where)
        whole = (values == np.floor(values)) & (np.abs(values) < 2**53)
        numbers = np.where(whole, values, 0).astype(np.int64).astype(np.str_)
        return np.where(whole, numbers, values.astype(np.str_))
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    codes: list[NDArray[np.int64]] = []
    different: list[Names] = []
    before = first = 0
    for chunk in column.chunks:
        _require_all(pc.is_null(chunk), key, where, before)
        # The different ids of all chunks stand one after the other.
        codes.append(chunk.indices.to_numpy(zero_copy_only=False).astype(np.int64) + first)
        different.append(_ids_of_dictionary(chunk.dictionary, key, where))
        before, first = before + len(chunk), first + len(different[-1])
    if not codes:
        return np.empty(0, dtype=np.str_)
    longest = max(part.itemsize for part in different)
    require_memory(
        longest * len(column),
        f"{where}: {len(column)} rows with a {key} of up to {longest // 4:,} characters",
    )
    return np.concatenate(different)[np.concatenate(codes)]


def ids_as_texts(column: pa.ChunkedArray, key: str, where: str, before: int = 0) -> pa.Array:
    """The ids of some rows, of which so many went before, as text in Arrow."""
    if pa.types.is_floating(_storage(column.type)):
        column = _stored(column)
        _require_all(pc.is_null(column, nan_is_null=True), key, where, before)
        return pa.array(_ids(column, key, where), pa.large_string())
    if not pa.types.is_dictionary(column.type):
        column = _stored(column).dictionary_encode()
    parts = []
    for chunk in column.chunks:
        _require_all(pc.is_null(chunk), key, where, before)
        before += len(chunk)
        texts = _stored(pa.chunked_array([chunk.dictionary]))
        texts = _texts(texts, key, where).combine_chunks()
        # A long id that many rows have is copied out for each of them.
        sizes = pc.cast(pc.binary_length(texts), pa.int64()).take(chunk.indices)
        longest = pc.max(pc.utf8_length(texts)).as_py() or 0
        require_memory(
            pc.sum(sizes).as_py() or 0,
            f"{where}: {len(chunk)} rows with a {key} of up to {longest:,} characters",
        )
        parts.append(texts.take(chunk.indices))
    return pa.concat_arrays(parts) if parts else pa.array([], pa.large_string())


def _ids_of_dictionary(values: pa.Array, key: str, where: str) -> Names:
    values = _stored(pa.chunked_array([values]))
    if pa.types.is_floating(values.type):
        return _ids(values.filter(pc.is_valid(values)), key, where)
    texts = _texts(values, key, where)
    longest = pc.max(pc.utf8_length(texts)).as_py() or 0
    require_memory(len(texts) * longest * 4, f"{where}: the {key} of {longest:,} characters")
    return np.asarray(texts.to_pylist(), dtype=np.str_)


def _texts(values: pa.ChunkedArray, key: str, where: str) -> pa.ChunkedArray:
    try:
        texts = values.cast(pa.large_string()).fill_null("")
        texts.validate(full=True)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise DataError(
            f"{where}: column {key!r} holds what is no text ({reason_of(error)})"
        ) from error
    return texts


def _require_all(missing: pa.Array, key: str, where: str, before: int = 0) -> None:
    if (row := pc.index(missing, True).as_py()) >= 0:
        raise DataError(f"{where}: row {before + row} has no {key}")


def _numbers(column: pa.ChunkedArray, name: str, where: str) -> Floats:
    column = _stored(column)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    try:
        return column.cast(pa.float32(), safe=False).to_numpy()
    except pa.ArrowException as error:
        raise DataError(
            f"{where}: column {shortened(name)} holds what is no number ({reason_of(error)})"
        ) from error


def _lists(column: pa.ChunkedArray, where: str) -> Floats:
    """A column of lists, all of one length, as a matrix."""
    least, most = lengths_of_lists(column)
    if least != most:
        raise DataError(uneven(where, least, most))
    if not most:
        raise DataError(f"{where}: there are no features in the lists")
    parts = [
        _numbers(pa.chunked_array([chunk.flatten()]), FEATURES, where).reshape(-1, most)
        for chunk in column.chunks
    ]
    return np.concatenate(parts)


def infinite_feature(
    where: str, feature: str, document: str, value: np.float32, documents: int
) -> str:
    """The sentence against infinite features, of which this is the first."""
    return (
        f"{where}: {feature} of {document} is {value}; features are finite, or missing "
        f"({documents} such documents; numbers go up to 3.4e38)"
    )


def uneven(where: str, least: int | None, most: int | None) -> str:
    """The sentence against documents of different numbers of features."""
    return f"{where}: documents have {least} to {most} features; expected equally many"


def _stored(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values themselves, where a type only points to them or gives them another name."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        column = pa.chunked_array([c.storage for c in column.chunks], type=kind.storage_type)
        return _stored(column)
    if pa.types.is_dictionary(kind):
        return column.cast(kind.value_type)
    return column


def _storage(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        return _storage(kind.storage_type)
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _can_be_id(kind: pa.DataType) -> bool:
    kind = _storage(kind)
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind))


def _is_number(kind: pa.DataType) -> bool:
    kind = _storage(kind)
    return (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    )


def _is_list(kind: pa.DataType) -> bool:
    return (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )
