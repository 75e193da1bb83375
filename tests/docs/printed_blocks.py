"""The blocks of shell and Python in pages, the cells of notebooks, and which of them are run."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
NOTEBOOKS = sorted(ROOT.glob("docs/notebooks/*.ipynb"))
MARKS = {
    "own": re.compile(r"# on your own \w+"),
    "long": re.compile(r"# takes (about )?([\w.]+ )?(minute|hour|day)s?\b"),
    "installs": re.compile(r"# installs\b"),
}
"""First lines of blocks that are only parsed."""
INSTALLS = re.compile(r"^(pip install|python3? -m venv|git clone|make|docker) ", re.M)
"""Commands by which a block installs, marked or not."""


@dataclass(frozen=True)
class Block:
    """A block of a page with its first line, or a cell of a notebook with its number."""

    page: Path
    number: int
    kind: str
    text: str

    @property
    def mark(self) -> str | None:
        """Return why the block is not run, or None if it is; every cell is."""
        if self.kind == "cell":
            return None
        first = self.text.partition("\n")[0]
        marked = next((name for name, mark in MARKS.items() if mark.match(first)), None)
        return marked or ("installs" if INSTALLS.search(self.text) else None)

    @property
    def code(self) -> str:
        """Return the code without prompts and outputs, on the lines that it has in the page."""
        if self.kind == "cell":
            return self.text
        text = self.text
        if self.kind == "pycon":
            shown = [each for each in text.splitlines() if each.startswith((">>> ", "... "))]
            text = "\n".join(each[4:] for each in shown)
        return "\n" * (self.number - 1) + text

    def __str__(self) -> str:
        cell = "cell " if self.kind == "cell" else ""
        return f"{self.page.relative_to(ROOT)}:{cell}{self.number}"


@cache
def blocks(page: Path) -> list[Block]:
    """Return the blocks of shell and Python of a page, or the cells of a notebook."""
    found = []
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        cells = enumerate(json.loads(text)["cells"], 1)
        codes = [(n, "".join(cell["source"])) for n, cell in cells if cell["cell_type"] == "code"]
        return [Block(page, number, "cell", code) for number, code in codes]
    for fence in re.finditer(r"^( *)```(sh|bash|python|pycon)\n(.*?)^\1```$", text, re.M | re.S):
        indent, kind, inside = fence.groups()
        inside = re.sub(f"^{indent}", "", inside, flags=re.M)
        found.append(Block(page, text.count("\n", 0, fence.start()) + 2, kind, inside))
    return found
