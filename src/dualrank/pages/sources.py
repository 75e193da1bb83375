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

from dualrank.data.letor.source import SourceFile
from dualrank.errors import DataError
from dualrank.extras import require
from dualrank.pages.encoding import decode
from dualrank.pages.extraction import MAX_BYTES, Fields, extract_fields

HTML_SUFFIXES = (".html", ".htm", ".xhtml")
LINE_SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".ndjson.gz", ".ndjson.zst")
WARC_SUFFIXES = (".warc", ".warc.gz")
TABLE_SUFFIXES = (".parquet",)
BATCH_BYTES = 4 << 20
_BATCH_FILES = 64
_BATCH_ROWS = 250
_FIELDS = ("title", "content")
_OTHER_FILES = (b"%PDF", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"PK\x03\x04", b"\x1f\x8b", b"wOF")


@dataclass(frozen=True)
class Document:
    """A page by its name, with its fields."""

    doc_id: str
    fields: Fields


@dataclass(frozen=True)
class Unreadable:
    """A page that could not be read: where it is, and why."""

    place: str
    reason: str


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
        raise DataError(f"{path}: there is no such file or folder")
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
        name = path.relative_to(root).as_posix()
        try:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES)
        except OSError as error:
            yield Unreadable(name, error.strerror or "it cannot be opened")
            continue
        page = _document(name, "", data)
        if isinstance(page, Document) and not page.fields.url:
            page = Document(name, replace(page.fields, url=name))
        yield page


def _pages_of_lines(
    file: str, first: int, lines: Sequence[bytes]
) -> Iterator[Document | Unreadable]:
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        place = f"{file}:{number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            yield Unreadable(place, "the line is not JSON")
            continue
        if isinstance(row, dict):
            yield _document_of_row(row, place)
        else:
            yield Unreadable(place, "the line is not a JSON object")


def _pages_of_rows(
    file: str, first: int, rows: Sequence[Mapping[str, Any]]
) -> Iterator[Document | Unreadable]:
    for number, row in enumerate(rows, first):
        yield _document_of_row(row, f"{file}, row {number}")


def _pages_of_records(
    records: Sequence[tuple[str, bytes, str | None]],
) -> Iterator[Document | Unreadable]:
    for url, data, charset in records:
        yield _document(url, url, data, charset)


def _read_lines(file: Path, before: int) -> Iterator[Batch]:
    with SourceFile(file) as source:
        stream = io.BufferedReader(source, 1 << 20)
        first = 1
        while lines := stream.readlines(BATCH_BYTES):
            read = partial(_pages_of_lines, file.name, first, lines)
            yield Batch(before + source.bytes_read, read)
            first += len(lines)


def _read_table(file: Path, before: int) -> Iterator[Batch]:
    try:
        table = pq.ParquetFile(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"not a readable Parquet file ({error})") from error
    with table:
        wanted = [c for c in ("doc_id", "url", "html", *_FIELDS) if c in table.schema_arrow.names]
        rows, size, first = table.metadata.num_rows, file.stat().st_size, 1
        for batch in table.iter_batches(batch_size=_BATCH_ROWS, columns=wanted):
            done = before + size * (first - 1 + batch.num_rows) // max(rows, 1)
            yield Batch(done, partial(_pages_of_rows, file.name, first, batch.to_pylist()))
            first += batch.num_rows


def _read_warc(file: Path, before: int) -> Iterator[Batch]:
    archives = require("pages", "warcio.archiveiterator")
    load_failed = require("pages", "warcio.exceptions").ArchiveLoadFailed
    records: list[tuple[str, bytes, str | None]] = []
    size = 0
    with file.open("rb") as stream:
        try:
            for record in archives.ArchiveIterator(stream):
                found = _html_of_record(record)
                if found is None:
                    continue
                records.append(found)
                size += len(found[1])
                if size >= BATCH_BYTES:
                    yield Batch(before + stream.tell(), partial(_pages_of_records, records))
                    records, size = [], 0
        except (load_failed, OSError, EOFError, ValueError) as error:
            yield Batch(before + stream.tell(), partial(_pages_of_records, records))
            raise DataError(f"the WARC file is damaged ({error})") from error
    yield Batch(before + file.stat().st_size, partial(_pages_of_records, records))


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


def _document_of_row(row: Mapping[str, Any], place: str) -> Document | Unreadable:
    texts = {name: row[name] for name in ("doc_id", "url", *_FIELDS) if row.get(name) is not None}
    url = str(texts.get("url", ""))
    doc_id = str(texts.get("doc_id", url))
    if not doc_id:
        return Unreadable(place, "it has neither doc_id nor url")
    html = row.get("html")
    if isinstance(html, str | bytes):
        return _document(doc_id, url, html)
    fields = [texts.get(name, "") for name in _FIELDS]
    if not any(name in texts for name in _FIELDS):
        return Unreadable(place, f"it has neither html nor {' nor '.join(_FIELDS)}")
    if not all(isinstance(text, str) for text in fields):
        return Unreadable(place, f"{' and '.join(_FIELDS)} must be text")
    return Document(doc_id, Fields(url, *fields))


def _document(
    doc_id: str, url: str, page: bytes | str, charset: str | None = None
) -> Document | Unreadable:
    """Extract a page; an empty one has empty fields."""
    if isinstance(page, bytes):
        head = page[:1024]
        if head.startswith(_OTHER_FILES) or _control_characters(head) > 0.1 * len(head) > 0:
            return Unreadable(doc_id, "it is binary data, not HTML")
        page = decode(page[:MAX_BYTES], charset)
    return Document(doc_id, extract_fields(page[:MAX_BYTES], url))


_CONTROLS = bytes(c for c in range(1, 32) if c not in b"\t\n\f\r\x1b")


def _control_characters(head: bytes) -> int:
    """Characters that no text has, apart from the zeros of UTF-16."""
    return len(head) - len(head.translate(None, _CONTROLS))
