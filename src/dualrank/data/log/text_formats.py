"""Logs as text, CSV and JSON lines, and what is wrong with files that are something else."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import chain, islice

import duckdb
import pyarrow as pa

from dualrank.data.log.duckdb_engine import DuckDBEngine
from dualrank.data.log.log_format import LogFormat, Source
from dualrank.errors import DataError
from dualrank.sentences import shortened

DELIMITERS = (",", "\t", ";", "|")
START = 4_096
FEW = 30
EXAMINED_ROWS = 100_000
LONGEST_LINE = 2_000_000
MOST_KEYS = 2_000
BULK_ACTIONS = ("index", "create")
"""What a line between the documents of a bulk file, as search engines load it, says to do."""


class Csv(LogFormat):
    """CSV and TSV with a header; all columns stay text.

    A type guessed from the first lines would turn the id 007 into 7.
    """

    title = "CSV"
    suffixes = (".csv", ".tsv")

    def rows(self, engine: DuckDBEngine, source: Source) -> str:
        """The rows; a line of more or fewer values than the header is named."""
        _starts(source)
        query = (
            f"SELECT * FROM read_csv({engine.texts(source.files)}, union_by_name = true, "
            "header = true, all_varchar = true, hive_partitioning = false)"
        )
        try:
            uneven, why = uneven_row(source, list(engine.described(query))), None
        except duckdb.Error as error:
            require_utf8(source)
            uneven, why = uneven_row(source), error
            if uneven is None:
                raise
        if uneven is not None:
            raise DataError(f"{uneven}; mend or remove this line") from why
        return query


class JsonLines(LogFormat):
    """One JSON object per line; all values stay text."""

    title = "JSON lines"
    suffixes = (".jsonl", ".ndjson", ".json")

    def rows(self, engine: DuckDBEngine, source: Source) -> str:
        """The rows, with every key of every line as a column."""
        for file, start in zip(source.files, _starts(source), strict=True):
            if start is not None and start.startswith("["):
                raise DataError(f"{file}: a JSON array; expected one object per line")
            if start and not start.startswith("{"):
                raise DataError(
                    f"{file}: its first line begins with {shortened(start[:FEW])}; expected one "
                    "JSON object per line, and nothing before it"
                )
        try:
            return self._query(engine, source)
        except duckdb.Error:
            require_utf8(source)
            raise

    def _query(self, engine: DuckDBEngine, source: Source) -> str:
        files = engine.texts(source.files)
        how = "format = 'newline_delimited', hive_partitioning = false"
        lines = f"SELECT * FROM read_json({files}, {how}"
        keys = {key.lower(): key for key in engine.described(f"{lines}, union_by_name = true)")}
        # The database looks at the first lines only; a key may come later.
        every = f"SELECT unnest(json_keys(json)) AS key FROM read_ndjson_objects({files})"
        for (key,) in engine.rows(
            f"SELECT DISTINCT key FROM ({every}) ORDER BY key LIMIT {MOST_KEYS + 1}"
        ):
            keys.setdefault(key.lower(), key)
        if len(keys) > MOST_KEYS:
            raise DataError(
                f"{source.name}: its objects have more than {MOST_KEYS} different keys; expected "
                "the names of columns, the same in every line"
            )
        text = ", ".join(f"{engine.quote(key)}: 'VARCHAR'" for key in keys.values())
        return f"{lines}, columns = {{{text}}}){_documents(engine, list(keys.values()))}"


def _documents(engine: DuckDBEngine, keys: Sequence[str]) -> str:
    """The condition that leaves out the action lines of a bulk file, `{"index": {…}}`.

    Such a line has this one key; a log may have a column of that name.
    """
    others = [engine.quote(key) for key in keys if key not in BULK_ACTIONS]
    actions = [engine.quote(key) for key in keys if key in BULK_ACTIONS]
    if not (others and actions):
        return ""
    found = " OR ".join(f"ltrim({action}) LIKE '{{%'" for action in actions)
    return f" WHERE NOT (coalesce({', '.join(others)}) IS NULL AND coalesce({found}, FALSE))"


def _starts(source: Source) -> list[str | None]:
    """How the files begin; a log without a character in it is refused."""
    starts = [_start(file) for file in source.files]
    if all(start == "" for start in starts):
        raise DataError(f"{source.name}: the file is empty")
    return starts


def require_utf8(source: Source) -> None:
    """Refuse text in another encoding, of which a database says no more than where it stopped."""
    for file in source.files:
        try:
            with _open(file) as opened:
                for _ in iter(lambda: opened.read(LONGEST_LINE), ""):
                    pass
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            raise DataError(
                f"{file}: not UTF-8 text (a byte {byte:#04x} that cannot stand where it does); "
                "write it anew, as by iconv -f GB18030 -t UTF-8, with the encoding that it has"
            ) from error
        except OSError:
            continue


def uneven_row(source: Source, columns: Sequence[str] = ()) -> str | None:
    """Where a CSV file has a row of more or fewer values than its header, in words.

    Files whose header is among `columns` were understood, and are not looked at: where rows
    disagree, a database may take another line for the header, or a whole line for one name.
    """
    for file in source.files:
        try:
            found = _uneven(file, columns)
        except (OSError, UnicodeDecodeError, csv.Error):
            continue
        if found is not None:
            return f"{file}, {found}"
    return None


def _uneven(file: str, columns: Sequence[str]) -> str | None:
    with _open(file) as opened:
        lines = _lines(opened)
        header = next(lines, "")
        mark = max(DELIMITERS, key=header.count)
        rows = csv.reader(chain([header], lines), delimiter=mark)
        names = next(rows, [])
        if set(names) <= set(columns):
            return None
        expected = len(names)
        for row in islice(rows, EXAMINED_ROWS):
            if row and len(row) != expected:
                values = "1 value" if len(row) == 1 else f"{len(row)} values"
                return f"line {rows.line_num}: {values} where the header has {expected}"
    return None


def _lines(opened: io.TextIOWrapper) -> Iterator[str]:
    """The lines of a text up to one that DuckDB would not take either: it may have no end."""
    while line := opened.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise csv.Error("a line is too long")
        yield line


def _start(file: str) -> str | None:
    """The beginning of a text, None where it cannot be read here."""
    try:
        with _open(file) as opened:
            start = opened.read(START)
            return start.strip() if len(start) < START else start.lstrip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _open(file: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(pa.input_stream(file), encoding="utf-8-sig", newline="")
