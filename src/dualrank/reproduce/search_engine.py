"""A search engine whose lists change over time, and the log of its users' clicks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.clicks import User, make_user
from dualrank.data import ClickLog, Dataset, RankedLists, top_lists
from dualrank.reproduce.collection import sizes_of
from dualrank.reproduce.text_collection import TextSplits, engine_scores

POPULATIONS = {"mixed": ("pbm", "ubm", "dbn", "dcm", "pbm-trust")}
"""Users of several kinds, in equal shares."""

DEPTH = 10
VERSIONS = 4
"""Lists per query: the engine changes over time, which shows a page at several positions."""
_CHANGE = 0.35
"""The spread of an engine's change, in standard deviations of its scores for a query."""
_POPULARITY = 0.9
"""The n-th most frequent query is asked in proportion to n to the power of minus this."""


@dataclass(frozen=True)
class Log:
    """How many sessions there are per list: the same for all, or as queries are popular."""

    sessions: int = 50
    popularity: bool = False

    def __str__(self) -> str:
        return f"of {self.sessions} sessions ({'mean' if self.popularity else 'each'})"


OWN = Log(0)
"""A user's own log has as many sessions as it has."""


def users_of(population: str) -> list[User]:
    """The users of a population, or one kind by its name."""
    return [make_user(name) for name in POPULATIONS.get(population, (population,))]


@dataclass(frozen=True, eq=False)
class SearchData:
    """What all methods of one seed share: queries to learn from, queries to test on, and lists.

    `log` is a user's own; without one, clicks are simulated.
    """

    train: Dataset
    test: Dataset
    lists: RankedLists
    log: ClickLog | None = None

    @property
    def sizes(self) -> dict[str, Any]:
        """How large the data are. Features that are constant in training are not used."""
        parts = {"train": self.train, "test": self.test}
        used = int((np.ptp(self.train.features, axis=0) > 0).sum())
        return sizes_of(parts, features=self.train.feature_count, features_used=used, note="")


def display(splits: TextSplits, seed: int) -> SearchData:
    """Let the engine rank the training queries in several versions."""
    rng = np.random.default_rng([seed, 0x_E46])
    scores = engine_scores(splits.train)
    spread = _spread_of_queries(splits.train, scores)
    versions = [
        top_lists(splits.train, scores + rng.normal(0, _CHANGE, len(scores)) * spread, DEPTH)
        for _ in range(VERSIONS)
    ]
    lists = RankedLists(
        np.concatenate([each.documents for each in versions]),
        np.concatenate([each.queries for each in versions]),
    )
    return SearchData(splits.train, splits.test, lists)


def _spread_of_queries(dataset: Dataset, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The standard deviation of the scores of each document's query."""
    query = dataset.query_of_document
    mean = np.bincount(query, scores) / dataset.lengths
    squares = np.bincount(query, np.square(scores - mean[query])) / dataset.lengths
    return np.sqrt(squares)[query]


def simulate_log(data: SearchData, users: list[User], log: Log, seed: int) -> ClickLog:
    """Sessions on every list, each of a user of one of the kinds."""
    rng = np.random.default_rng([seed, log.sessions, log.popularity, 0x_C11C])
    grades = data.lists.gather(data.train.require_grades())
    counts = _sessions_of_queries(len(data.train), log, rng)[data.lists.queries]
    list_of = np.repeat(np.arange(len(counts)), counts)
    kind = rng.integers(len(users), size=len(list_of))
    clicks = np.empty((len(list_of), data.lists.depth), bool)
    for number, user in enumerate(users):
        pages = user.browse(grades, data.lists.mask, data.train.max_grade)
        chosen = kind == number
        clicks[chosen] = pages.take(list_of[chosen]).sample(rng)
    return ClickLog.from_clicks(data.lists, list_of, clicks, catalogue=data.train.catalogue)


def _sessions_of_queries(queries: int, log: Log, rng: np.random.Generator) -> NDArray[np.int64]:
    if not log.popularity:
        return np.full(queries, log.sessions)
    share = np.arange(1, queries + 1) ** -_POPULARITY
    wanted = log.sessions * queries * share / share.sum()
    return rng.permutation(np.maximum(np.round(wanted), 1).astype(np.int64))
