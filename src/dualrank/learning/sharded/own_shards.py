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

from dualrank.data.lists import PADDING
from dualrank.data.shards.shard import Shard

LISTS_PER_BLOCK = 1 << 20
ROWS_PER_BLOCK = 1 << 16

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
class Part:
    """The tickets that fall into one shard: `places` in the batch, and the sessions they are."""

    shard: Shard
    places: NDArray[np.intp]
    sessions: Whole


@dataclass(frozen=True, eq=False)
class Drawn:
    """The lists that tickets fell on, with what their sessions did: means over those of each list.

    `lists` are their numbers within their shards, -1 where a shard is another worker's: such a list
    has no documents here. What was `examined` is all down to a session's last click, and everything
    where there is none. `documents` are rows of the shard's own features.
    """

    parts: Sequence[Part]
    lists: NDArray[np.int64]
    documents: NDArray[np.int32]
    clicks: NDArray[np.float32]
    examined: NDArray[np.float32]
    contexts: NDArray[np.int32]


class OwnShards:
    """The shards of this worker among all: `left[s]` sessions of shard s can be drawn."""

    def __init__(self, shards: Sequence[Shard], gaps: Sequence[Gaps], left: Whole) -> None:
        self.shards = tuple(shards)
        self._own = {shard.number: (shard, gap) for shard, gap in zip(shards, gaps, strict=True)}
        self._ends = np.cumsum(left)

    @property
    def sessions(self) -> int:
        """How many can be drawn, from the shards of all workers."""
        return int(self._ends[-1])

    def read(self, tickets: Whole, context: str | None = None) -> Drawn:
        """The lists of the tickets that fall into shards of this worker, each shard read through.

        With a `context`, a list speaks for its sessions in one context: that of the ticket's, if
        the sessions of a list stand in the order of their contexts.
        """
        size, depth = len(tickets), self.shards[0].depth
        drawn = Drawn(
            list(self._parts(tickets)),
            np.full(size, -1, np.int64),
            np.full((size, depth), PADDING, np.int32),
            np.zeros((size, depth), np.float32),
            np.zeros((size, depth), np.float32),
            np.zeros(size, np.int32),
        )
        for part in drawn.parts:
            shard, log = part.shard, part.shard.log
            codes, contexts = log.list_of, 0
            if context is not None:
                codes, contexts = log.columns[context].codes, len(shard.columns[context])
            _read_lists(
                part.sessions,
                part.places,
                shard.cumulative,
                shard.starts,
                log.lists.documents,
                log.clicks,
                log.counts,
                codes,
                contexts,
                drawn.lists,
                drawn.documents,
                drawn.clicks,
                drawn.examined,
                drawn.contexts,
            )
        return drawn

    def _parts(self, tickets: Whole) -> Iterator[Part]:
        order = np.argsort(tickets, kind="stable")
        shard_of = np.searchsorted(self._ends, tickets[order], side="right")
        numbers, begins = np.unique(shard_of, return_index=True)
        for number, places in zip(numbers.tolist(), np.split(order, begins[1:]), strict=True):
            if number in self._own:
                shard, gaps = self._own[number]
                before = self._ends[number - 1] if number else 0
                yield Part(shard, places, gaps.sessions_at(tickets[places] - before))


@numba.njit(cache=True, nogil=True)
def _read_lists(
    sessions: NDArray[np.int64],
    places: NDArray[np.intp],
    cumulative: NDArray[np.int64],
    starts: NDArray[np.int64],
    shown: NDArray[np.int32],
    clicks: NDArray[np.bool_],
    counts: NDArray[np.int64],
    codes: NDArray[np.int32],
    contexts: int,
    lists: NDArray[np.int64],
    documents: NDArray[np.int32],
    means: NDArray[np.float32],
    examined: NDArray[np.float32],
    context_of: NDArray[np.int32],
) -> None:
    """Fill in what is drawn from one shard, from the rows of its lists."""
    depth = clicks.shape[1]
    clicked, ended = np.zeros(depth), np.zeros(depth)
    of_context = np.zeros(max(contexts, 1), np.int64)
    for i in range(len(sessions)):
        place = places[i]
        number = np.searchsorted(cumulative, sessions[i], side="right")
        first, last = starts[number], starts[number + 1]
        lists[place] = number
        wanted = -1
        if contexts > 0:
            of_context[:] = 0
            for row in range(first, last):
                of_context[codes[row]] += counts[row]
            # Sessions from this one to the last of the list, which is in the last context.
            left = cumulative[number] - sessions[i]
            wanted = contexts - 1
            while left > of_context[wanted]:
                left -= of_context[wanted]
                wanted -= 1
            context_of[place] = wanted
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
            documents[place, k] = shown[number, k]
            means[place, k] = clicked[k] / total
            examined[place, k] = reading / total
            reading -= ended[k]


@numba.njit(cache=True, nogil=True)
def copy_rows(
    values: NDArray[np.float32],
    places: NDArray[np.intp],
    documents: NDArray[np.int32],
    row_of: NDArray[np.int32],
    out: NDArray[np.float32],
) -> None:
    """Copy the values of the documents of some lists to the rows that they have in a batch."""
    for i in range(len(places)):
        place = places[i]
        for k in range(documents.shape[1]):
            document, row = documents[place, k], row_of[place, k]
            if document >= 0:
                for column in range(values.shape[1]):
                    out[row, column] = values[document, column]
