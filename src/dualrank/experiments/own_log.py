"""A user's own pages, queries, click log and judgments, for the experiment with click models."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.log.reader import read_log
from dualrank.documents.candidates import extract
from dualrank.documents.pages import find_pages
from dualrank.documents.tables import Pairs, read_pairs, read_queries
from dualrank.documents.tokens import Tokeniser
from dualrank.errors import DataError

VALID_SHARE = 0.2
MIN_SESSIONS = 10


@dataclass(frozen=True, eq=False)
class OwnData:
    """What was read: the log points into `train`."""

    train: Dataset
    valid: Dataset
    test: Dataset
    log: ClickLog
    pages: int


@dataclass(frozen=True)
class OwnLog:
    """Where everything lies.

    As in the paper, lists with fewer than `min_sessions` sessions are left out, since click models
    know nothing of them, and so are those that show a page which could not be read. Of the judged
    queries a fifth, by the hash of their names, keeps the best ranker, and the others test it.
    """

    pages: Path
    queries: Path
    log: Path
    judgments: Path
    tokeniser: Tokeniser = field(default_factory=Tokeniser)
    min_sessions: int = MIN_SESSIONS

    @property
    def name(self) -> str:
        """What the user calls it."""
        return str(self.log)

    @property
    def new_for_every_seed(self) -> bool:
        """Whether every seed is tested on other queries."""
        return False

    def load(self) -> OwnData:
        """Read everything; the pages once, for the pairs of the log and of the judgments."""
        shown = read_log(self.log, max_bad_share=1.0).catalogue
        judged = read_pairs(self.judgments)
        if shown is None or judged.grades is None:
            raise DataError(f"{self.judgments}: column 'grade' is missing")
        logged = Pairs(shown.query_ids[shown.query_of_document], shown.doc_ids)
        everything = _together(logged, judged)
        found = extract(
            find_pages(self.pages), read_queries(self.queries), everything, self.tokeniser
        )
        data = found.dataset()
        train = data.take(_queries_of(data, logged))
        log = read_log(self.log, train, max_bad_share=1.0)
        often = np.flatnonzero(log.sessions_per_list >= self.min_sessions)
        if len(often) == 0:
            raise DataError(f"{self.log}: no list has {self.min_sessions} sessions or more")
        valid, test = _judged(data, judged)
        return OwnData(train, valid, test, log.take_lists(often), found.pages.pages)


def _together(logged: Pairs, judged: Pairs) -> Pairs:
    """All pairs once, those of a query together."""
    pairs = dict.fromkeys(zip(logged.query_ids.tolist(), logged.doc_ids.tolist(), strict=True))
    pairs |= dict.fromkeys(zip(judged.query_ids.tolist(), judged.doc_ids.tolist(), strict=True))
    queries, documents = zip(*sorted(pairs), strict=True)
    return Pairs(np.array(queries), np.array(documents))


def _queries_of(data: Dataset, pairs: Pairs) -> NDArray[np.int64]:
    return np.flatnonzero(np.isin(data.query_ids, pairs.query_ids))


def _judged(data: Dataset, judged: Pairs) -> tuple[Dataset, Dataset]:
    """Judged queries with their judged pages, cut into validation and test."""
    assert judged.grades is not None
    grade_of = dict(
        zip(
            zip(judged.query_ids.tolist(), judged.doc_ids.tolist(), strict=True),
            judged.grades.tolist(),
            strict=True,
        )
    )
    names = zip(
        data.query_ids[data.query_of_document].tolist(),
        data.ids_of_documents().tolist(),
        strict=True,
    )
    grades = np.array([grade_of.get(pair, np.nan) for pair in names])
    rows = np.flatnonzero(~np.isnan(grades))
    if len(rows) == 0:
        raise DataError("no judged page is among the pages")
    kept = Dataset.from_arrays(
        data.features[rows],
        data.query_ids[data.query_of_document[rows]],
        grades[rows],
        doc_ids=data.ids_of_documents()[rows],
        feature_names=data.feature_names,
    )
    if len(kept) < 2:
        raise DataError("there is only one judged query; one is needed to choose, others to test")
    hashes = [hashlib.sha256(name.encode()).digest() for name in kept.query_ids.tolist()]
    order = sorted(range(len(kept)), key=hashes.__getitem__)
    valid = max(1, round(VALID_SHARE * len(kept)))
    return kept.take(order[:valid]), kept.take(order[valid:])
