"""Small tables that go with pages: queries, lists of candidates, judgments."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualrank.data.qrels import HIGHEST_GRADE
from dualrank.data.table_files import read_table, suffix_of_table
from dualrank.data.trec import read_words
from dualrank.errors import DataError
from dualrank.sentences import absent

_QRELS = "query 0 document grade"
_RUN = "query Q0 document rank score name"
_TREC = {".qrels": _QRELS, ".qrel": _QRELS, ".run": _RUN, ".trec": _RUN}


@dataclass(frozen=True, eq=False)
class Queries:
    """The words that were asked, by name."""

    query_ids: list[str]
    texts: list[str]

    def __len__(self) -> int:
        return len(self.query_ids)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Query–document pairs by name, those of a query together, with grades where judged."""

    query_ids: NDArray[np.str_]
    doc_ids: NDArray[np.str_]
    grades: NDArray[np.float32] | None = None


def read_queries(path: str | Path) -> Queries:
    """Queries from Parquet, CSV, TSV or JSON lines with `query_id` and `query`."""
    table = read_table(Path(path), ("query_id", "query"))
    ids, texts = table["query_id"].to_pylist(), table["query"].to_pylist()
    if not ids:
        raise DataError(f"{path}: there are no queries")
    name, count = Counter(ids).most_common(1)[0]
    if count > 1:
        raise DataError(f"{path}: query {name!r} stands there more than once")
    return Queries(ids, texts)


def read_pairs(path: str | Path) -> Pairs:
    """Pairs from a table with `query_id` and `doc_id` (and `grade`), or a TREC run or qrels file.

    A click log is such a table too. Pairs that occur again are left out; the first counts.
    """
    queries, documents, judged = _columns_of_pairs(Path(path))
    if not queries:
        raise DataError(f"{path}: there are no lists")
    first: dict[str, dict[str, int]] = {}
    for row, (query, document) in enumerate(zip(queries, documents, strict=True)):
        first.setdefault(query, {}).setdefault(document, row)
    # Queries in the order in which they first occur, and so their documents.
    kept = [row for rows in first.values() for row in rows.values()]
    grades = None
    if judged is not None:
        if not ((judged >= 0) & (judged <= HIGHEST_GRADE)).all():
            raise DataError(
                f"{path}: a grade is missing, below 0 or above {HIGHEST_GRADE}; "
                "expected a number for each pair"
            )
        grades = judged.astype(np.float32)[kept]
    return Pairs(np.array(queries)[kept], np.array(documents)[kept], grades)


def _columns_of_pairs(path: Path) -> tuple[list[str], list[str], NDArray[np.float64] | None]:
    """Queries and documents, and their grades where there are any, nan where one is missing."""
    if not path.is_file():
        raise DataError(absent(path))
    trec = _TREC.get(suffix_of_table(path))
    if trec is None:
        table = read_table(path, ("query_id", "doc_id"), "grade")
        grades = table["grade"].to_numpy() if "grade" in table.column_names else None
        return table["query_id"].to_pylist(), table["doc_id"].to_pylist(), grades
    queries, documents, written = [], [], []
    for number, words in read_words(path, trec):
        queries.append(words[0])
        documents.append(words[2])
        if trec is _QRELS:
            try:
                written.append(float(words[3]))
            except ValueError:
                raise DataError(
                    f"{path}:{number}: the grade is {words[3][:40]!r}; expected a number"
                ) from None
    return queries, documents, np.array(written) if trec is _QRELS else None
