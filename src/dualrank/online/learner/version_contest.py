"""Versions held against each other by held-out clicks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dualrank.errors import DataError
from dualrank.learning.model import Model
from dualrank.online.learner.gate import SURE, Gate, Judged
from dualrank.online.versions import Note, Versions

Standing = Literal["not worse", "worse", "surely worse", "unknown"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class VersionContest:
    """What the clicks of a gate say of versions; without a gate they say nothing yet."""

    versions: Versions
    gate: Gate | None
    load: Callable[[int], Model]

    def better_than_live(self, note: Note) -> tuple[int, str] | None:
        """A version that could follow the live one, which is surely worse, and that in words."""
        for other in rivals(self.versions, note):
            judged = self._judged(note.live, other)
            if judged is not None and judged.is_worse(SURE):
                return other, f"it is worse: {judged.said(f'version {other}')}"
        return None

    def standing(self, candidate: int, note: Note) -> tuple[Standing, str]:
        """How a candidate stands beside what is live and the anchor, and that in a sentence."""
        if self.gate is None:
            return "unknown", "no clicks are held out yet to compare by"
        said = []
        for other in dict.fromkeys([note.live, anchor(self.versions, note) or note.live]):
            try:
                judged = self._judge(self.gate, candidate, other)
            except DataError as error:
                return "unknown", f"it cannot be compared with version {other}: {error}"
            words = judged.said(f"version {other}")
            if not judged.can_tell:
                return "unknown", words
            if judged.is_worse():
                surely = judged.is_worse(SURE)
                return "surely worse" if surely else "worse", f"worse {words}"
            said.append(words)
        return "not worse", f"not worse {'; '.join(said)}"

    def is_new_anchor(self, number: int, note: Note) -> bool:
        """Whether a version is live, and clearly better than the anchor where one stands."""
        if self.gate is None or number != note.live or note.anchor == number:
            return False
        other = anchor(self.versions, note)
        if other is None:
            return True
        judged = self._judged(number, other)
        return judged is not None and judged.is_better()

    def _judged(self, number: int, other: int) -> Judged | None:
        """One version against another; nothing where it cannot be told."""
        if self.gate is None:
            return None
        try:
            return self._judge(self.gate, number, other)
        except DataError as error:
            logger.error("version %d cannot be compared: %s", number, error)
            return None

    def _judge(self, gate: Gate, number: int, other: int) -> Judged:
        """One version against another; a DataError where one of them cannot score what is there."""
        ours, theirs = (self.load(each).predict(gate.dataset) for each in (number, other))
        return gate.judge(ours, theirs)


def rivals(versions: Versions, note: Note) -> list[int]:
    """Versions that could follow the live one: the one before it, and the anchor."""
    both = dict.fromkeys([versions.before(note), anchor(versions, note)])
    return [number for number in both if number is not None and number != note.live]


def anchor(versions: Versions, note: Note) -> int | None:
    """The anchor, where it still stands: what was taken back is nothing to be held against."""
    number = note.anchor
    if number is None or note.versions[number].state not in ("live", "replaced"):
        return None
    return number if versions.has(number) else None
