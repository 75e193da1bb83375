"""EM for users who read from the top until they stop (`browsing.Chain`).

Everything above the last click was examined, and every click but the last was followed by further
reading: that part of the log is plain counting, once. Hidden is only how far a user read below
the last click, where nothing was clicked. For that a list needs no patterns, only in how many
sessions its last click was at each rank, and one sweep up and one down the list settle all of
them together: an iteration costs the displayed lists, however many sessions they were displayed in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from dualrank.clicks.models.counting import Floats, PairTrials, own, pair_count, per_pair, tally
from dualrank.clicks.models.em import weighted_log
from dualrank.clicks.models.pair_parameter import PairParameter
from dualrank.data.click_log import ClickLog
from dualrank.data.lists import PADDING


@dataclass(frozen=True, eq=False)
class ChainCounts:
    """What chain models count.

    `places[l, k]` says which parameter decides whether a user goes on after a click there: that of
    the document, or that of the rank. Per pair, `clicks` and `skips` are those at or above the last
    click (all of which were examined). Per place, `went_on` are clicks with another click below.
    `tails[l, k]` are sessions whose last click was at rank k (counted from 1; 0: no click).
    """

    documents: NDArray[np.int32]
    lengths: NDArray[np.int64]
    places: NDArray[np.int32]
    clicks: Floats
    skips: Floats
    went_on: Floats
    tails: Floats

    @classmethod
    def of_documents(cls, log: ClickLog) -> ChainCounts:
        """Whether users go on depends on the clicked document."""
        documents = own(log.lists.documents)
        return cls._count(log, documents, documents, pair_count(log))

    @classmethod
    def of_ranks(cls, log: ClickLog) -> ChainCounts:
        """Whether users go on depends on the clicked rank."""
        depth = log.lists.depth
        documents = own(log.lists.documents)
        ranks = np.broadcast_to(np.arange(depth, dtype=np.int32), documents.shape)
        return cls._count(log, documents, np.ascontiguousarray(ranks), depth)

    @classmethod
    def _count(
        cls,
        log: ClickLog,
        documents: NDArray[np.int32],
        places: NDArray[np.int32],
        place_count: int,
    ) -> ChainCounts:
        depth, lists = log.lists.depth, len(log.lists)
        last = np.zeros(len(log.counts), dtype=np.int64)
        for k, clicked in enumerate(log.clicks.T):
            last[clicked] = k + 1
        followed, skipped = np.zeros((lists, depth)), np.zeros((lists, depth))
        for k, clicked in enumerate(log.clicks.T):
            above = last > k + 1
            for sums, rows in ((followed, above & clicked), (skipped, above & ~clicked)):
                sums[:, k] = tally(log.list_of[rows], log.counts[rows], lists)
        tails = tally(
            log.list_of.astype(np.int64) * (depth + 1) + last, log.counts, lists * (depth + 1)
        ).reshape(lists, depth + 1)
        mask = documents != PADDING
        return cls(
            documents,
            mask.sum(axis=1),
            places,
            per_pair(log, log.clicks_per_list),
            per_pair(log, skipped),
            tally(places[mask], followed[mask], place_count),
            tails,
        )

    def without_clicks(self) -> Floats:
        """Per pair, sessions that showed it and had no click at all."""
        mask = np.arange(self.documents.shape[1]) < self.lengths[:, None]
        sessions = np.broadcast_to(self.tails[:, :1], mask.shape)
        return tally(self.documents[mask], sessions[mask], len(self.clicks))

    def until_last_click(self) -> PairTrials:
        """Per pair, clicks and displays, as if all users left at their last click."""
        return PairTrials(self.clicks, self.clicks + self.skips + self.without_clicks())

    def last_clicks(self) -> Floats:
        """Per place, clicks that were the last of their session."""
        mask = np.arange(self.documents.shape[1]) < self.lengths[:, None]
        return tally(self.places[mask], self.tails[:, 1:][mask], len(self.went_on))

    def attraction(self, values: Floats, hidden: Expected, unseen: float) -> PairParameter:
        """Attraction with its evidence: clicks and skips, those below the last click by w."""
        return PairParameter.from_examinations(
            values, self.clicks, self.skips + hidden.skips, self.skips + hidden.squares, unseen
        )


@dataclass(frozen=True, eq=False)
class Expected:
    """What the E step makes of the hidden part.

    Per pair, `skips` and `squares` are Σ w and Σ w² over skips below the last click, where w is how
    likely the user read so far. Per place, last clicks after which the user read on in vain, or
    stopped; the same after skips. Nobody can go on after the end of the list.

    `reasons` and `reason_squares` are Σ y and Σ y² over last clicks, y = h (1 − β) / (1 − h + h β)
    with h how likely users go on there and β that no click follows if they do: y is how fast the
    silence below becomes less likely as h grows, so it says how much the silence tells of h.
    """

    skips: Floats
    squares: Floats
    went_on: Floats
    stopped: Floats
    reasons: Floats
    reason_squares: Floats
    skip_went_on: float
    skip_stopped: float
    log_likelihood: float


def expect(
    counts: ChainCounts, attraction: Floats, after_click: Floats, after_skip: float
) -> Expected:
    """The E step; `after_click` is per place."""
    parts = _sweep(
        counts.documents,
        counts.lengths,
        counts.places,
        counts.tails,
        attraction,
        after_click,
        after_skip,
    )
    known = weighted_log(counts.clicks, attraction) + weighted_log(counts.skips, 1 - attraction)
    known += weighted_log(counts.went_on, after_click)
    skips = counts.skips.sum()
    if skips > 0:
        known += skips * math.log(after_skip)
    return Expected(*parts[:-1], parts[-1] + known)


@numba.njit(cache=True)
def _sweep(
    documents: NDArray[np.int32],
    lengths: NDArray[np.int64],
    places: NDArray[np.int32],
    tails: Floats,
    attraction: Floats,
    after_click: Floats,
    after_skip: float,
) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats, float, float, float]:
    skips, squares = np.zeros(len(attraction)), np.zeros(len(attraction))
    went_on, stopped = np.zeros(len(after_click)), np.zeros(len(after_click))
    reasons, reason_squares = np.zeros(len(after_click)), np.zeros(len(after_click))
    skip_went_on = skip_stopped = log_likelihood = 0.0
    silence = np.empty(documents.shape[1])
    for row in range(len(documents)):
        end = lengths[row] - 1
        if end < 0:
            continue
        # Up: P(no click from k on | k is examined).
        silence[end] = 1.0 - attraction[documents[row, end]]
        for k in range(end - 1, -1, -1):
            below = 1.0 - after_skip + after_skip * silence[k + 1]
            silence[k] = (1.0 - attraction[documents[row, k]]) * below
        # Down: expected sessions in which k was examined below the last click.
        reading = reading_squared = tails[row, 0]
        if reading > 0:
            log_likelihood += reading * math.log(silence[0])
        for k in range(end + 1):
            skips[documents[row, k]] += reading
            squares[documents[row, k]] += reading_squared
            if k == end:
                break
            onward = after_skip * silence[k + 1]
            share = onward / (1.0 - after_skip + onward) if onward > 0 else 0.0
            skip_went_on += reading * share
            skip_stopped += reading * (1.0 - share)
            reading *= share
            reading_squared *= share * share
            ended = tails[row, k + 1]
            if ended > 0:
                place = places[row, k]
                onward = after_click[place] * silence[k + 1]
                quiet = 1.0 - after_click[place] + onward
                share = onward / quiet if onward > 0 else 0.0
                went_on[place] += ended * share
                stopped[place] += ended * (1.0 - share)
                reason = (after_click[place] - onward) / quiet
                reasons[place] += ended * reason
                reason_squares[place] += ended * reason * reason
                reading += ended * share
                reading_squared += ended * share * share
                log_likelihood += ended * math.log(quiet)
    return (
        skips,
        squares,
        went_on,
        stopped,
        reasons,
        reason_squares,
        skip_went_on,
        skip_stopped,
        log_likelihood,
    )
