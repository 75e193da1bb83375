"""Scores of documents as files: Parquet, CSV, or TREC runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dualrank.data.dataset import Dataset
from dualrank.data.lists import rank_documents
from dualrank.data.run_writing import writing_run
from dualrank.data.table_files import SUFFIXES as TABLE_SUFFIXES
from dualrank.data.table_files import read_table, suffix_of_table
from dualrank.data.trec import read_words
from dualrank.errors import DataError
from dualrank.sentences import document_of


def write_run(path: Path, dataset: Dataset, scores: NDArray[np.floating]) -> None:
    """Write query_id, doc_id, score and rank, every query best first, by the file's suffix."""
    order = rank_documents(dataset, scores)
    ranks = np.arange(len(order)) - np.repeat(dataset.offsets[:-1], dataset.lengths) + 1
    table = pa.table(
        {
            "query_id": dataset.query_ids[dataset.query_of_document],
            "doc_id": dataset.ids_of_documents()[order],
            "score": scores[order],
            "rank": ranks,
        }
    )
    with writing_run(path) as write:
        write(table)


def read_run(path: Path, dataset: Dataset) -> NDArray[np.float64]:
    """The scores of a run file, in the order of the data set; unranked documents come last."""
    if not path.exists():
        raise DataError(f"{path}: there is no such file or model directory")
    table = suffix_of_table(path) in TABLE_SUFFIXES
    rows = _rows_of_table(path) if table else _rows_of_trec(path)
    return scores_of_pairs(str(path), rows, dataset)


def read_rankings(path: Path, depth: int) -> dict[str, tuple[str, ...]]:
    """The first `depth` documents of every query of a run file, by score; ties as they stand."""
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    table = suffix_of_table(path) in TABLE_SUFFIXES
    found: dict[str, list[tuple[float, str]]] = {}
    for (query, document), score in _by_pair(
        str(path), _rows_of_table(path) if table else _rows_of_trec(path)
    ).items():
        found.setdefault(query, []).append((-score, document))
    if not found:
        raise DataError(f"{path}: the run is empty")
    return {
        query: tuple(document for _, document in sorted(rows, key=lambda row: row[0])[:depth])
        for query, rows in found.items()
    }


def scores_of_pairs(
    where: str, rows: Iterable[tuple[str, tuple[str, str], float | None]], dataset: Dataset
) -> NDArray[np.float64]:
    """Scores by query and document, in the order of a data set; rows come with their place."""
    found = _by_pair(where, rows)
    for query, document in sorted(dataset.catalogue.pairs_twice()):
        raise DataError(
            f"{dataset.source}: {document_of(query, document)} stands there twice; "
            "a run cannot tell one from the other"
        )
    scores = np.array([found.get(pair, -np.inf) for pair in dataset.pairs()], dtype=np.float64)
    if not np.isfinite(scores).any():
        raise DataError(f"{where}: none of its documents is in this data set")
    return scores


def _by_pair(
    where: str, rows: Iterable[tuple[str, tuple[str, str], float | None]]
) -> dict[tuple[str, str], float]:
    """The score of every query and document, checked."""
    found: dict[tuple[str, str], float] = {}
    for place, pair, score in rows:
        if score is None or not math.isfinite(score):
            said = "missing" if score is None else score
            raise DataError(f"{where}{place}: the score is {said}; expected a finite number")
        if found.setdefault(pair, score) != score:
            query, document = pair
            raise DataError(
                f"{where}{place}: {document_of(query, document)} stands there before, "
                "with another score; expected each document of a query once"
            )
    return found


def _rows_of_table(path: Path) -> Iterator[tuple[str, tuple[str, str], float | None]]:
    table = read_table(path, ("query_id", "doc_id"), "score", needs_number=True)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    for number, (query, document, score) in enumerate(rows, start=1):
        yield f", row {number}", (query, document), score


def _rows_of_trec(path: Path) -> Iterator[tuple[str, tuple[str, str], float]]:
    for number, words in read_words(path, "query Q0 document rank score name"):
        query, _, document, _, written, _ = words
        try:
            score = float(written)
        except ValueError:
            raise DataError(
                f"{path}:{number}: the score is {written[:40]!r}; expected a number"
            ) from None
        yield f":{number}", (query, document), score
