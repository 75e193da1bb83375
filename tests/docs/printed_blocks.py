"""The blocks of shell and Python that the pages print, and which of them are run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
MARKS = {
    "own": re.compile(r"# on your own \w+"),
    "long": re.compile(r"# takes (about )?([\w.]+ )?(minute|hour|day)s?\b"),
    "installs": re.compile(r"# installs\b"),
}
"""What a block begins with that is only parsed."""
INSTALLS = re.compile(r"^(pip install|python3? -m venv|git clone|make|docker) ", re.M)
"""Commands by which a block installs, marked or not."""


@dataclass(frozen=True)
class Block:
    """A block of a page, with the line that its first line stands on."""

    page: Path
    line: int
    kind: str
    text: str

    @property
    def mark(self) -> str | None:
        """Why it is not run, if it is not."""
        first = self.text.partition("\n")[0]
        marked = next((name for name, mark in MARKS.items() if mark.match(first)), None)
        return marked or ("installs" if INSTALLS.search(self.text) else None)

    @property
    def code(self) -> str:
        """As Python, on the line where it stands in the page, without prompts and outputs."""
        text = self.text
        if self.kind == "pycon":
            shown = [each for each in text.splitlines() if each.startswith((">>> ", "... "))]
            text = "\n".join(each[4:] for each in shown)
        return "\n" * (self.line - 1) + text

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@cache
def blocks(page: Path) -> list[Block]:
    """The blocks of shell and Python of a page."""
    found = []
    text = page.read_text(encoding="utf-8")
    for fence in re.finditer(r"^( *)```(sh|bash|python|pycon)\n(.*?)^\1```$", text, re.M | re.S):
        indent, kind, inside = fence.groups()
        inside = re.sub(f"^{indent}", "", inside, flags=re.M)
        found.append(Block(page, text.count("\n", 0, fence.start()) + 2, kind, inside))
    return found
