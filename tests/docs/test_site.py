"""`make docs`: the site is built without a warning, and shows itself without a network."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a link or anchor that leads nowhere is a warning, an error here."""
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", ROOT / "docs", out],
        env=os.environ | {"OMP_NUM_THREADS": "1", "http_proxy": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out


def pages(site: Path) -> list[Path]:
    return [page for page in site.rglob("*.html") if "_static" not in page.parts]


def test_nothing_of_a_page_is_fetched_from_elsewhere(site: Path) -> None:
    fetched = re.compile(
        r'(?:<script[^>]* src|<link[^>]*stylesheet[^>]* href|<img[^>]* src)="(http[^"]+)"'
    )
    assert {
        page.name: found for page in pages(site) if (found := fetched.findall(page.read_text()))
    } == {}


def test_every_link_within_the_site_leads_somewhere(site: Path) -> None:
    ids = {page: set(re.findall(r'\bid="([^"]+)"', page.read_text())) for page in pages(site)}
    lost = []
    for page in ids:
        for link in re.findall(r'<a [^>]*href="([^"]+)"', page.read_text()):
            if re.match(r"\w+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and target in ids and anchor not in ids[target]):
                lost.append(f"{page.relative_to(site)}: {link}")
    assert lost == []


def test_search_knows_what_pages_say(site: Path) -> None:
    index = (site / "searchindex.js").read_text()
    assert '"docnames"' in index or "docnames" in index
    assert "propensity" in index
