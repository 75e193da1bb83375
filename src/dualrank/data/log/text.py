"""What is wrong with a text file that a database reads as something else, or not at all."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import IO

from dualrank.data.log.log_files import Source
from dualrank.errors import DataError

DELIMITERS = (",", "\t", ";", "|")
START = 4_096
EXAMINED_ROWS = 100_000


def refuse_other_text(source: Source) -> None:
    """Refuse a log without a character in it, and JSON that is one array instead of lines."""
    starts = [_start(file) for file in source.files]
    if all(start == "" for start in starts):
        raise DataError(f"{source.name}: the file is empty")
    for file, start in zip(source.files, starts, strict=True):
        if source.format == "json" and start is not None and start.startswith("["):
            raise DataError(f"{file}: a JSON array; expected one object per line")


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
    opened = _open(file)
    if opened is None:
        return None
    with opened:
        header = opened.readline()
        mark = max(DELIMITERS, key=header.count)
        rows = csv.reader(chain([header], opened), delimiter=mark)
        names = next(rows, [])
        if set(names) <= set(columns):
            return None
        expected = len(names)
        for row in _first(rows):
            if row and len(row) != expected:
                values = "1 value" if len(row) == 1 else f"{len(row)} values"
                return f"line {rows.line_num}: {values} where the header has {expected}"
    return None


def _first(rows: Iterator[list[str]]) -> Iterator[list[str]]:
    for _, row in zip(range(EXAMINED_ROWS), rows, strict=False):
        yield row


def _start(file: str) -> str | None:
    """The beginning of a text, None where it cannot be read here."""
    try:
        opened = _open(file)
        if opened is None:
            return None
        with opened:
            start = opened.read(START)
            return start.strip() if len(start) < START else start.lstrip() or None
    except (OSError, EOFError, UnicodeDecodeError):
        return None


def _open(file: str) -> IO[str] | None:
    if file.lower().endswith(".zst"):
        return None
    if file.lower().endswith(".gz"):
        return gzip.open(file, "rt", encoding="utf-8-sig", newline="")
    return open(file, encoding="utf-8-sig", newline="")
