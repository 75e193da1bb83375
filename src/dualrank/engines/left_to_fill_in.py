"""A second file beside an export, which waits for what only its user knows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dualrank.storage import write_text

NAMED = 5
"""How many of the things that a file lacks are named."""


@dataclass(frozen=True)
class Template:
    """The file, and what it lacks of what the model needs.

    One that is there already is left alone: somebody may have put their queries in.
    """

    path: Path
    is_new: bool
    lacks: Sequence[str] = ()

    @classmethod
    def write(
        cls, out: Path, ending: str, text: str, lacking: Callable[[str], Sequence[str]]
    ) -> Template:
        """model.featureset.json beside model.json; `lacking` says what a text lacks."""
        path = out.with_name(f"{out.stem}.{ending}")
        if path.exists():
            kept = path.read_text(encoding="utf-8-sig", errors="replace")
            return cls(path, False, lacking(kept))
        write_text(path, text)
        return cls(path, True)

    def sentence(self, content: str) -> str:
        """That the file has the content, or what it lacks of it."""
        name = self.path.name
        if self.is_new:
            return f"{name} has {content}"
        if not self.lacks:
            return f"{name} was there and was kept; it has {content}"
        more = len(self.lacks) - NAMED
        rest = f" and {more} more" if more > 0 else ""
        return (
            f"{name} was there and was kept, and lacks {', '.join(self.lacks[:NAMED])}{rest}: "
            "add them, or remove the file and export again"
        )


def features_by_name(text: str) -> dict[str, dict[str, Any]]:
    """All objects with a name in JSON, however it is laid out; none if it is no JSON."""
    found: dict[str, dict[str, Any]] = {}

    def note(each: dict[str, Any]) -> dict[str, Any]:
        if isinstance(each.get("name"), str):
            found[each["name"]] = each
        return each

    try:
        json.loads(text, object_hook=note)
    except (RecursionError, ValueError):
        return {}
    return found
