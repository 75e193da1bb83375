"""The clicks of the last rounds: what versions and curves are compared by.

They lie in the segments, which are never changed, and are read again from there after a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.errors import DualrankError
from dualrank.online.gate import Gate
from dualrank.online.round_clicks import HeldOutQueries, RoundClicks, pooled
from dualrank.propensity.propensity import Propensity

MOST_SESSIONS = 400_000
MOST_LISTS = 40_000
"""Of the last rounds, as many sessions or lists as are remembered; the last round always is."""

Pooled = tuple[ClickLog, Dataset]


class RememberedRounds:
    """Rounds in order, the oldest of which are forgotten."""

    def __init__(self) -> None:
        self._rounds: list[RoundClicks] = []

    def read_again(
        self,
        rounds: Sequence[tuple[int, int]],
        closed: Sequence[int],
        read: Callable[[Sequence[int]], RoundClicks],
    ) -> None:
        """Read the last of these rounds, each given by its first and last segment."""
        sessions = 0
        for first, last in reversed(rounds):
            numbers = [number for number in closed if first <= number <= last]
            if sessions >= MOST_SESSIONS or not numbers:
                break
            try:
                found = read(numbers)
            except DualrankError:
                # Somebody removed or damaged what was learned already: less is remembered.
                break
            self._rounds.insert(0, found)
            sessions += found.sessions
        self._forget()

    def add(self, found: RoundClicks) -> None:
        """Remember one more."""
        self._rounds.append(found)
        self._forget()

    def since(self, segment: int) -> Pooled | None:
        """All lists of the rounds that begin with this segment or a later one."""
        parts = [
            (each.log, each.dataset)
            for each in self._rounds
            if each.log is not None and each.dataset is not None and each.segments[0] >= segment
        ]
        return pooled(parts) if parts else None

    def gate(
        self, held_out: HeldOutQueries, curve: Propensity | None, changed_at: int
    ) -> Gate | None:
        """What is held out; the curve is that of lists from the segment `changed_at` on."""
        parts: list[Pooled] = []
        current: list[NDArray[np.bool_]] = []
        for each in self._rounds:
            held = each.part(held_out)
            if held is not None and each.dataset is not None:
                parts.append((held, each.dataset))
                current.append(np.full(len(held.lists), each.segments[0] >= changed_at))
        if not parts:
            return None
        log, dataset = pooled(parts)
        if curve is not None and (curve.context is not None or curve.depth < log.lists.depth):
            curve = None
        return Gate(log, dataset, curve, np.concatenate(current))

    def _forget(self) -> None:
        sessions = lists = 0
        for kept, each in enumerate(reversed(self._rounds)):
            sessions += each.sessions
            lists += 0 if each.log is None else len(each.log.lists)
            if kept and (sessions > MOST_SESSIONS or lists > MOST_LISTS):
                del self._rounds[: len(self._rounds) - kept]
                return
