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
from dualrank.learning.model import Model
from dualrank.online.learner.gate import Gate
from dualrank.online.learner.laid_out import LaidOut, joined
from dualrank.online.learner.round_clicks import HeldOutQueries, RoundClicks, pooled
from dualrank.propensity.propensity import Propensity

MOST_SESSIONS = 400_000
MOST_LISTS = 40_000
"""Of the last rounds, as many sessions or lists as are remembered; the last round always is."""

Span = tuple[int, int, int]
"""The first and last segment of a round, and the version that scored it before it was learned."""


class RememberedRounds:
    """Rounds in order, the oldest of which are forgotten."""

    def __init__(self) -> None:
        self._rounds: list[RoundClicks] = []
        self._laid: list[LaidOut | None] = []

    def read_again(
        self,
        rounds: Sequence[Span],
        closed: Sequence[int],
        read: Callable[[Sequence[int]], RoundClicks],
        model: Callable[[int], Model],
    ) -> None:
        """Read the last of these rounds; `model` is a version, or what stands for it."""
        sessions = 0
        for first, last, scored_by in reversed(rounds):
            numbers = [number for number in closed if first <= number <= last]
            if sessions >= MOST_SESSIONS or not numbers:
                break
            try:
                found = read(numbers)
                laid = found.laid_out(model(scored_by))
            except DualrankError:
                # Somebody removed or damaged what was learned already: less is remembered.
                break
            self._rounds.insert(0, found)
            self._laid.insert(0, laid)
            sessions += found.sessions
        self._forget()

    def add(self, found: RoundClicks, laid: LaidOut | None) -> None:
        """Remember one more, laid out by a model that has not learned from it."""
        self._rounds.append(found)
        self._laid.append(laid)
        self._forget()

    def since(self, segment: int) -> LaidOut | None:
        """All lists of the rounds that begin with this segment or a later one."""
        return self._of(lambda first: first >= segment)

    def before(self, segment: int) -> LaidOut | None:
        """All lists of the rounds that begin before this segment."""
        return self._of(lambda first: first < segment)

    def _of(self, chosen: Callable[[int], bool]) -> LaidOut | None:
        both = zip(self._rounds, self._laid, strict=True)
        return joined(
            [laid for each, laid in both if laid is not None and chosen(each.segments[0])]
        )

    def gate(
        self, held_out: HeldOutQueries, curve: Propensity | None, changed_at: int
    ) -> Gate | None:
        """What is held out; the curve is that of lists from the segment `changed_at` on."""
        parts: list[tuple[ClickLog, Dataset]] = []
        current: list[NDArray[np.bool_]] = []
        for each in self._rounds:
            held = each.part(held_out, held=True)
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
                gone = len(self._rounds) - kept
                del self._rounds[:gone], self._laid[:gone]
                return
