"""The files of the page, read once: a request names one of them, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "page"
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""Browsers load nothing from elsewhere for these pages, and show them in no frame."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True)
class PageFile:
    """Bytes, and what they are."""

    content: bytes
    kind: str


@cache
def page_files() -> dict[str, PageFile]:
    """Every file of the page by its path; `/` is the page itself.

    Requests are looked up here and never joined to the name of a folder.
    """
    found = {
        f"/{path.name}": PageFile(path.read_bytes(), KINDS[path.suffix])
        for path in sorted(FOLDER.glob("*"))
        if path.suffix in KINDS
    }
    return {"/": found["/index.html"], **found}
