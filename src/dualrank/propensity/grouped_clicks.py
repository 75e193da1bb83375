"""A log cut into groups that can be resampled: what every estimator counts, counted once.

An estimator maps sums over the log to a curve. A bootstrap resample is then a weighted sum over
groups, whatever the number of sessions: one matrix product of weights and statistics.

A group is one query (all its sessions), because sessions of one query share its documents and
whatever is peculiar to it: the interval then says how the curve would differ had other queries been
asked. Where there are more queries than groups, queries are thrown together at random, which keeps
the variance of every sum and bounds the memory. With fewer than ten queries there is no telling how
others would differ; then a group is a random part of the *sessions*, and the interval says only how
the curve would differ had other people asked the same queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.models.counting import require_countable
from dualrank.data.click_log import ClickLog
from dualrank.data.lists import RankedLists

MOST_GROUPS = 1_000
FEWEST_GROUPS = 50
SESSION_GROUPS = 200
FEWEST_QUERIES = 10
# A statistic may have a number per group and pair of positions; this bounds how many there are.
MOST_NUMBERS = 10_000_000

Over = Literal["queries", "sessions"]
Sums = tuple[NDArray[Any], ...]


@dataclass(frozen=True, eq=False)
class GroupedClicks:
    """Clicks per displayed list and group: row `r` is list `list_of[r]`, seen `sessions[r]` times.

    Where groups are queries every list has one row; where they are sessions it has one for every
    group in which it was shown.
    """

    lists: RankedLists
    list_of: NDArray[np.int64]
    group: NDArray[np.int32]
    sessions: NDArray[np.int64]
    clicks: NDArray[np.int64]
    group_count: int
    over: Over

    @classmethod
    def of(
        cls, log: ClickLog, over: Literal["auto", "queries", "sessions"] = "auto", seed: int = 0
    ) -> GroupedClicks:
        """Count a log by groups; `auto` takes queries where there are at least ten.

        Intervals from ten queries, or from twenty of which four carry the log, were measured to
        hold as often as those from hundreds, with Student's quantile.
        """
        require_countable(log)
        queries = len(shown_queries(log))
        over = over_what(over, queries)
        groups = group_count(log.lists.depth, over, queries, log.sessions)
        return cls.in_groups(log, over, groups, seed=seed)

    @classmethod
    def in_groups(
        cls,
        log: ClickLog,
        over: Over,
        groups: int,
        *,
        seed: int = 0,
        number: int = 0,
        before: int = 0,
    ) -> GroupedClicks:
        """Count the part of this number of a log, which has so many queries in the parts before.

        A log in one piece is its part 0.
        """
        rng = group_draw(seed, number)
        if over == "sessions":
            return cls._by_session(log, groups, rng)
        queries = shown_queries(log)
        of_query = np.zeros(int(log.lists.queries.max(initial=-1)) + 1, dtype=np.int32)
        of_query[queries] = groups_of_queries(len(queries), groups, before, rng)
        return cls._by_list(log, of_query[log.lists.queries], groups)

    @classmethod
    def _by_list(cls, log: ClickLog, group: NDArray[np.int32], groups: int) -> GroupedClicks:
        shown = np.flatnonzero(log.sessions_per_list)
        sessions, clicks = log.sessions_per_list[shown], log.clicks_per_list[shown]
        return cls(log.lists, shown, group[shown], sessions, clicks, groups, "queries")

    @classmethod
    def _by_session(cls, log: ClickLog, groups: int, rng: np.random.Generator) -> GroupedClicks:
        pattern = np.repeat(np.arange(len(log.counts)), log.counts)
        place = log.list_of[pattern].astype(np.int64) * groups
        place += rng.integers(groups, size=len(pattern))
        key, row = np.unique(place, return_inverse=True)
        # Position by position, which needs no matrix of all sessions.
        columns = [np.bincount(row[on[pattern]], minlength=len(key)) for on in log.clicks.T]
        clicks, sessions = np.stack(columns, axis=1), np.bincount(row)
        group = (key % groups).astype(np.int32)
        return cls(log.lists, key // groups, group, sessions, clicks, groups, "sessions")

    def part(self, rows: ClickLog, seed: int = 0) -> GroupedClicks:
        """Some rows of the same log, over the same lists, by the same groups of queries.

        Groups of sessions are drawn anew: parts share no session.
        """
        if self.over == "sessions":
            return GroupedClicks.of(rows, "sessions", seed)
        of_list = np.zeros(len(self.lists), dtype=np.int32)
        of_list[self.list_of] = self.group
        return self._by_list(rows, of_list, self.group_count)

    def __iter__(self) -> Iterator[GroupedClicks]:
        """The parts of the log: this is the only one."""
        yield self

    def total(self, count: Callable[[GroupedClicks], Sums]) -> Sums:
        """What `count` finds, added up over the parts of the log, of which this is the only one.

        An estimator that counts so works on logs in shards too (`GroupedParts`).
        """
        return count(self)

    @property
    def depth(self) -> int:
        """The longest list that was shown."""
        return self.lists.depth

    @property
    def session_count(self) -> int:
        """Sessions of all groups."""
        return int(self.sessions.sum())

    @cached_property
    def mask(self) -> NDArray[np.bool_]:
        """True where a row's list shows a document."""
        return self.lists.mask[self.list_of]

    @cached_property
    def impressions(self) -> NDArray[np.int64]:
        """Sessions that showed anything at each position."""
        return self.sessions @ self.mask

    @property
    def clicks_by_group(self) -> NDArray[np.float64]:
        """Clicks at each position, `[group, position]`."""
        return self.sum_by_group(self.clicks)

    @property
    def shown_by_group(self) -> NDArray[np.float64]:
        """Sessions that showed anything at each position, `[group, position]`."""
        return self.sum_by_group(self.mask * self.sessions[:, None])

    @cached_property
    def cells(self) -> Cells:
        """The log as query–document pairs at positions."""
        return Cells.of(self)

    def unclicked(self, k: int) -> str:
        """That position k (from 0) has no click, in words."""
        return unclicked(self.impressions, k)

    def sum_by_group(self, values: NDArray[np.number]) -> NDArray[np.float64]:
        """Rows by positions, summed into groups by positions."""
        return np.stack(
            [np.bincount(self.group, column, self.group_count) for column in values.T], axis=1
        )


@dataclass(frozen=True, eq=False)
class Cells:
    """Every query–document pair at every position at which it was shown, ordered by both.

    `document`, `position` (from 0), `impressions` and `clicks` are per cell. Entry `e` is what
    group `group[e]` adds to cell `cell[e]`: where groups are queries, each cell has one entry.
    """

    depth: int
    document: NDArray[np.int64]
    position: NDArray[np.int64]
    impressions: NDArray[np.float64]
    clicks: NDArray[np.float64]
    cell: NDArray[np.int32]
    group: NDArray[np.int32]
    shown: NDArray[np.float64]
    clicked: NDArray[np.float64]

    @classmethod
    def of(cls, grouped: GroupedClicks) -> Cells:
        """Count pairs at positions."""
        row, position = (index.astype(np.int32) for index in np.nonzero(grouped.mask))
        documents = grouped.lists.documents[grouped.list_of[row], position].astype(np.int64)
        place = documents * grouped.depth + position
        del documents
        shown = grouped.sessions[row].astype(np.float64)
        clicked = grouped.clicks[row, position].astype(np.float64)
        impressions = np.bincount(place, shown).astype(np.float64)
        clicks = np.bincount(place, clicked).astype(np.float64)
        places = np.flatnonzero(impressions)
        index = np.zeros(len(impressions), dtype=np.int32)
        index[places] = np.arange(len(places))
        cell, group = index[place], grouped.group[row]
        del row, position, place, index
        if grouped.over == "queries":
            # A pair belongs to one query, so that its sums are those of the query's group.
            of_cell = np.zeros(len(places), dtype=np.int32)
            of_cell[cell] = group
            cell, group = np.arange(len(places), dtype=np.int32), of_cell
            shown, clicked = impressions[places], clicks[places]
        return cls(
            grouped.depth,
            places // grouped.depth,
            places % grouped.depth,
            impressions[places],
            clicks[places],
            cell,
            group,
            shown,
            clicked,
        )

    def take(self, chosen: NDArray[np.bool_]) -> Cells:
        """These cells only."""
        index = np.cumsum(chosen, dtype=np.int32) - np.int32(1)
        entries = chosen[self.cell]
        return Cells(
            self.depth,
            self.document[chosen],
            self.position[chosen],
            self.impressions[chosen],
            self.clicks[chosen],
            index[self.cell[entries]],
            self.group[entries],
            self.shown[entries],
            self.clicked[entries],
        )

    @cached_property
    def moved(self) -> Cells:
        """The cells of pairs that were shown at two positions or more."""
        follows = self.document[1:] == self.document[:-1]
        return self.take(np.append(follows, False) | np.append(False, follows))


def shown_queries(log: ClickLog) -> NDArray[np.int32]:
    """The queries that have sessions, in order."""
    seen = np.zeros(len(log.lists), dtype=bool)
    seen[log.list_of[log.counts > 0]] = True
    return np.unique(log.lists.queries[seen])


def over_what(over: Literal["auto", "queries", "sessions"], queries: int) -> Over:
    """What is resampled where a log has so many queries."""
    if over != "auto":
        return over
    return "queries" if queries >= FEWEST_QUERIES else "sessions"


def group_count(depth: int, over: Over, queries: int, sessions: int) -> int:
    """How many groups a log is cut into."""
    most = MOST_GROUPS if over == "queries" else SESSION_GROUPS
    groups = max(FEWEST_GROUPS, min(most, MOST_NUMBERS // depth**2))
    return min(groups, queries if over == "queries" else sessions)


def group_draw(seed: int, number: int) -> np.random.Generator:
    """What is random about the groups of one part of a log."""
    return np.random.default_rng([seed, 0x_6209, number])


def groups_of_queries(
    queries: int, groups: int, before: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    """The groups of the queries of one part, after so many in the parts before.

    Every group gets the same number of queries, give or take one, over all parts.
    """
    order = np.arange(queries) if before + queries <= groups else rng.permutation(queries)
    return ((before + order) % groups).astype(np.int32)


def unclicked(impressions: NDArray[np.int64], k: int) -> str:
    """That position k (from 0) has no click, in words."""
    return f"position {k + 1} was never clicked in {impressions[k]} sessions"
