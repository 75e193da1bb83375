"""Where pages come from: folders of HTML, WARC, JSON lines, Parquet.

A source is cut into batches that can be sent to another process, where reading and extraction
happen. A page that cannot be read becomes `Unreadable` and the rest goes on.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from dualrank.data.letor.lines import LONGEST_LINE
from dualrank.data.letor.source import SourceFile
from dualrank.data.table_files import refuse_swollen
from dualrank.data.trec import MOST_EMPTY_LINES
from dualrank.errors import DataError
from dualrank.extras import require
from dualrank.pages.documents import (
    FIELDS_OF_ROWS,
    Document,
    Unreadable,
    document_of_html,
    document_of_row,
    whole_text,
)
from dualrank.pages.extraction import MAX_BYTES
from dualrank.pages.warc import Damaged, read_records
from dualrank.sentences import absent, reason_of

HTML_SUFFIXES = (".html", ".htm", ".xhtml")
LINE_SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".ndjson.gz", ".ndjson.zst")
WARC_SUFFIXES = (".warc", ".warc.gz")
TABLE_SUFFIXES = (".parquet",)
BATCH_BYTES = 4 << 20
_BATCH_FILES = 64
_BATCH_ROWS = 250
_COLUMNS = ["doc_id", "url", "html", *FIELDS_OF_ROWS]
_LINE_BYTES = 64
"""What a line costs beyond its bytes, so that a batch of empty ones is small too."""


@dataclass(frozen=True)
class Batch:
    """Some pages, not yet extracted; with them `done` of the source's bytes are read.

    `read` gives the pages in the order of the source. Both can be sent to another process.
    """

    done: int
    read: Callable[[], Iterable[Document | Unreadable]]


class PageSource(Protocol):
    """Pages in batches; `total` is what `done` of the last batch will be."""

    @property
    def name(self) -> str:
        """What the user calls it."""

    @property
    def total(self) -> int:
        """How much there is to read."""

    def batches(self) -> Iterator[Batch]:
        """The pages."""


@dataclass(frozen=True)
class HeldPages:
    """Pages at hand: rows with the columns that a table of pages has."""

    rows: Sequence[Mapping[str, Any]]
    name: str = "the pages"

    @property
    def total(self) -> int:
        """The number of pages."""
        return len(self.rows)

    def batches(self) -> Iterator[Batch]:
        """Some hundred pages at a time."""
        for start in range(0, len(self.rows), _BATCH_ROWS):
            rows = self.rows[start : start + _BATCH_ROWS]
            yield Batch(start + len(rows), partial(_pages_of_rows, self.name, start + 1, rows))


@dataclass(frozen=True)
class PageFiles:
    """All files of a source, and how many bytes they have."""

    name: str
    files: tuple[Path, ...]
    root: Path
    total: int

    def batches(self) -> Iterator[Batch]:
        """The pages in batches of some megabytes."""
        done = size = 0
        waiting: list[Path] = []
        for file in self.files:
            is_page = file.name.lower().endswith(HTML_SUFFIXES)
            if waiting and (not is_page or size >= BATCH_BYTES or len(waiting) == _BATCH_FILES):
                yield Batch(done, partial(_pages_of_files, self.root, waiting))
                waiting, size = [], 0
            length = file.stat().st_size
            if is_page:
                waiting.append(file)
                size += length
            else:
                yield from _batches_of_file(file, done)
            done += length
        if waiting:
            yield Batch(done, partial(_pages_of_files, self.root, waiting))


def find_pages(path: str | Path) -> PageFiles:
    """The pages of a file, or of all files in a folder and the folders in it, by their suffix.

    - `.html`, `.htm`, `.xhtml`: one page each. Its name is the path within the folder, and so is
      its url, unless the page names a canonical one.
    - `.warc`, `.warc.gz`: the HTML responses. Name and url are the target of the record.
    - `.jsonl`, `.ndjson` (also `.gz`, `.zst`) and `.parquet`: `doc_id`, `url` and `html`, or
      `doc_id`, `url` and already extracted `title` and `content`. Without `doc_id` the url is the
      name.
    """
    root = Path(path)
    if not root.exists():
        raise DataError(absent(path, "file or folder"))
    suffixes = (*HTML_SUFFIXES, *LINE_SUFFIXES, *WARC_SUFFIXES, *TABLE_SUFFIXES)
    files = [root] if root.is_file() else sorted(p for p in root.rglob("*") if p.is_file())
    known = tuple(file for file in files if file.name.lower().endswith(suffixes))
    if not known:
        raise DataError(f"{path}: no pages there; expected files that end in {', '.join(suffixes)}")
    total = sum(file.stat().st_size for file in known)
    return PageFiles(str(path), known, root if root.is_dir() else root.parent, total)


def _batches_of_file(file: Path, done: int) -> Iterator[Batch]:
    name = file.name.lower()
    try:
        if name.endswith(WARC_SUFFIXES):
            yield from _read_warc(file, done)
        elif name.endswith(TABLE_SUFFIXES):
            yield from _read_table(file, done)
        else:
            yield from _read_lines(file, done)
    except DataError as error:
        # The rest of a file that cannot be read on.
        rest = (Unreadable(file.name, str(error)),)
        yield Batch(done + file.stat().st_size, partial(iter, rest))


def _pages_of_files(root: Path, paths: Sequence[Path]) -> Iterator[Document | Unreadable]:
    for path in paths:
        name = whole_text(path.relative_to(root).as_posix())
        try:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES)
        except OSError as error:
            yield Unreadable(name, error.strerror or "it cannot be opened")
            continue
        page = document_of_html(name, "", data)
        if isinstance(page, Document) and not page.fields.url:
            page = replace(page, fields=replace(page.fields, url=name))
        yield page


def _pages_of_lines(
    file: str, lines: Sequence[tuple[int, bytes | None]]
) -> Iterator[Document | Unreadable]:
    for number, line in lines:
        place = f"{file}:{number}"
        if line is None:
            yield Unreadable(place, f"the line is longer than {LONGEST_LINE} bytes")
            continue
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            yield Unreadable(place, "the line is not JSON")
            continue
        if isinstance(row, dict):
            yield document_of_row(row, place)
        else:
            yield Unreadable(place, "the line is not a JSON object")


def _pages_of_rows(
    file: str, first: int, rows: Sequence[Mapping[str, Any]]
) -> Iterator[Document | Unreadable]:
    for number, row in enumerate(rows, first):
        yield document_of_row(row, f"{file}, row {number}")


def _pages_of_batch(
    file: str, first: int, batch: pa.RecordBatch
) -> Iterator[Document | Unreadable]:
    for number in range(batch.num_rows):
        place = f"{file}, row {first + number}"
        try:
            # One by one: a text that many rows share is then not in memory as often.
            (row,) = batch.slice(number, 1).to_pylist()
        except (UnicodeDecodeError, pa.ArrowException):
            yield Unreadable(place, "it is not UTF-8 text")
            continue
        yield document_of_row(row, place)


def _pages_of_records(
    records: Sequence[tuple[str, bytes, str | None] | Unreadable],
) -> Iterator[Document | Unreadable]:
    for record in records:
        if isinstance(record, Unreadable):
            yield record
        else:
            url, data, charset = record
            yield document_of_html(url, url, data, charset)


def _read_lines(file: Path, before: int) -> Iterator[Batch]:
    with SourceFile(file) as source:
        lines: list[tuple[int, bytes | None]] = []
        size = 0
        try:
            for number, line in enumerate(_lines_of(io.BufferedReader(source, 1 << 16)), 1):
                lines.append((number, line))
                size += _LINE_BYTES + len(line or b"")
                if size >= BATCH_BYTES:
                    yield Batch(before + source.bytes_read, _reading_lines(file, lines))
                    lines, size = [], 0
        except DataError:
            # What stands before the damage.
            yield Batch(before + source.bytes_read, _reading_lines(file, lines))
            raise
        yield Batch(before + source.bytes_read, _reading_lines(file, lines))


def _reading_lines(
    file: Path, lines: list[tuple[int, bytes | None]]
) -> Callable[[], Iterable[Document | Unreadable]]:
    return partial(_pages_of_lines, file.name, lines)


def _lines_of(stream: io.BufferedReader) -> Iterator[bytes | None]:
    """The lines of a text; None for one that is too long to be held."""
    empty = 0
    while line := stream.readline(LONGEST_LINE):
        empty = empty + 1 if line == b"\n" else 0
        if empty > MOST_EMPTY_LINES:
            raise DataError(f"{empty} empty lines, one after the other")
        if len(line) < LONGEST_LINE or line.endswith(b"\n"):
            yield line
            continue
        yield None
        while len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            line = stream.readline(LONGEST_LINE)


def _read_table(file: Path, before: int) -> Iterator[Batch]:
    try:
        kinds = {each.name: each.type for each in pq.read_schema(file) if each.name in _COLUMNS}
        texts = [n for n, kind in kinds.items() if kind in (pa.string(), pa.binary())]
        with pq.ParquetFile(file, read_dictionary=texts) as table:
            refuse_swollen(file, table.metadata)
            rows, size, first = table.metadata.num_rows, file.stat().st_size, 1
            for batch in table.iter_batches(batch_size=_BATCH_ROWS, columns=[*kinds]):
                done = before + size * (first - 1 + batch.num_rows) // max(rows, 1)
                yield Batch(done, partial(_pages_of_batch, file.name, first, batch))
                first += batch.num_rows
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise DataError(f"not readable as Parquet ({reason_of(error)})") from error


def _read_warc(file: Path, before: int) -> Iterator[Batch]:
    loader = require("pages", "warcio.recordloader").ArcWarcRecordLoader()
    found: list[tuple[str, bytes, str | None] | Unreadable] = []
    size = 0
    for record in read_records(file):
        place = f"{file.name} at byte {record.start}"
        if isinstance(record, Damaged):
            found.append(Unreadable(place, record.reason))
            continue
        try:
            page = _html_of_record(loader.parse_record_stream(io.BytesIO(record.content)))
        except Exception as error:
            # The record is whole and what it holds is not; the parser raises whatever happens.
            found.append(Unreadable(place, f"the response is damaged ({type(error).__name__})"))
            continue
        if page is not None:
            found.append(page if page[0] else Unreadable(place, "it has no WARC-Target-URI"))
            size += len(page[1])
        if size >= BATCH_BYTES:
            yield Batch(before + record.end, partial(_pages_of_records, found))
            found, size = [], 0
    yield Batch(before + file.stat().st_size, partial(_pages_of_records, found))


def _html_of_record(record: Any) -> tuple[str, bytes, str | None] | None:
    """Url, bytes and declared encoding of an HTML response; None for everything else."""
    headers = record.http_headers
    if record.rec_type != "response" or headers is None or headers.get_statuscode() != "200":
        return None
    kind, *parameters = (headers.get_header("Content-Type") or "").lower().split(";")
    if kind.strip() not in ("text/html", "application/xhtml+xml", ""):
        return None
    named = [
        p.split("=", 1)[1].strip(" \"'") for p in parameters if p.strip().startswith("charset=")
    ]
    url = record.rec_headers.get_header("WARC-Target-URI") or ""
    return url, record.content_stream().read(MAX_BYTES), named[0] if named else None
