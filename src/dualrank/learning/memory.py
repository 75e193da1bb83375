"""Lists that a model learned from before, kept so that what is new does not wipe out what is old.

A model that goes on from new clicks alone forgets the queries that are not among them. The memory
holds older lists with what is needed to learn from them once more: the features of their documents
as they were given, mean clicks, and how many sessions each still counts for. It knows no names.

Sessions fade: after n new ones a list counts for 2^(−n/h) of what it did, h being the half-life.
Where there are more lists than it may keep, some are drawn, each with the probability

    π_l = min(1, s_l/τ),        Σ π_l = the number of lists to keep,

of its sessions s_l, and count for s_l/π_l from then on: the expected sum of every gradient stays
what it was (Horvitz and Thompson 1952). Lists without a click have no gradient, so that one list
without documents stands for all of them (and another for those that are settled).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import MOST_SESSIONS, ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import PADDING, RankedLists
from dualrank.learning.feedback import Labelled, LoggedClicks
from dualrank.propensity.propensity import Propensity

LISTS = 20_000
"""How many lists are kept unless something else is said."""
_ROWS_AT_A_TIME = 1 << 14
_KINDS: dict[str, tuple[type[np.generic], int]] = {
    "features": (np.float32, 2),
    "documents": (np.int32, 2),
    "clicks": (np.float32, 2),
    "sessions": (np.float64, 1),
    "settled": (np.float32, 2),
}
_LEAST_LOG = -700.0
"""Of relative examination, whose inverse is still a number."""


@dataclass(frozen=True, eq=False)
class Memory:
    """Lists with mean `clicks` and the `sessions` that each counts for.

    `documents[l, i]` is the row of `features` shown at rank i + 1, or padding. `settled` is the log
    examination that was believed when a list was settled, relative to the first position, and nan
    for lists of which today's belief holds.
    """

    features: NDArray[np.float32]
    documents: NDArray[np.int32]
    clicks: NDArray[np.float32]
    sessions: NDArray[np.float64]
    settled: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.documents)

    def __repr__(self) -> str:
        settled = self.are_settled.sum()
        return (
            f"Memory({len(self)} lists, {self.total:,.0f} sessions, {len(self.features)} documents"
            + (f", {settled} lists settled)" if settled else ")")
        )

    @classmethod
    def of(cls, log: ClickLog, dataset: Dataset) -> Memory:
        """The lists of a log."""
        counts = log.sessions_per_list
        shown = np.flatnonzero(counts)
        documents, sessions = log.lists.documents[shown], counts[shown].astype(np.float64)
        mask = documents != PADDING
        rows, row_of = np.unique(documents[mask], return_inverse=True)
        compact = np.full_like(documents, PADDING)
        compact[mask] = row_of
        clicks = (log.clicks_per_list[shown] / sessions[:, None]).astype(np.float32)
        settled = np.full(documents.shape, np.nan, np.float32)
        return cls(dataset.features[rows], compact, clicks, sessions, settled)

    @classmethod
    def empty(cls, features: int) -> Memory:
        """Nothing yet."""
        lists = np.empty((0, 0), np.float32)
        return cls(
            np.empty((0, features), np.float32), lists.astype(np.int32), lists, np.empty(0), lists
        )

    @property
    def depth(self) -> int:
        """The longest list that there can be."""
        return self.documents.shape[1]

    @property
    def total(self) -> float:
        """The sessions of all lists."""
        return float(self.sessions.sum())

    @property
    def are_settled(self) -> NDArray[np.bool_]:
        """Which lists say nothing about position any more."""
        if self.depth == 0:
            return np.zeros(len(self), bool)
        return np.isfinite(self.settled[:, 0])

    def faded(self, sessions: float, half_life: float | None) -> Memory:
        """The memory after so many further sessions; nothing fades where there is no half-life.

        >>> Memory.empty(1).faded(100, half_life=50).total
        0.0
        """
        if half_life is None:
            return self
        left = replace(self, sessions=self.sessions * 2.0 ** (-sessions / half_life))
        # What counts for less than a millionth of a session is gone.
        return left.take(np.flatnonzero(left.sessions > 1e-6))

    def settle(self, propensity: Propensity | None) -> Memory:
        """Take this curve for the examination of all lists that are not settled yet."""
        if propensity is None or len(self) == 0:
            return self
        curve = np.log(propensity.examination[: self.depth]).astype(np.float32)
        # Below the curve there are no documents: a number must stand there, and none is used.
        curve = np.append(curve, np.full(self.depth - len(curve), curve[-1], np.float32))
        curve = np.maximum(curve, np.float32(_LEAST_LOG))
        return replace(self, settled=np.where(self.are_settled[:, None], self.settled, curve))

    def deep(self, depth: int) -> Memory:
        """The same lists, with padding down to this depth."""
        more = depth - self.depth
        if more <= 0:
            return self

        def padded(values: NDArray[Any], fill: Any) -> NDArray[Any]:
            return np.pad(values, ((0, 0), (0, more)), constant_values=fill)

        settled = padded(self.settled, np.nan)
        settled[self.are_settled, self.depth :] = 0.0
        return replace(
            self,
            documents=padded(self.documents, PADDING),
            clicks=padded(self.clicks, 0),
            settled=settled,
        )

    def joined(self, other: Memory) -> Memory:
        """Both; lists of the same documents in the same order, believed alike, become one.

        Documents are the same where all of their features are.
        """
        depth = max(self.depth, other.depth)
        one, two = self.deep(depth), other.deep(depth)
        features = np.concatenate([one.features, two.features])
        first, row_of = _distinct(features)
        beyond = len(one.features)
        documents = np.concatenate(
            [one.documents, np.where(two.documents < 0, two.documents, two.documents + beyond)]
        )
        mask = documents != PADDING
        documents[mask] = row_of[documents[mask]]
        settled = np.concatenate([one.settled, two.settled])
        sessions = np.concatenate([one.sessions, two.sessions])
        sums = np.concatenate([one.clicks, two.clicks]) * sessions[:, None]
        lists, list_of = _distinct(np.concatenate([documents.view(np.float32), settled], axis=1))
        if len(lists) < len(documents):
            sessions = np.bincount(list_of, sessions, len(lists))
            columns = [np.bincount(list_of, column, len(lists)) for column in sums.T]
            clicks = (np.stack(columns, axis=1) / sessions[:, None]).astype(np.float32)
        else:
            clicks = np.concatenate([one.clicks, two.clicks])
        return Memory(
            features[first],
            documents[lists],
            np.minimum(clicks, 1.0),
            sessions,
            settled[lists],
        )

    def take(self, chosen: NDArray[np.integer]) -> Memory:
        """Some of the lists, and the documents on them."""
        if len(chosen) == len(self):
            return self
        documents = self.documents[chosen]
        mask = documents != PADDING
        rows, row_of = np.unique(documents[mask], return_inverse=True)
        documents[mask] = row_of
        return Memory(
            self.features[rows],
            documents,
            self.clicks[chosen],
            self.sessions[chosen],
            self.settled[chosen],
        )

    def kept(self, most: int, rng: np.random.Generator) -> Memory:
        """At most so many lists, which count for all of them."""
        if len(self) <= most:
            return self
        clicked = np.asarray(self.clicks.any(axis=1))
        whole = self._without_clicks_as_one(clicked)
        if len(whole) <= most:
            return whole
        clicked = np.asarray(whole.clicks.any(axis=1))
        places = max(1, most - int((~clicked).sum()))
        chance = np.ones(len(whole))
        chance[clicked] = chances(whole.sessions[clicked], places)
        order = rng.permutation(len(whole))
        # One draw for all: as many lists are kept as the chances add up to.
        steps = np.floor(np.cumsum(chance[order]) + rng.random())
        drawn = np.zeros(len(whole), bool)
        drawn[order] = np.diff(steps, prepend=0.0) >= 1
        drawn[~clicked] = True
        chosen = np.flatnonzero(drawn)[:most]
        return replace(whole, sessions=whole.sessions / chance).take(chosen)

    def _without_clicks_as_one(self, clicked: NDArray[np.bool_]) -> Memory:
        if clicked.all():
            return self
        found = self.take(np.flatnonzero(clicked))
        one = (1, self.depth)
        # What is settled stays so: it says nothing about position, however little it says.
        for which, examination in ((self.are_settled, 0.0), (~self.are_settled, np.nan)):
            sessions = self.sessions[which & ~clicked].sum()
            if sessions:
                nothing = Memory(
                    self.features[:0],
                    np.full(one, PADDING, np.int32),
                    np.zeros(one, np.float32),
                    np.array([sessions]),
                    np.full(one, examination, np.float32),
                )
                found = found.joined(nothing)
        return found

    def feedback(self) -> Labelled:
        """What a training draws from: lists in proportion to their sessions."""
        lists = RankedLists(self.documents, np.zeros(len(self), np.int32))
        whole = np.rint(self.sessions)
        # Of whole sessions the same lists are drawn as from a log.
        counts = whole.astype(np.int64) if (whole == self.sessions).all() else self.sessions
        settled = self.settled if self.are_settled.any() else None
        return Labelled(lists, self.clicks, counts, settled=settled)

    def dataset(self, names: tuple[str, ...] | None) -> Dataset:
        """The documents that the lists show, of no query in particular."""
        ends = np.array([0, len(self.features)])
        return Dataset(self.features, ends, np.array(["remembered"]), feature_names=names)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything by name."""
        return {name: np.ascontiguousarray(getattr(self, name)) for name in _KINDS}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]], features: int) -> Memory:
        """What `arrays` gave, as a stranger may have changed it; a ValueError for what is wrong."""
        if arrays.keys() != _KINDS.keys():
            raise ValueError(f"it holds {', '.join(arrays)} instead of {', '.join(_KINDS)}")
        for name, (kind, dimensions) in _KINDS.items():
            if arrays[name].dtype != kind or arrays[name].ndim != dimensions:
                raise ValueError(f"its {name} are {arrays[name].dtype} of {arrays[name].ndim} axes")
        found = cls(**arrays)
        shape = found.documents.shape
        if found.features.shape[1] != features:
            raise ValueError(f"it has {found.features.shape[1]} features, and its model {features}")
        if not (
            found.clicks.shape == found.settled.shape == shape == (len(found.sessions), shape[1])
        ):
            raise ValueError("its lists, clicks, sessions and examination are not of one size")
        mask = found.documents != PADDING
        if mask.any() and not (
            found.documents.min() >= PADDING and found.documents.max() < len(found.features)
        ):
            raise ValueError("its lists show documents that it does not have")
        if not np.isfinite(found.features).all():
            raise ValueError("its features are no finite numbers")
        if not ((found.clicks >= 0) & (found.clicks <= 1)).all() or found.clicks[~mask].any():
            raise ValueError("its mean clicks are not between 0 and 1, on documents alone")
        if not (found.sessions > 0).all() or not found.total < MOST_SESSIONS:
            raise ValueError("its sessions are no positive numbers that can be added up")
        known = found.settled[found.are_settled]
        open_lists = found.settled[~found.are_settled]
        if (
            not np.isnan(open_lists).all()
            or not ((known >= _LEAST_LOG) & (known <= -_LEAST_LOG)).all()
        ):
            raise ValueError("its examination is not that of whole lists")
        return found


def remembered(log: ClickLog, dataset: Dataset, most: int, seed: int) -> Memory:
    """What a memory of so many lists keeps of a log."""
    LoggedClicks(log)  # refuses what nothing can be learned from
    new = Memory.of(log, dataset).joined(Memory.empty(dataset.feature_count))
    return new.kept(most, memory_rng(seed))


def memory_rng(seed: int, update: int = 0) -> np.random.Generator:
    """What draws the lists that are kept, in every update anew under the same seed."""
    return np.random.default_rng([seed, 0x_3E30, update])


def chances(sessions: NDArray[np.float64], places: int) -> NDArray[np.float64]:
    """π = min(1, s/τ) with Σ π = places.

    >>> chances(np.array([6.0, 1.0, 1.0, 2.0]), 2)
    array([1.  , 0.25, 0.25, 0.5 ])
    """
    ordered = np.sort(sessions)[::-1]
    # With the k largest certain, τ is the sum of the others by the places that are left.
    rest = ordered.sum() - np.append(0.0, np.cumsum(ordered[:-1]))
    left = places - np.arange(len(ordered))
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = np.where(left > 0, rest / left, 0.0)
    certain = int(np.argmax(ordered <= limits))
    return np.minimum(1.0, sessions / limits[certain])


def _distinct(rows: NDArray[np.float32]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where each distinct row stands first, in that order, and which of them each row is."""
    _, first, inverse = np.unique(_digests(rows), return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse.reshape(-1)]


def _digests(rows: NDArray[np.float32]) -> NDArray[np.uint64]:
    """64 bits that tell rows apart: a random sum of their mixed words, modulo 2^64.

    Sorting these is many times quicker than sorting rows.
    """
    words = np.ascontiguousarray(rows).view(np.uint32)
    random = np.random.default_rng(0x_D16E57)
    factors = random.integers(1, 2**64, size=words.shape[1], dtype=np.uint64, endpoint=False)
    digests = np.empty(len(words), np.uint64)
    for start in range(0, len(words), _ROWS_AT_A_TIME):
        part = slice(start, start + _ROWS_AT_A_TIME)
        mixed = (words[part].astype(np.uint64) + np.uint64(1)) * np.uint64(0x_9E37_79B9_7F4A_7C15)
        mixed ^= mixed >> np.uint64(29)
        mixed *= factors
        mixed ^= mixed >> np.uint64(32)
        digests[part] = mixed.sum(axis=1, dtype=np.uint64)
    return digests
