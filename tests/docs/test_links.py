"""Links of the pages at the root of the repository; those of the site are checked by its build."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """What headings are called in links, as forges make it of them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text).strip().lower().replace(" ", "-") for text in headings}


@pytest.mark.parametrize("name", sorted(page.name for page in ROOT.glob("*.md")))
def test_links_lead_somewhere(name: str) -> None:
    lost = []
    for link in LINK.findall((ROOT / name).read_text(encoding="utf-8")):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = ROOT / path if path else ROOT / name
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)
    assert lost == []
