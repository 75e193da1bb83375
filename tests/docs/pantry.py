"""What `pantry.sh` makes, and which of it the blocks of a page need."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

INSTEAD = {
    "service.md": {"model": "two"},  # requests there have two features
    "interleaving.md": {"clicks.parquet": "served.parquet"},
}
"""What a page gets under another's name."""
_MAKES = re.compile(
    r"(--(out|append|figure)|generate|generate-web|mkdir( -p)?|serve \S+ --events) +$"
)


def take(pantry: Path, page: str, code: str, folder: Path) -> None:
    """Copy into a folder what this code uses before it makes it, if it makes it at all."""
    for made in pantry.iterdir():
        name = f"{made.name}/" if made.is_dir() else rf"{made.name}\b"
        used = re.search(rf"(?<![\w/.-]){name}", code)
        if used and not _MAKES.search(code[: used.start()]):
            given = pantry / INSTEAD.get(page, {}).get(made.name, made.name)
            copy = shutil.copytree if made.is_dir() else shutil.copy
            copy(given, folder / made.name)
