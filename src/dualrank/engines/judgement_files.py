"""Judgements as files that evaluation tools read, one function a format.

Grades are whole numbers in all of them; only the table has relevance, intervals and sessions too.
Names that a format cannot hold are refused, because they would be read as others.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from dualrank.errors import DataError, SettingsError
from dualrank.storage import write_table, write_text
from dualrank.version import __version__

Row = tuple[str, str, int]
LONGEST_NAME = 50
"""Of a judgement list in OpenSearch, which takes none of the characters below in it either."""
NOT_IN_NAMES = re.compile(r'["\\<>]')


def write_judgements(table: pa.Table, path: Path, to: str, *, by: str) -> None:
    """Write a table of judgements in one of `FORMATS`; `by` says how they were made."""
    FORMATS[to](table, path, by)


def format_of(path: Path, to: str | None) -> str:
    """The format that was asked for, or that the suffix of the file means."""
    found = SUFFIXES.get(path.suffix) if to is None else to
    if found is None:
        known = ", ".join(SUFFIXES)
        raise SettingsError(
            f"{path}: what to write is told by one of the suffixes {known}, or by to= with one of "
            f"{', '.join(FORMATS)}"
        )
    if found not in FORMATS:
        raise SettingsError(f"there is no format {found!r}; there are {', '.join(FORMATS)}")
    return found


def _write_trec(table: pa.Table, path: Path, by: str) -> None:
    """`query 0 document grade` a line, as trec_eval, ir_measures and `dualrank evaluate` read."""
    _require(table, path, "TREC qrels", re.compile(r"\s"), "white space")
    lines = [f"{query} 0 {document} {grade}\n" for query, document, grade in _rows(table)]
    write_text(path, "".join(lines))


def _write_quepid(table: pa.Table, path: Path, by: str) -> None:
    """The ratings of a Quepid case: CSV with the header that its import looks for."""
    _require(table, path, "a CSV for Quepid", re.compile(r"[\r\n]"), "a line break")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["query", "docid", "rating"])
    writer.writerows(_rows(table))
    write_text(path, text.getvalue())


def _write_opensearch(table: pa.Table, path: Path, by: str) -> None:
    """The body of `PUT _plugins/_search_relevance/judgments`; ratings are strings there."""
    _require(table, path, "a judgement list", re.compile("[\x00-\x1f]"), "a control character")
    content = {
        "name": NOT_IN_NAMES.sub("", path.stem)[:LONGEST_NAME],
        "description": f"{table.num_rows} pairs from clicks, by {by}; dualrank {__version__}",
        "type": "IMPORT_JUDGMENT",
        "judgmentRatings": [
            {
                "query": query,
                "ratings": [{"docId": document, "rating": str(grade)} for _, document, grade in on],
            }
            for query, on in groupby(_rows(table), key=lambda row: row[0])
        ],
    }
    write_text(path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def _write_whole(table: pa.Table, path: Path, by: str) -> None:
    write_table(path, table, "a table of judgements")


Writer = Callable[[pa.Table, Path, str], None]
FORMATS: dict[str, Writer] = {
    "trec": _write_trec,
    "quepid": _write_quepid,
    "opensearch": _write_opensearch,
    "table": _write_whole,
}
SUFFIXES = {".qrels": "trec", ".json": "opensearch", ".parquet": "table", ".csv": "table"}


def _rows(table: pa.Table) -> Iterator[Row]:
    columns = (table[name].to_pylist() for name in ("query_id", "doc_id", "grade"))
    return zip(*columns, strict=True)


def _require(table: pa.Table, path: Path, what: str, never: re.Pattern[str], called: str) -> None:
    """Refuse names that would be read as others, and empty ones."""
    for column, kind in (("query_id", "query"), ("doc_id", "document")):
        for name in table[column].unique().to_pylist():
            if not name:
                raise DataError(
                    f"{path}: found an empty {kind} id; {what} needs one for every pair"
                )
            if never.search(name):
                raise DataError(
                    f"{path}: found {called} in the {kind} id {name!r}; {what} allows none, the "
                    "other formats do"
                )
