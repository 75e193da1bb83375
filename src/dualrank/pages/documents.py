"""A page by its name, made of what a source holds of it; what cannot be a page says why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dualrank.errors import DataError
from dualrank.pages.encoding import decode
from dualrank.pages.extraction import MAX_BYTES, Fields, extract_fields

LONGEST_NAME = 2_000
MOST_UNREADABLE = 10_000
"""How many pages that cannot be read are passed over, if fewer can be read."""

FIELDS_OF_ROWS = ("title", "content")
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


def refuse_if_most_are_unreadable(source: str, unreadable: Sequence[Unreadable], read: int) -> None:
    """Some bad pages are named and passed over; a source of little else is no source of pages."""
    if len(unreadable) > MOST_UNREADABLE and len(unreadable) > read:
        first = unreadable[0]
        raise DataError(
            f"{source}: {len(unreadable)} pages cannot be read and {read} can, the first that "
            f"cannot being {first.place} ({first.reason}); are these web pages?"
        )


def document_of_row(row: Mapping[str, Any], place: str) -> Document | Unreadable:
    """The page of a row of a table, which is at this place."""
    names = {name: row[name] for name in ("doc_id", "url") if row.get(name) is not None}
    for name, value in names.items():
        if isinstance(value, bytes):  # Parquet without a word on what its bytes are.
            names[name] = value.decode("utf-8", "replace")
        elif isinstance(value, float) and value.is_integer():
            names[name] = int(value)
        elif isinstance(value, bool) or not isinstance(value, str | int):
            return Unreadable(place, f"its {name} must be text or a whole number")
    url = str(names.get("url", ""))
    doc_id = str(names.get("doc_id", url))
    if not doc_id:
        return Unreadable(place, "it has neither doc_id nor url")
    html = row.get("html")
    if isinstance(html, str | bytes):
        return document_of_html(doc_id, url, html)
    texts = {
        name: value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        for name in FIELDS_OF_ROWS
        if (value := row.get(name)) is not None
    }
    if not texts:
        return Unreadable(place, f"it has neither html nor {' nor '.join(FIELDS_OF_ROWS)}")
    if not all(isinstance(text, str) for text in texts.values()):
        return Unreadable(place, f"{' and '.join(FIELDS_OF_ROWS)} must be text")
    fields = (whole_text(texts.get(name, "")[:MAX_BYTES]) for name in FIELDS_OF_ROWS)
    return _named(doc_id, Fields(whole_text(url), *fields))


def document_of_html(
    doc_id: str, url: str, page: bytes | str, charset: str | None = None
) -> Document | Unreadable:
    """Extract a page; an empty one has empty fields."""
    if isinstance(page, bytes):
        head = page[:1024]
        if head.startswith(_OTHER_FILES) or _control_characters(head) > 0.1 * len(head) > 0:
            return Unreadable(whole_text(doc_id)[:LONGEST_NAME], "it is binary data, not HTML")
        page = decode(page[:MAX_BYTES], charset)
    return _named(doc_id, extract_fields(page[:MAX_BYTES], whole_text(url)))


def _named(doc_id: str, fields: Fields) -> Document | Unreadable:
    """The page under a name that can be held and written."""
    name = whole_text(doc_id)
    if len(name) > LONGEST_NAME:
        reason = f"its name has {len(name)} characters; at most {LONGEST_NAME} are read"
        return Unreadable(name[:40] + "…", reason)
    return Document(name, fields)


def whole_text(text: str) -> str:
    """Text that can be written: halves of characters, as JSON and file names may hold, become ?."""
    return text.encode("utf-8", "replace").decode("utf-8")


_CONTROLS = bytes(c for c in range(1, 32) if c not in b"\t\n\f\r\x1b")


def _control_characters(head: bytes) -> int:
    """Characters that no text has, apart from the zeros of UTF-16."""
    return len(head) - len(head.translate(None, _CONTROLS))
