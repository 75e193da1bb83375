"""A user's own pages, queries, click log and judgments, for the experiment with click models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dualrank.data import Dataset, read_features, read_log
from dualrank.errors import DataError
from dualrank.pages import (
    Extraction,
    Pairs,
    Tokeniser,
    extract,
    find_pages,
    read_pairs,
    read_queries,
)
from dualrank.reproduce.search_engine import SearchData
from dualrank.storage import sha256_of_file

MIN_SESSIONS = 10


def extract_own(
    pages: Path,
    queries: Path,
    log: Path,
    judgments: Path,
    tokeniser: Tokeniser,
    progress: Callable[[int, int], None] | None = None,
) -> Extraction:
    """Read the pages once, for all pairs of the log and of the judgments."""
    shown = read_log(log, partial=True, max_bad_share=1.0).catalogue
    assert shown is not None
    names = shown.query_ids[shown.query_of_document].tolist(), shown.doc_ids.tolist()
    pairs = sorted({*zip(*names, strict=True), *_judgments(judgments)})
    query_ids, doc_ids = zip(*pairs, strict=True)
    wanted = Pairs(np.array(query_ids), np.array(doc_ids))
    return extract(find_pages(pages), read_queries(queries), wanted, tokeniser, progress=progress)


@dataclass(frozen=True)
class OwnLog:
    """A log, the features of what it shows, and judgments.

    As in the paper, lists with fewer than `min_sessions` sessions are left out, since click models
    know nothing of them, and so are those that show a page without features. Judged queries are for
    testing: they are not trained on. `content` is a digest of the features, so that other features
    are another experiment.
    """

    features: Path
    log: Path
    judgments: Path
    min_sessions: int = MIN_SESSIONS
    content: str = ""

    @classmethod
    def of(cls, features: Path, log: Path, judgments: Path, min_sessions: int) -> OwnLog:
        """With the digest of the features as they are now."""
        return cls(features, log, judgments, min_sessions, sha256_of_file(features)[:12])

    @property
    def name(self) -> str:
        """What the user calls it."""
        return str(self.log)

    @property
    def new_for_every_seed(self) -> bool:
        """Whether every seed is tested on other queries."""
        return False

    def load(self) -> SearchData:
        """Read everything."""
        data, judged = read_features(self.features), _judgments(self.judgments)
        test = _judged(data, judged)
        tested = {query for query, _ in judged}
        others = np.flatnonzero([query not in tested for query in data.query_ids.tolist()])
        if len(others) == 0:
            raise DataError(
                f"{self.log}: every query with features is judged; "
                "judged queries are for testing, and others are needed to learn from"
            )
        train = data.take(others)
        log = read_log(self.log, train, max_bad_share=1.0)
        often = np.flatnonzero(log.sessions_per_list >= self.min_sessions)
        if len(often) == 0:
            raise DataError(
                f"{self.log}: no list of a query without judgments has {self.min_sessions} "
                "sessions or more"
            )
        kept = log.take_lists(often)
        if len(np.unique(kept.lists.queries)) < 2:
            raise DataError(
                f"{self.log}: only one query without judgments has a list with "
                f"{self.min_sessions} sessions or more; one is needed to choose the best ranker, "
                "others to learn from"
            )
        return SearchData(train, test, kept.lists, kept)


def _judgments(path: Path) -> dict[tuple[str, str], float]:
    """The grade of each judged query and page."""
    judged = read_pairs(path)
    if judged.grades is None:
        raise DataError(f"{path}: column 'grade' is missing")
    pairs = zip(judged.query_ids.tolist(), judged.doc_ids.tolist(), strict=True)
    return dict(zip(pairs, judged.grades.tolist(), strict=True))


def _judged(data: Dataset, judged: dict[tuple[str, str], float]) -> Dataset:
    """Judged queries with their judged pages."""
    grades = np.array([judged.get(pair, np.nan) for pair in data.pairs()])
    rows = np.flatnonzero(~np.isnan(grades))
    if len(rows) == 0:
        raise DataError("no judged page is among the pages")
    return Dataset.from_arrays(
        data.features[rows],
        data.query_ids[data.query_of_document[rows]],
        grades[rows],
        doc_ids=data.ids_of_documents()[rows],
        feature_names=data.feature_names,
    )
