"""The site is built without a warning, and needs nothing from the network.

The cells of notebooks run in test_printed_blocks.py, at a smaller size than in `make docs`.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site; a link or anchor that leads nowhere is a warning, and so an error."""
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", ROOT / "docs", out],
        env=os.environ | {"NOTEBOOKS": "off", "http_proxy": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, str]:
    found = [page for page in site.rglob("*.html") if "_static" not in page.parts]
    return {page: page.read_text(encoding="utf-8") for page in found}


def test_nothing_of_a_page_is_fetched_from_elsewhere(pages: dict[Path, str]) -> None:
    fetched = re.compile(
        r'(?:<script[^>]* src|<link[^>]*stylesheet[^>]* href|<img[^>]* src)="(http[^"]+)"'
    )
    assert {page.name: found for page in pages if (found := fetched.findall(pages[page]))} == {}


def test_every_link_within_the_site_leads_somewhere(pages: dict[Path, str]) -> None:
    ids = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in pages.items()}
    lost = []
    for page, text in pages.items():
        for link in re.findall(r'<a [^>]*href="([^"]+)"', text):
            if re.match(r"\w+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and target in ids and anchor not in ids[target]):
                lost.append(f"{page.name}: {link}")
    assert lost == []


def test_search_knows_what_pages_say(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert "docnames" in index
    assert "propensity" in index
