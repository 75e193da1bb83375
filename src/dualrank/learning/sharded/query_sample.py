"""A sample of a log in shards that fits into memory, for all that is not a step of training.

Rankers are judged by held-out queries, corrections look at a log before they begin, and a report
says what a log is good for. None of that needs all of it. So some queries of every shard are taken
with all of their documents and with their lists, up to a number that is known beforehand; which
ones follows from the seed and the number of the shard, whoever of several workers holds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog, Column
from dualrank.data.dataset import Dataset
from dualrank.data.lists import PADDING, RankedLists
from dualrank.data.shards.shard import Shard
from dualrank.data.shards.sharded_log import ShardedLog
from dualrank.errors import DataError
from dualrank.evaluation.click_check import HELD_OUT_SEED
from dualrank.learning.sharded.own_shards import LISTS_PER_BLOCK
from dualrank.learning.whole_source import WholeSource
from dualrank.learning.workers import Workers

MOST_LISTS = 50_000
"""Held out, and as many again that are trained on."""
MOST_OF_ONE_QUERY = 1_000
"""Lists; of a query with more of them, these speak for all."""
MOST_VALUES = 1 << 24
"""Features of the documents of each half: 64 MiB."""
SURE_SHARDS = 100
"""So many shards have a query in the sample, however large it is; others, if there is room."""

Picked = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Choice:
    """The queries of one shard that are held out, and further ones that are looked at.

    Of each of them at `most` so many lists are taken.
    """

    held_out: Picked
    others: Picked
    most: int


def shares_of(log: ShardedLog, share: float) -> NDArray[np.int64]:
    """How many queries of each shard to hold out, as `hold_out` does of one log."""
    queries = np.array([shard.queries for shard in log.shards])
    total = int(queries.sum())
    wanted = max(min(2, total - 1), round(share * total), 1) if share else 0
    ends = np.round(np.cumsum(queries) * (wanted / total)).astype(np.int64)
    return ends - np.append(0, ends[:-1])


def choose(shard: Shard, log: ShardedLog, wanted: int, seed: int) -> Choice:
    """Choose queries of a shard at random, as many as its part of the sample has room for."""
    lists = np.zeros(shard.queries, dtype=np.int64)
    for start in range(0, shard.lists, LISTS_PER_BLOCK):
        block = shard.log.lists.queries[start : start + LISTS_PER_BLOCK]
        lists += np.bincount(block, minlength=shard.queries)
    rng = np.random.default_rng([seed, HELD_OUT_SEED, shard.number])
    shuffled = rng.permutation(np.flatnonzero(lists))
    wanted = min(wanted, max(len(shuffled) - 1, 0))
    part = shard.sessions / log.sessions
    most = min(MOST_OF_ONE_QUERY, max(1, int(MOST_LISTS * part)))
    sizes = np.diff(shard.offsets)[shuffled] * (log.feature_count or 1)
    costs = np.maximum(
        np.minimum(lists[shuffled], most) / (MOST_LISTS * part), sizes / (MOST_VALUES * part)
    )
    least = int(shard.number < SURE_SHARDS)
    held = shuffled[:wanted][_fit(costs[:wanted], least)]
    others = shuffled[len(held) :]
    return Choice(held, others[_fit(costs[len(held) :], least)], most)


def _fit(costs: NDArray[np.float64], least: int) -> slice:
    """The first ones, whose costs add up to 1, and no fewer than the `least`."""
    return slice(max(least, int(np.searchsorted(np.cumsum(costs), 1.0, side="right"))))


def gather(
    log: ShardedLog,
    choices: Sequence[Choice | None],
    owners: Sequence[int],
    workers: Workers,
    share: float,
) -> WholeSource:
    """The lists of the chosen queries, for all workers; choices of others' shards are None.

    Where a `share` of the queries should be held out, and none can be, it is refused.
    """
    pieces = list[dict[str, NDArray]]()
    kinds = _kinds(log)
    for shard, choice, owner in zip(log.shards, choices, owners, strict=True):
        own = {} if choice is None else _piece(shard, choice)
        pieces.append(
            {
                name: workers.share_array(own.get(name), owner, kind, dimensions)
                for name, (kind, dimensions) in kinds.items()
            }
        )
    return _joined(log, pieces, share)


def _kinds(log: ShardedLog) -> dict[str, tuple[type, int]]:
    """What a piece of the sample consists of: arrays with their kinds and dimensions."""
    return {
        "documents": (np.int32, 2),
        "queries": (np.int32, 1),
        "held_out": (np.bool_, 1),
        "list_of": (np.int32, 1),
        "clicks": (np.bool_, 2),
        "counts": (np.int64, 1),
        "features": (np.float32, 2),
        "lengths": (np.int64, 1),
        **{f"column {name}": (np.int32, 1) for name in log.columns},
        **{f"event {kind}": (np.float64, 2) for kind in log.events},
    }


def _piece(shard: Shard, choice: Choice) -> dict[str, NDArray]:
    """The arrays of one shard's part of the sample, over its own documents."""
    queries = np.concatenate([choice.held_out, choice.others])
    data, log = shard.dataset.take(queries), shard.log
    new_query = np.full(shard.queries, -1, dtype=np.int32)
    new_query[queries] = np.arange(len(queries))
    lists = _lists_of(shard, new_query, choice.most)
    query = new_query[log.lists.queries[lists]]
    old, moved = log.lists.documents[lists], data.offsets[:-1] - shard.offsets[queries]
    documents = np.where(old == PADDING, PADDING, old + moved[query][:, None])
    lengths = shard.starts[lists + 1] - shard.starts[lists]
    ends = np.cumsum(lengths)
    rows = np.arange(lengths.sum()) + np.repeat(shard.starts[lists] - (ends - lengths), lengths)
    piece = {
        "documents": documents.astype(np.int32),
        "queries": query,
        "held_out": query < len(choice.held_out),
        "list_of": np.repeat(np.arange(len(lists), dtype=np.int32), lengths),
        "clicks": log.clicks[rows],
        "counts": log.counts[rows],
        "features": data.features,
        "lengths": data.lengths,
    }
    piece |= {f"column {name}": column.codes[rows] for name, column in log.columns.items()}
    return piece | {f"event {kind}": amounts[rows] for kind, amounts in log.events.items()}


def _lists_of(shard: Shard, new_query: NDArray[np.int32], most: int) -> Picked:
    """The lists of chosen queries; of one with very many, some that lie evenly among them."""
    found = list[Picked]()
    for start in range(0, shard.lists, LISTS_PER_BLOCK):
        block = shard.log.lists.queries[start : start + LISTS_PER_BLOCK]
        found.append(start + np.flatnonzero(new_query[block] >= 0))
    lists = np.concatenate(found) if found else np.empty(0, np.intp)
    query = new_query[shard.log.lists.queries[lists]]
    order = np.argsort(query, kind="stable")
    counts = np.bincount(query, minlength=1)
    number = np.arange(len(lists)) - np.repeat(np.cumsum(counts) - counts, counts)
    every = -(-counts // most)
    return np.sort(lists[order][number % np.repeat(np.maximum(every, 1), counts) == 0])


def _joined(log: ShardedLog, pieces: Sequence[dict[str, NDArray]], share: float) -> WholeSource:
    """The pieces as one log, shard after shard."""

    def all_of(name: str, sizes: Sequence[int] = ()) -> NDArray:
        """One array of all pieces; indices count on from piece to piece, by these sizes."""
        if not sizes:
            return np.concatenate([piece[name] for piece in pieces])
        starts = np.append(0, np.cumsum(sizes)[:-1]).astype(np.int32)
        moved = [
            np.where(piece[name] == PADDING, PADDING, piece[name] + start)
            for piece, start in zip(pieces, starts, strict=True)
        ]
        return np.concatenate(moved).astype(np.int32)

    lengths = all_of("lengths")
    dataset = Dataset(
        features=all_of("features"),
        offsets=np.append(0, np.cumsum(lengths)),
        query_ids=np.arange(len(lengths)).astype(str),
        feature_names=log.feature_names,
        source=str(log.folder),
    )
    sample = ClickLog(
        RankedLists(
            all_of("documents", [len(piece["features"]) for piece in pieces]),
            all_of("queries", [len(piece["lengths"]) for piece in pieces]),
        ),
        all_of("list_of", [len(piece["queries"]) for piece in pieces]),
        all_of("clicks"),
        all_of("counts"),
        {name: Column(names, all_of(f"column {name}")) for name, names in log.columns.items()},
        reading=log.reading,
        events={kind: all_of(f"event {kind}") for kind in log.events},
    )
    held = all_of("held_out")
    rest = sample.take_lists(np.flatnonzero(~held))
    if not held.any() and not share:
        return WholeSource(sample, dataset, rest, None)
    held_out = sample.take_lists(np.flatnonzero(held))
    if not held_out.clicks.any() or held.all():
        some = f", in a sample of {sample.sessions:,} of {log.sessions:,} sessions"
        raise DataError(
            f"too few queries with clicks to hold some out{some * (sample.sessions < log.sessions)}"
            "; give validation=0 or judged queries"
        )
    return WholeSource(sample, dataset, rest, held_out)
