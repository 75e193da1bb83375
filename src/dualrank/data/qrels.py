"""TREC qrels: judgments in a file of their own, `query 0 document grade` per line.

Plain, gzip or zstd.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from dualrank.data.dataset import Dataset
from dualrank.data.trec import read_words
from dualrank.errors import DataError
from dualrank.sentences import counted, document_of

HIGHEST_GRADE = 1000
"""Metrics have gains of 2^grade, and above this they are no numbers any more."""


def read_qrels(path: str | Path) -> dict[tuple[str, str], float]:
    """The grade of every judged query and document; negative grades (spam) count as 0."""
    return {pair: max(grade, 0.0) for pair, grade in _written(path).items()}


def _written(path: str | Path) -> dict[tuple[str, str], float]:
    """The grades as they stand in the file."""
    grades: dict[tuple[str, str], float] = {}
    for number, (query, _, document, written) in read_words(path, "query 0 document grade"):
        try:
            grade = float(written)
        except ValueError:
            grade = np.nan
        if not abs(grade) <= HIGHEST_GRADE:
            raise DataError(
                f"{path}:{number}: the grade is {written[:40]!r}; expected a number up to "
                f"{HIGHEST_GRADE}"
            )
        if max(grades.setdefault((query, document), grade), 0.0) != max(grade, 0.0):
            raise DataError(
                f"{path}:{number}: {document_of(query, document)} was judged "
                "before, with another grade"
            )
    if not grades:
        raise DataError(f"{path}: there are no judgments")
    return grades


def with_qrels(
    dataset: Dataset, path: str | Path, max_grade: float | None = None
) -> tuple[Dataset, int]:
    """The judged queries of a data set with the grades of a qrels file, and what it lacks.

    Documents without a judgment have grade 0. The number is how many judged documents of these
    queries the data set does not have: they are in no ranking, and not in the ideal one either.
    """
    grades = read_qrels(path)
    judged = {query for query, _ in grades}
    chosen = np.flatnonzero([query in judged for query in dataset.query_ids.tolist()])
    if len(chosen) == 0:
        raise DataError(f"{path}: judges none of the queries of the data")
    part = dataset.take(chosen)
    pairs = part.pairs()
    values = np.array([grades.get(pair, 0.0) for pair in pairs], dtype=np.float32)
    highest = max(grades.values()) if max_grade is None else max_grade
    if values.max(initial=0.0) > highest:
        raise DataError(f"{path}: grade {values.max():g}; expected at most {highest:g}")
    kept = set(part.query_ids.tolist())
    missing = sum(query in kept for query, _ in grades.keys() - set(pairs))
    return replace(part, grades=values, max_grade=float(highest)), missing


def account_of(dataset: Dataset, path: str | Path) -> list[str]:
    """What of a data set and a qrels file is left out or changed by `with_qrels`, in words."""
    grades = _written(path)
    judged, asked = {query for query, _ in grades}, set(dataset.query_ids.tolist())
    counts = {
        "{} without judgments left out": counted(len(asked - judged), "queries"),
        "{} of the judgments not in the data": counted(len(judged - asked), "queries"),
        "{} below 0, which count as 0": counted(sum(g < 0 for g in grades.values()), "judgments"),
    }
    return [words.format(count) for words, count in counts.items() if not count.startswith("0 ")]
