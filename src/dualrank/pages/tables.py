"""Small tables that go with pages: queries, lists of candidates, judgments."""

from __future__ import annotations

import codecs
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
from numpy.typing import NDArray

from dualrank.errors import DataError

_QRELS = ("query_id", "", "doc_id", "grade")
_RUN = ("query_id", "", "doc_id", "rank", "score", "")
_TREC = {".qrels": _QRELS, ".qrel": _QRELS, ".run": _RUN, ".trec": _RUN}


@dataclass(frozen=True, eq=False)
class Queries:
    """The words that were asked, by name."""

    query_ids: list[str]
    texts: list[str]

    def __len__(self) -> int:
        return len(self.query_ids)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Query–document pairs by name, those of a query together, with grades where judged."""

    query_ids: NDArray[np.str_]
    doc_ids: NDArray[np.str_]
    grades: NDArray[np.float32] | None = None


def read_queries(path: str | Path) -> Queries:
    """Queries from Parquet, CSV, TSV or JSON lines with `query_id` and `query`."""
    table = _read(Path(path), ("query_id", "query"))
    ids = _texts(table, "query_id", path)
    texts = _texts(table, "query", path)
    if not ids:
        raise DataError(f"{path}: there are no queries")
    name, count = Counter(ids).most_common(1)[0]
    if count > 1:
        raise DataError(f"{path}: query {name!r} stands there more than once")
    return Queries(ids, texts)


def read_pairs(path: str | Path) -> Pairs:
    """Pairs from a table with `query_id` and `doc_id` (and `grade`), or a TREC run or qrels file.

    A click log is such a table too. Pairs that occur again are left out; the first counts.
    """
    table = _read(Path(path), ("query_id", "doc_id"))
    queries, documents = (_texts(table, name, path) for name in ("query_id", "doc_id"))
    if not queries:
        raise DataError(f"{path}: there are no lists")
    first: dict[str, dict[str, int]] = {}
    for row, (query, document) in enumerate(zip(queries, documents, strict=True)):
        first.setdefault(query, {}).setdefault(document, row)
    # Queries in the order in which they first occur, and so their documents.
    kept = [row for rows in first.values() for row in rows.values()]
    grades = None
    if "grade" in table.column_names:
        try:
            grades = pc.cast(table["grade"], pa.float32()).to_numpy(zero_copy_only=False)[kept]
        except pa.ArrowInvalid as error:
            raise DataError(f"{path}: a grade is not a number ({error})") from error
        if not np.isfinite(grades).all() or (grades < 0).any():
            raise DataError(f"{path}: a grade is missing or below 0; grades are 0 or more")
    return Pairs(np.array(queries)[kept], np.array(documents)[kept], grades)


def _texts(table: pa.Table, name: str, path: str | Path) -> list[str]:
    column = table[name]
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py() + 1
        raise DataError(f"{path}: {name} is missing in row {row}")
    return [str(value) for value in pc.cast(column, pa.string()).to_pylist()]


def _read(path: Path, needed: tuple[str, ...]) -> pa.Table:
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix not in (".gz", ".zst")]
    suffix = suffixes[-1] if suffixes else ""
    if suffix in _TREC:
        return _read_trec(path, _TREC[suffix])
    try:
        if suffix == ".parquet":
            table = pyarrow.parquet.read_table(path)
        else:
            with pa.input_stream(path, compression="detect") as stream:
                if suffix in (".csv", ".tsv"):
                    table = _read_csv(stream, "\t" if suffix == ".tsv" else ",", needed)
                elif suffix in (".jsonl", ".ndjson"):
                    table = pyarrow.json.read_json(stream)
                else:
                    raise DataError(
                        f"{path}: expected .parquet, .csv, .tsv or .jsonl (text also .gz or .zst)"
                    )
    except (pa.ArrowInvalid, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path}: the table cannot be read ({reason})") from error
    for name in needed:
        if name not in table.column_names:
            raise DataError(
                f"{path}: column {name!r} is missing; there are {', '.join(table.column_names)}"
            )
    return table


def _read_csv(stream: pa.NativeFile, delimiter: str, names: tuple[str, ...]) -> pa.Table:
    """Identifiers stay text: 007 is not 7."""
    return pyarrow.csv.read_csv(
        stream,
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=delimiter, quote_char=False if delimiter == "\t" else '"'
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
        ),
    )


def _read_trec(path: Path, columns: tuple[str, ...]) -> pa.Table:
    rows = []
    with pa.input_stream(path, compression="detect") as stream:
        lines = codecs.getreader("utf-8")(stream)
        for number, line in enumerate(lines, 1):
            values = line.split()
            if not values:
                continue
            if len(values) != len(columns):
                raise DataError(
                    f"{path}:{number}: expected {len(columns)} values, found {len(values)}"
                )
            rows.append({name: v for name, v in zip(columns, values, strict=True) if name})
    return pa.Table.from_pylist(rows) if rows else pa.table({"query_id": [], "doc_id": []})
