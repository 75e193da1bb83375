"""What came of all mutations: kept line by line, so that an interrupted attack goes on."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter, defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .attack import FAULTS, HELD, Verdict

KEPT_PER_PLACE = 3
"""Of the files that show a fault at one place."""
_ROOT = Path(__file__).parents[2]


class Account:
    """The verdicts in `outcomes.jsonl`, and under `faults/` the files that were not withstood."""

    def __init__(self, out: Path) -> None:
        self.path = out / "outcomes.jsonl"
        self._kept = out / "faults"
        self.rows: dict[tuple[str, int], dict[str, Any]] = {}
        self._places: Counter[tuple[str, str]] = Counter()
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self._head, *rows = map(_row, lines or ["{}"])
        for row in rows:
            if row is not None:
                self._note(row)

    def begin(self, seed: int) -> bool:
        """Go on, or begin anew if what is there came of other sources or of another seed."""
        head = {"seed": seed, "sources": _sources()}
        if self._head == head:
            with self.path.open("a") as file:
                file.write("\n")  # the last line may have been cut by a kill
            return False
        self.rows.clear()
        self._places.clear()
        shutil.rmtree(self._kept, ignore_errors=True)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(head) + "\n")
        return True

    def add(self, name: str, number: int, verdict: Verdict, folder: Path) -> None:
        """Note a verdict; of a fault the file is kept as well."""
        row = {"format": name, "number": number, **asdict(verdict)}
        self._note(row)
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        if verdict.outcome in FAULTS and self._places[name, verdict.place] <= KEPT_PER_PLACE:
            shutil.copytree(folder, self._kept / name / str(number), dirs_exist_ok=True)

    def _note(self, row: dict[str, Any]) -> None:
        self.rows[row["format"], row["number"]] = row
        if row["outcome"] in FAULTS:
            self._places[row["format"], row["place"]] += 1

    @property
    def faults(self) -> int:
        """How many mutations were not withstood."""
        return self._places.total()

    def table(self) -> str:
        """Formats by what came of their mutations, as Markdown."""
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for (name, _), row in self.rows.items():
            counts[name][row["outcome"]] += 1
        total: Counter[str] = sum(counts.values(), Counter())
        lines = [
            "| format | mutations | same | other | refused | faults |",
            "|---|---:|---:|---:|---:|---:|",
        ]
        for name, found in [*counts.items(), (f"{len(counts)} formats", total)]:
            held = [f"{found[outcome]:,}" for outcome in HELD]
            faults = sum(found[outcome] for outcome in FAULTS)
            lines.append(f"| {name} | {found.total():,} | {' | '.join(held)} | {faults:,} |")
        return "\n".join(lines) + "\n"

    def places(self) -> str:
        """Faults by their place, most frequent first, as Markdown; nothing if there are none."""
        groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for row in self.rows.values():
            if row["outcome"] in FAULTS:
                groups[row["outcome"], row["place"]].append(row)
        lines = []
        for (outcome, place), rows in sorted(groups.items(), key=lambda each: -len(each[1])):
            names = ", ".join(
                f"{name} {n}" for name, n in Counter(r["format"] for r in rows).items()
            )
            first = rows[0]
            said = first["sentence"].replace("\n", "⏎")[:160]
            shown = f"{first['format']}:{first['number']}"
            lines.append(f"- **{len(rows)} {outcome}**: {place} ({names}); `{shown}`: {said!r}")
        return "\n".join(lines) + "\n" if lines else ""


def _row(line: str) -> dict[str, Any] | None:
    """A line of the account; None of one that is empty or was cut by a kill."""
    try:
        row: dict[str, Any] = json.loads(line)
    except ValueError:
        return None
    return row


def _sources() -> str:
    """A digest of everything that an outcome depends on."""
    digest = hashlib.sha256()
    for folder in (_ROOT / "src", _ROOT / "tests" / "fuzz"):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
