"""The shards of one worker, and the lists in them that tickets fall on.

A ticket is the number of a session, counted over all shards. Whatever list a session belongs to is
drawn by its ticket, so that lists come up in proportion to their sessions, exactly as from one log
whose lists stand in the order of the shards. All workers draw the same tickets, and each reads the
lists of those that fall into its own shards.

Sessions of held-out queries have no ticket: they are gaps, which tickets step over. That takes 16
bytes for each run of held-out lists, and nothing for the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from dualrank.data.shards.shard import Shard

LISTS_PER_BLOCK = 1 << 20

Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Gaps:
    """Sessions of a shard that no ticket falls on.

    A ticket that is `at[g]` or more, and less than `at[g + 1]`, stands for the session that lies
    `width[g + 1]` further on.
    """

    at: Whole
    width: Whole

    @classmethod
    def of(cls, shard: Shard, held_out: NDArray[np.bool_]) -> Gaps:
        """Where the sessions of the held-out queries lie."""
        begins, ends = _runs(shard.log.lists.queries, held_out)
        before = np.where(begins > 0, shard.cumulative[begins - 1], 0)
        width = np.append(0, np.cumsum(shard.cumulative[ends - 1] - before)).astype(np.int64)
        return cls(before - width[:-1], width)

    def sessions_at(self, tickets: Whole) -> Whole:
        """The sessions that tickets stand for.

        >>> Gaps(np.array([3]), np.array([0, 2])).sessions_at(np.array([2, 3, 4]))
        array([2, 5, 6])
        """
        return tickets + self.width[np.searchsorted(self.at, tickets, side="right")]


def _runs(
    queries: NDArray[np.int32], chosen: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where neighbouring lists of chosen queries begin and end."""
    edges, inside = list[NDArray[np.intp]](), False
    for start in range(0, len(queries), LISTS_PER_BLOCK):
        held = chosen[queries[start : start + LISTS_PER_BLOCK]]
        edges.append(start + np.flatnonzero(np.diff(held, prepend=inside)))
        inside = bool(held[-1])
    if inside:
        edges.append(np.array([len(queries)]))
    joined = np.concatenate(edges) if edges else np.empty(0, np.intp)
    return joined[::2], joined[1::2]


@dataclass(frozen=True, eq=False)
class Found:
    """The tickets that fall into one shard: `places` in the batch, and the sessions they are."""

    shard: Shard
    places: NDArray[np.intp]
    sessions: Whole


class OwnShards:
    """The shards of this worker among all: `left[s]` sessions of shard s can be drawn."""

    def __init__(self, shards: Sequence[Shard], gaps: Sequence[Gaps], left: Whole) -> None:
        self.shards = tuple(shards)
        self._gaps = dict(zip((shard.number for shard in shards), gaps, strict=True))
        self._own = {shard.number: shard for shard in shards}
        self._ends = np.cumsum(left)

    @property
    def sessions(self) -> int:
        """How many can be drawn, from the shards of all workers."""
        return int(self._ends[-1])

    def find(self, tickets: Whole) -> Iterator[Found]:
        """The tickets that fall into shards of this worker, shard by shard."""
        shard_of = np.searchsorted(self._ends, tickets, side="right")
        order = np.argsort(shard_of, kind="stable")
        numbers, begins = np.unique(shard_of[order], return_index=True)
        for number, places in zip(numbers.tolist(), np.split(order, begins[1:]), strict=True):
            if number in self._own:
                before = self._ends[number - 1] if number else 0
                sessions = self._gaps[number].sessions_at(tickets[places] - before)
                yield Found(self._own[number], places, sessions)


@dataclass(frozen=True, eq=False)
class Labels:
    """What the sessions of some lists did: mean clicks, and what they read, in what context."""

    lists: NDArray[np.intp]
    clicks: NDArray[np.float32]
    examined: NDArray[np.float32]
    contexts: NDArray[np.int32]


def labels_at(shard: Shard, sessions: Whole, context: str | None = None) -> Labels:
    """The lists that sessions belong to, with the means over all sessions of each.

    With a `context`, a list speaks for its sessions in one context: that of the session, if those
    of a list stand in the order of their contexts.
    """
    log, count = shard.log, len(sessions)
    lists = np.searchsorted(shard.cumulative, sessions, side="right")
    codes, contexts = log.list_of, 0
    if context is not None:
        codes, contexts = log.columns[context].codes, len(shard.columns[context])
    found = Labels(
        lists,
        np.empty((count, shard.depth), np.float32),
        np.empty((count, shard.depth), np.float32),
        np.zeros(count, np.int32),
    )
    _read_rows(
        lists,
        sessions,
        shard.cumulative,
        shard.starts,
        log.clicks,
        log.counts,
        codes,
        contexts,
        found.clicks,
        found.examined,
        found.contexts,
    )
    return found


@numba.njit(cache=True, nogil=True)
def _read_rows(
    lists: NDArray[np.int64],
    sessions: NDArray[np.int64],
    cumulative: NDArray[np.int64],
    starts: NDArray[np.int64],
    clicks: NDArray[np.bool_],
    counts: NDArray[np.int64],
    codes: NDArray[np.int32],
    contexts: int,
    means: NDArray[np.float32],
    examined: NDArray[np.float32],
    context_of: NDArray[np.int32],
) -> None:
    """Fill `means`, `examined` and `context_of` from the rows of each list.

    What was examined is all down to the last click, and everything where there is none.
    """
    depth = clicks.shape[1]
    clicked, ended = np.zeros(depth), np.zeros(depth)
    of_context = np.zeros(max(contexts, 1), np.int64)
    for i in range(len(lists)):
        first, last = starts[lists[i]], starts[lists[i] + 1]
        wanted = -1
        if contexts > 0:
            of_context[:] = 0
            for row in range(first, last):
                of_context[codes[row]] += counts[row]
            # Sessions from this one to the last of the list, which is in the last context.
            left = cumulative[lists[i]] - sessions[i]
            wanted = contexts - 1
            while left > of_context[wanted]:
                left -= of_context[wanted]
                wanted -= 1
            context_of[i] = wanted
        clicked[:] = 0.0
        ended[:] = 0.0
        total = 0
        for row in range(first, last):
            if wanted >= 0 and codes[row] != wanted:
                continue
            total += counts[row]
            end = depth - 1
            for k in range(depth):
                if clicks[row, k]:
                    clicked[k] += counts[row]
                    end = k
            ended[end] += counts[row]
        reading = float(total)
        for k in range(depth):
            means[i, k] = clicked[k] / total
            examined[i, k] = reading / total
            reading -= ended[k]


def take_rows(
    values: NDArray[np.float32],
    rows: NDArray[np.integer],
    places: NDArray[np.intp],
    out: NDArray[np.float32],
) -> None:
    """Copy rows of a mapped matrix to their places in another."""
    _take_rows(values, rows, places, out)


@numba.njit(cache=True, nogil=True)
def _take_rows(
    values: NDArray[np.float32],
    rows: NDArray[np.integer],
    places: NDArray[np.intp],
    out: NDArray[np.float32],
) -> None:
    for i in range(len(rows)):
        row, place = rows[i], places[i]
        for k in range(values.shape[1]):
            out[place, k] = values[row, k]
