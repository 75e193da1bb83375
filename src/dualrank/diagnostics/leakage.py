"""Does a feature give away where a document was shown, or only number the rows?

A feature that orders the lists as they were displayed is one of two things. The score of the ranker
that made the log is there when documents are ranked, and a good feature. A position, or a row
number of the log, is not: a ranker that leans on it learns the order it should correct, and meets
other numbers when it serves. The log cannot tell the two apart; whoever made the features can.

Of neighbours in the lists, weighed by sessions, the share is taken that a feature orders alike
(ties count half). Even the strongest feature of a logging ranker of several orders three in four.

Row numbers, ids and hashes are found without the log: whole numbers that are different in every
row, or of every document.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.diagnostics.facts import LogFacts
from dualrank.diagnostics.point import Point, Question

logger = logging.getLogger(__name__)

NAME = "leakage"
TELLING = 0.95
"""The share of neighbours that a feature orders alike, from which on it tells the position."""
FEWEST_PAIRS = 50
MOST_LISTS = 4_000
FEWEST_ROWS = 20
MANY_ROWS = 1_000
"""Lengths and counts of fewer documents may all be different, too."""
LOOKED_AT = 5_000
HARDLY = 0.9
EXACT = 2.0**24
"""Beyond it single precision has whole numbers only, and joins some that were different."""


@dataclass(frozen=True)
class Leakage:
    """The features, by number, that order lists as displayed, and those that number rows."""

    telling: dict[int, float]
    """With the share of neighbours that they order alike."""
    numbering: tuple[int, ...]
    ids: tuple[int, ...]
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, log: ClickLog, dataset: Dataset, seed: int = 0) -> Leakage:
        """Look for both in the features of a log's documents."""
        shares = order_shares(log, dataset, seed)
        telling = {c: float(shares[c]) for c in np.flatnonzero(shares >= TELLING).tolist()}
        numbering, ids = _numbers_and_ids(dataset)
        return cls(telling, numbering, ids, dataset.feature_names)

    @property
    def sentences(self) -> list[str]:
        """What was found, each with what it may be."""
        said = []
        if self.telling:
            share = min(self.telling.values())
            one = len(self.telling) == 1
            said.append(
                f"{self._named(list(self.telling))} {'orders' if one else 'order'} {share:.0%} of "
                f"neighbours as they were displayed: the score of the ranker that made the log "
                f"{'is a good feature' if one else 'may do so'}, a position or row number is not "
                "there when documents are ranked"
            )
        if self.numbering:
            one = len(self.numbering) == 1
            said.append(
                f"{self._named(self.numbering)} {'numbers' if one else 'number'} the rows: another "
                "file would have other numbers"
            )
        if self.ids:
            one = len(self.ids) == 1
            said.append(
                f"{self._named(self.ids)} {'has' if one else 'have'} another whole number for "
                "every document, as ids and hashes have: a ranker learns them by heart, unless "
                "they measure something, such as a time"
            )
        return said

    def _named(self, columns: list[int] | tuple[int, ...]) -> str:
        words = [repr(self.names[c]) if self.names else str(c + 1) for c in columns[:3]]
        more = f" and {len(columns) - 3} more" if len(columns) > 3 else ""
        return f"feature{'s' * (len(columns) > 1)} {', '.join(words)}{more}"


def leakage(facts: LogFacts) -> Point:
    """The features that a ranker may find, and not have when it serves."""
    if facts.dataset is None:
        return Question(NAME).answer("not measured", "No features were given.")
    found = Leakage.of(facts.log, facts.dataset, facts.seed)
    asked = Question(
        NAME,
        {
            "order_displayed": {found._named([c]): s for c, s in found.telling.items()},
            "row_numbers": [found._named([c]) for c in found.numbering],
            "ids": [found._named([c]) for c in found.ids],
        },
    )
    if not found.sentences:
        return asked.answer("good", "No feature gives the position away, or only numbers the rows.")
    said = "; ".join(found.sentences)
    return asked.answer(
        "warning",
        f"{said[0].upper()}{said[1:]}.",
        "Leave out what will not be there, in the same sense, when the ranker serves.",
    )


def warn_of_leakage(log: ClickLog, dataset: Dataset, seed: int = 0) -> None:
    """Log a warning for each kind of feature that may give away what it should not."""
    for sentence in Leakage.of(log, dataset, seed).sentences:
        logger.warning("%s: %s", dataset.source, sentence)


def order_shares(log: ClickLog, dataset: Dataset, seed: int = 0) -> NDArray[np.float64]:
    """By feature, the share of neighbours in the lists that it orders alike; 0 where too few are.

    >>> from dualrank.data.lists import RankedLists
    >>> lists = RankedLists(np.arange(100, dtype=np.int32).reshape(1, 100), np.array([0]))
    >>> log = ClickLog.from_clicks(lists, np.array([0]), np.ones((1, 100), bool))
    >>> features = np.stack([np.arange(100), np.zeros(100)], axis=1)
    >>> order_shares(log, Dataset.from_arrays(features, np.zeros(100)))
    array([1. , 0.5])
    """
    documents, sessions = log.lists.documents, log.sessions_per_list.astype(np.float64)
    if len(documents) > MOST_LISTS:
        rng = np.random.default_rng([seed, 0x_1EA4])
        chosen = rng.permutation(len(documents))[:MOST_LISTS]
        documents, sessions = documents[chosen], sessions[chosen]
    row, place = np.nonzero((documents[:, :-1] >= 0) & (documents[:, 1:] >= 0))
    if len(row) < FEWEST_PAIRS:
        return np.zeros(dataset.feature_count)
    upper, lower = documents[row, place], documents[row, place + 1]
    shares = np.zeros(dataset.feature_count)
    # By rows, as features lie in memory, or in a file.
    orders = np.sign(dataset.features[upper] - dataset.features[lower])
    for column, order in enumerate(orders.T):
        known = ~np.isnan(order)
        if known.sum() >= FEWEST_PAIRS:
            agreement = np.average(order[known], weights=sessions[row[known]])
            shares[column] = 0.5 + abs(agreement) / 2
    return shares


def _numbers_and_ids(dataset: Dataset) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The features that number the rows, and those that have a number for every document."""
    numbering, ids = [], []
    if dataset.document_count < FEWEST_ROWS:
        return (), ()
    inside = np.diff(dataset.query_of_document) == 0
    documents: NDArray[np.int64] | None = None
    for column in _candidates(dataset):
        values = dataset.features[:, column]
        if not np.isfinite(values).all() or not (values == np.floor(values)).all():
            continue
        different = np.unique(values)
        rising = np.sign(np.diff(values)[inside])
        if len(different) == len(values):
            # In file order within every query, or without gaps, whatever the order.
            steady = len(rising) > 0 and bool(abs(rising.sum()) == len(rising))
            dense = different[-1] - different[0] == len(values) - 1
            if steady or dense:
                numbering.append(column)
                continue
        if len(different) < MANY_ROWS:
            continue
        joined = different[-1] > EXACT or different[0] < -EXACT
        all_but = 0.95 if joined else 1.0
        if len(different) >= all_but * len(values):
            ids.append(column)
            continue
        if documents is None:
            documents = np.unique(dataset.ids_of_documents(), return_inverse=True)[1]
        if len(different) >= all_but * (documents.max() + 1) and _one_each(values, documents):
            ids.append(column)
    return tuple(numbering), tuple(ids)


def _candidates(dataset: Dataset) -> list[int]:
    """Features that are whole and hardly repeat in some of the rows: few are to be looked at."""
    rows = np.linspace(0, dataset.document_count - 1, LOOKED_AT).astype(np.int64)
    rows = np.unique(rows)
    documents = len(np.unique(dataset.ids_of_documents()[rows]))
    return [
        column
        for column, values in enumerate(dataset.features[rows].T)
        if (values == np.floor(values)).all() and len(np.unique(values)) >= HARDLY * documents
    ]


def _one_each(values: NDArray[np.float32], documents: NDArray[np.int64]) -> bool:
    """Whether every document has one value, wherever it stands."""
    of_document = np.empty(int(documents.max()) + 1, dtype=values.dtype)
    of_document[documents] = values
    return bool((of_document[documents] == values).all())
