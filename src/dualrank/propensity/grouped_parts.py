"""A log in parts, cut into groups that can be resampled, of which one part is counted at a time.

All sessions of a query are in one part, so that what is summed over pairs and queries is summed
within parts, and statistics of groups add up over them: they take the memory of groups times
positions, whatever the size of the log. Shards come with the sums of every pair at every position;
whoever needs no more never reads a list, and 100 million sessions cost what their distinct pairs
and positions do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.models.counting import MOST_SESSIONS, tally
from dualrank.data.click_log import ClickLog
from dualrank.data.lists import RankedLists
from dualrank.data.log_parts import LogPart, LogParts, PairSums
from dualrank.data.shards.sharded_log import ShardedLog
from dualrank.errors import DataError
from dualrank.propensity.grouped_clicks import (
    Cells,
    GroupedClicks,
    Over,
    Sums,
    group_count,
    group_draw,
    groups_of_queries,
    over_what,
    shown_queries,
    unclicked,
)


@dataclass(frozen=True, eq=False)
class GroupedParts:
    """The clicks of a log in parts, by groups that run through all of them.

    `before` counts the queries in the parts before each: groups have equally many of them.
    """

    log: LogParts
    over: Over
    group_count: int
    before: tuple[int, ...]
    seed: int = 0

    @classmethod
    def of(
        cls, log: LogParts, over: Literal["auto", "queries", "sessions"] = "auto", seed: int = 0
    ) -> GroupedParts:
        """Cut a log into groups; `auto` takes queries where there are at least ten."""
        if log.sessions > MOST_SESSIONS:
            raise DataError(f"the log counts {log.sessions:.3g} sessions: its counts are damaged")
        if log.sessions == 0:
            raise DataError("the log has no session that could be counted")
        queries = [_query_count(part) for part in log]
        over = over_what(over, sum(queries))
        groups = group_count(log.depth, over, sum(queries), log.sessions)
        before = np.append(0, np.cumsum(queries)[:-1]).tolist()
        return cls(log, over, groups, tuple(before), seed)

    def __iter__(self) -> Iterator[GroupedClicks]:
        for part, before in zip(self.log, self.before, strict=True):
            if self.over == "queries" and part.sums is not None:
                yield SummedClicks(
                    part, part.sums(), self.depth, self.group_count, self.seed, before
                )
            else:
                yield GroupedClicks.in_groups(
                    part.log,
                    self.over,
                    self.group_count,
                    seed=self.seed,
                    number=part.number,
                    before=before,
                )

    def total(self, count: Callable[[GroupedClicks], Sums]) -> Sums:
        """What `count` finds, added up over the parts."""
        parts = iter(self)
        sums = [np.array(each) for each in count(next(parts))]
        for part in parts:
            for whole, found in zip(sums, count(part), strict=True):
                whole += found
        return tuple(sums)

    @property
    def depth(self) -> int:
        """The longest list that was shown."""
        return self.log.depth

    @property
    def session_count(self) -> int:
        """Sessions of all groups."""
        return self.log.sessions

    @cached_property
    def impressions(self) -> NDArray[np.int64]:
        """Sessions that showed anything at each position."""
        (found,) = self.total(lambda part: (part.impressions,))
        return found

    def unclicked(self, k: int) -> str:
        """That position k (from 0) has no click, in words."""
        return unclicked(self.impressions, k)


Grouped = GroupedClicks | GroupedParts


def grouped_clicks(
    log: ClickLog | ShardedLog | LogParts,
    over: Literal["auto", "queries", "sessions"] = "auto",
    seed: int = 0,
) -> Grouped:
    """Count a log by groups, in one piece where it is in memory anyway."""
    parts = LogParts.of(log)
    if parts.sharded is None:
        return GroupedClicks.of(parts.read(), over, seed)
    return GroupedParts.of(parts, over, seed)


class SummedClicks(GroupedClicks):
    """A part of which an engine has summed the pairs: its lists are counted if somebody asks."""

    _part: LogPart
    _sums: PairSums
    _depth: int
    _seed: int
    _before: int

    def __init__(
        self, part: LogPart, sums: PairSums, depth: int, groups: int, seed: int, before: int
    ) -> None:
        own = {"_part": part, "_sums": sums, "_depth": depth, "_seed": seed, "_before": before}
        # A frozen value is filled by its own methods only.
        self.__dict__.update(own, group_count=groups, over="queries")

    @cached_property
    def _counted(self) -> GroupedClicks:
        return GroupedClicks.in_groups(
            self._part.log,
            "queries",
            self.group_count,
            seed=self._seed,
            number=self._part.number,
            before=self._before,
        )

    @cached_property
    def lists(self) -> RankedLists:
        """What was displayed."""
        return self._part.log.lists

    @property
    def list_of(self) -> NDArray[np.int64]:
        """The list of each row."""
        return self._counted.list_of

    @property
    def group(self) -> NDArray[np.int32]:
        """The group of each row."""
        return self._counted.group

    @property
    def sessions(self) -> NDArray[np.int64]:
        """The sessions of each row."""
        return self._counted.sessions

    @property
    def clicks(self) -> NDArray[np.int64]:
        """The clicks of each row by position."""
        return self._counted.clicks

    @property
    def depth(self) -> int:
        """The longest list that was shown."""
        return self._depth

    @property
    def session_count(self) -> int:
        """Sessions of all groups."""
        return int(self._part.sessions)

    @property
    def impressions(self) -> NDArray[np.int64]:
        """Sessions that showed anything at each position."""
        return self.shown_by_group.sum(axis=0).astype(np.int64)

    @property
    def clicks_by_group(self) -> NDArray[np.float64]:
        """Clicks at each position, `[group, position]`."""
        return self._by_group(self.cells.clicks)

    @property
    def shown_by_group(self) -> NDArray[np.float64]:
        """Sessions that showed anything at each position, `[group, position]`."""
        return self._by_group(self.cells.impressions)

    def _by_group(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        shape = self.group_count, self.depth
        place = self.cells.group.astype(np.int64) * self.depth + self.cells.position
        return tally(place, values, shape[0] * shape[1]).reshape(shape)

    @cached_property
    def cells(self) -> Cells:
        """The log as query–document pairs at positions."""
        document, place, sessions, clicks = self._sums.rows.T
        queries, query_of = np.unique(self._sums.queries, return_inverse=True)
        of_query = groups_of_queries(
            len(queries), self.group_count, self._before, group_draw(self._seed, self._part.number)
        )
        shown, clicked = sessions.astype(np.float64), clicks.astype(np.float64)
        return Cells(
            self.depth,
            np.array(document),
            place - 1,
            shown,
            clicked,
            np.arange(len(shown), dtype=np.int32),
            of_query[query_of].astype(np.int32, copy=False),
            shown,
            clicked,
        )


def _query_count(part: LogPart) -> int:
    """How many queries of a part have sessions."""
    if part.sums is None:
        return len(shown_queries(part.log))
    # Every list of a shard was shown, and shows a document.
    return len(np.unique(part.sums().queries))
