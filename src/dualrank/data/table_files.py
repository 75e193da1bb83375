"""Tables of ids and numbers as people keep them: Parquet, CSV, TSV, JSON lines.

Ids stay the text that they are: 007 is not 7, and 2020-01-01 no moment.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from dualrank.data.letor.source import MOST_UNPACKED, UNPACKED_UNASKED, SourceFile
from dualrank.data.memory_limits import require_memory
from dualrank.data.trec import text_lines
from dualrank.errors import DataError
from dualrank.sentences import absent, listed, reason_of

_TEXTS = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
SUFFIXES = (".parquet", ".csv", ".tsv", ".jsonl", ".ndjson")
ROWS_AT_ONCE = 1 << 16
_BUFFER = 1 << 16
ROWS_UNASKED = 1 << 22
MOST_ROWS_PER_BYTE = 20
"""How many values of a column a byte of a Parquet file may hold, above `ROWS_UNASKED` of them."""


def suffix_of_table(path: Path) -> str:
    """What kind of file this is; text may be compressed."""
    suffixes = [each.lower() for each in path.suffixes]
    packed = suffixes[-1:] in ([".gz"], [".zst"])
    return "".join(suffixes[:-1][-1:] if packed else suffixes[-1:])


def read_table(
    path: Path, texts: Sequence[str], number: str = "", *, needs_number: bool = False
) -> pa.Table:
    """The columns `texts` as text, and the column `number` as float64 where there is one.

    No text is missing; a number may be. Raises DataError for anything that is no such table.
    """
    if not path.is_file():
        raise DataError(absent(path))
    suffix = suffix_of_table(path)
    if suffix not in SUFFIXES:
        raise DataError(f"{path}: expected .parquet, .csv, .tsv or .jsonl (text also .gz or .zst)")
    needed = (*texts, number) if needs_number else tuple(texts)
    try:
        if suffix == ".parquet":
            found = _read_parquet(path, needed, number)
        elif suffix in (".csv", ".tsv"):
            found = _read_csv(path, "\t" if suffix == ".tsv" else ",", needed, number)
        else:
            found = _read_json_lines(path, needed, number)
        columns = {name: _text(found[name], name, path) for name in texts}
        if number and number in found.column_names:
            columns[number] = _number(found[number], number, path)
        return pa.table(columns)
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        raise DataError(f"{path}: the table cannot be read ({reason_of(error)})") from error


def table_batches(
    path: Path, texts: Sequence[str], number: str, rows: int = ROWS_AT_ONCE
) -> Iterator[pa.Table]:
    """What `read_table` reads, `number` being needed; of a Parquet file some rows at a time."""
    if suffix_of_table(path) != ".parquet":
        yield read_table(path, texts, number, needs_number=True)
        return
    before = size = 0
    try:
        with pq.ParquetFile(
            path, read_dictionary=_texts_of(path, texts), pre_buffer=False, buffer_size=_BUFFER
        ) as file:
            wanted = _wanted(path, file.schema_arrow.names, (*texts, number), number)
            refuse_swollen(path, file.metadata)
            for batch in file.iter_batches(rows, columns=list(wanted)):
                found = pa.Table.from_batches([batch])
                size += _size_of_texts(found)
                _refuse_long(path, size)
                columns = {name: _text(found[name], name, path, before) for name in texts}
                yield pa.table({**columns, number: _number(found[number], number, path)})
                before += len(found)
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        raise DataError(f"{path}: the table cannot be read ({reason_of(error)})") from error


def _wanted(
    path: Path, there: Sequence[str], needed: Sequence[str], number: str
) -> tuple[str, ...]:
    """The columns to read, checked by their names."""
    for name in needed:
        if name not in there:
            raise DataError(f"{path}: column {name!r} is missing; there are {listed(there)}")
    wanted = tuple(dict.fromkeys([*needed, *([number] if number and number in there else [])]))
    for name in wanted:
        if list(there).count(name) > 1:
            raise DataError(f"{path}: column {name!r} stands there more than once")
    return wanted


def _read_parquet(path: Path, needed: Sequence[str], number: str) -> pa.Table:
    with pq.ParquetFile(path, read_dictionary=_texts_of(path, needed)) as file:
        wanted = _wanted(path, file.schema_arrow.names, needed, number)
        refuse_swollen(path, file.metadata)
        table = file.read(columns=list(wanted))
    _refuse_long(path, _size_of_texts(table))
    return table


def _texts_of(path: Path, needed: Sequence[str]) -> list[str]:
    """The columns of text: one that many rows share is held once, until all of it is known."""
    kinds = {each.name: each.type for each in pq.read_schema(path)}
    return [name for name in needed if kinds.get(name) in _TEXTS]


def _size_of_texts(table: pa.Table) -> int:
    """Bytes of the texts of all rows."""
    size = 0
    for chunk in (chunk for column in table.columns for chunk in column.chunks):
        if pa.types.is_dictionary(chunk.type) and chunk.dictionary.type in _TEXTS:
            lengths = pc.binary_length(chunk.dictionary).take(chunk.indices)
            size += pc.sum(pc.cast(lengths, pa.int64())).as_py() or 0
    return size


def _refuse_long(path: Path, size: int) -> None:
    if size > max(UNPACKED_UNASKED, MOST_UNPACKED * path.stat().st_size):
        raise DataError(_swollen(path))


def refuse_swollen(path: Path, about: pq.FileMetaData) -> None:
    """Refuse a Parquet file that says of itself that it becomes far more than it is."""
    # What groups say of their columns is not asked: where that is damaged, Arrow ends the process.
    groups = (about.row_group(number) for number in range(about.num_row_groups))
    unpacked, size = sum(group.total_byte_size for group in groups), path.stat().st_size
    if unpacked > max(UNPACKED_UNASKED, MOST_UNPACKED * size):
        raise DataError(_swollen(path))
    refuse_many(path, about.num_rows)


def refuse_many(path: Path, values: int) -> None:
    """Refuse a Parquet file of more values in a column than so few bytes can tell apart."""
    if values > max(ROWS_UNASKED, MOST_ROWS_PER_BYTE * path.stat().st_size):
        raise DataError(_swollen(path))


def _swollen(path: Path) -> str:
    return (
        f"{path}: the file unpacks to far more than tables of its {path.stat().st_size} bytes do; "
        "expected rows that differ from each other"
    )


def _read_csv(path: Path, delimiter: str, needed: Sequence[str], number: str) -> pa.Table:
    parsing = pyarrow.csv.ParseOptions(
        delimiter=delimiter,
        quote_char=False if delimiter == "\t" else '"',
        newlines_in_values=delimiter == ",",
    )
    with _opened(path) as stream, pyarrow.csv.open_csv(stream, parse_options=parsing) as head:
        wanted = _wanted(path, head.schema.names, needed, number)
    # Other columns are not looked at: they may hold anything.
    converting = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(wanted, pa.string()),
        include_columns=list(wanted),
        strings_can_be_null=False,
    )
    with _opened(path) as stream:
        return pyarrow.csv.read_csv(stream, parse_options=parsing, convert_options=converting)


def _opened(path: Path) -> io.BufferedReader:
    """A stream that gives as many bytes as it is asked for, as Arrow takes for granted."""
    return io.BufferedReader(SourceFile(path))


def _read_json_lines(path: Path, needed: Sequence[str], number: str) -> pa.Table:
    """Row by row: an inferring reader would take an id for a moment in time."""
    names = dict.fromkeys([*needed, number] if number else needed)
    columns: dict[str, list[Any]] = {name: [] for name in names}
    there: dict[str, None] = {}
    for line_number, line in text_lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise DataError(f"{path}:{line_number}: the line is not a JSON object")
        there.update(dict.fromkeys(row))
        for name, values in columns.items():
            value = row.get(name)
            if name != number and isinstance(value, float) and value.is_integer():
                value = int(value)
            if not _is_scalar(value, is_number=name == number):
                expected = "a number" if name == number else "text or a whole number"
                found = json.dumps(value)[:40]
                raise DataError(f"{path}:{line_number}: {name} is {found}; expected {expected}")
            values.append(value if name == number or value is None else str(value))
    wanted = _wanted(path, list(there), needed, number) if there else names
    types = {name: pa.float64() if name == number else pa.string() for name in wanted}
    return pa.table({name: pa.array(columns[name], kind) for name, kind in types.items()})


def _is_scalar(value: Any, *, is_number: bool) -> bool:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return True
    return isinstance(value, float if is_number else str)


def _text(column: pa.ChunkedArray, name: str, path: Path, before: int = 0) -> pa.ChunkedArray:
    if column.null_count:
        row = before + pc.index(pc.is_null(column), True).as_py() + 1
        raise DataError(f"{path}: {name} is missing in row {row}")
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_floating(kind):
        # Whole numbers that became floats beside a missing value.
        column = pc.cast(column, pa.int64())
    elif pa.types.is_nested(kind):
        raise DataError(f"{path}: {name} holds {str(kind)[:40]}; expected text or whole numbers")
    found = pc.cast(column, pa.string())
    found.validate(full=True)
    longest = pc.max(pc.utf8_length(found)).as_py() or 0
    # Ids may become arrays in which each takes the room of the longest.
    if name != "query":
        require_memory(4 * longest * len(found), f"{path}: {name} of {longest:,} characters")
    return found


def _number(column: pa.ChunkedArray, name: str, path: Path) -> pa.ChunkedArray:
    try:
        if pa.types.is_string(column.type):
            column = pc.if_else(pc.equal(column, ""), None, column)
        return pc.cast(column, pa.float64())
    except pa.ArrowException as error:
        at = _first_that_is_no_number(column)
        raise DataError(
            f"{path}: the {name} in row {at} is not a number ({reason_of(error)})"
        ) from error


def _first_that_is_no_number(column: pa.ChunkedArray) -> int:
    for row, value in enumerate(column, start=1):
        try:
            pc.cast(value, pa.float64())
        except pa.ArrowException:
            return row
    return 0
