"""Pages that nobody here wrote: the HTML documentation of Debian's package python3-doc."""

import os
from pathlib import Path

import pytest

from dualrank.pages.index import PageIndex
from dualrank.pages.sources import PageFiles, find_pages
from dualrank.pages.tokens import Tokeniser

PLACES = [os.environ.get("DUALRANK_HTML", ""), "/usr/share/doc/python3/html"]


@pytest.fixture(scope="module")
def pages():
    for place in filter(None, PLACES):
        if Path(place).is_dir():
            return find_pages(Path(place).resolve())
    pytest.skip("no HTML: apt install python3-doc, or set DUALRANK_HTML to a folder of pages")


def test_documentation_is_read_indexed_and_found_without_an_error(pages, tmp_path):
    some = PageFiles(pages.name, pages.files[::4], pages.root, pages.total)
    index = PageIndex.open_or_create(tmp_path / "index", Tokeniser("english"))
    result = index.add(some, jobs=2)
    assert result.unreadable == ()
    assert result.pages == len(some.files)
    hits = index.search("documentation", k=20)
    # The word stands in the title or the frame of nearly every page of documentation.
    assert len(hits) == min(20, result.pages)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(hit.title for hit in hits)
    assert {hit.doc_id for hit in hits} <= {
        file.relative_to(some.root).as_posix() for file in some.files
    }
