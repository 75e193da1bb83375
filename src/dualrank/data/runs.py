"""Scores of documents as files: Parquet, CSV, or TREC runs, in one file or in many."""

from __future__ import annotations

import glob
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dualrank.data.dataset import Dataset
from dualrank.data.lists import rank_documents
from dualrank.data.log.log_files import find_source
from dualrank.data.run_writing import writing_run
from dualrank.data.shards.sharded_log import is_sharded
from dualrank.data.table_files import SUFFIXES as TABLE_SUFFIXES
from dualrank.data.table_files import read_table, suffix_of_table, table_batches
from dualrank.data.trec import read_words
from dualrank.errors import DataError
from dualrank.sentences import absent, document_of

UNFINISHED = "_temporary"
"""Where Spark keeps what it has not finished writing."""


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


def is_run(path: Path) -> bool:
    """Whether a ranking of this name is a run: a file, a pattern, or a folder with its parts."""
    if not path.is_dir():
        return True
    return not (path / "manifest.json").exists() and any(
        part.suffix == ".parquet" and not part.name.startswith((".", "_"))
        for part in path.rglob("*")
    )


def read_run(path: Path, dataset: Dataset) -> NDArray[np.float64]:
    """The scores of a run, in the order of the data set; unranked documents come last.

    It is a file, or a folder or pattern of Parquet files, of which no more is held than the scores
    of the data set's documents.
    """
    if path.is_dir() or (not path.exists() and glob.has_magic(str(path))):
        if (path / UNFINISHED).exists():
            raise DataError(
                f"{path}: there is a folder {UNFINISHED} in it: Spark has not finished this run; "
                "wait for it, or rank again"
            )
        if is_sharded(path):
            raise DataError(
                f"{path}: a log in shards, and no run; rank its documents with a model first"
            )
        parts = [Path(file) for file in find_source(path).files]
        return _scores_of_parts(path, parts, dataset)
    if not path.exists():
        raise DataError(absent(path, "file or model directory"))
    if suffix_of_table(path) == ".parquet":
        return _scores_of_parts(path, [path], dataset)
    table = suffix_of_table(path) in TABLE_SUFFIXES
    rows = _rows_of_table(path) if table else _rows_of_trec(path)
    return scores_of_pairs(str(path), rows, dataset)


def _scores_of_parts(path: Path, parts: Sequence[Path], dataset: Dataset) -> NDArray[np.float64]:
    """The scores in several tables; what is not of the data set's queries is passed over."""
    _require_each_once(dataset)
    row_of = {pair: row for row, pair in enumerate(dataset.pairs())}
    asked = pa.array(dataset.query_ids.tolist(), pa.string())
    found = np.full(dataset.document_count, -np.inf)
    is_empty = True
    for part in parts:
        before = 1
        for table in table_batches(part, ("query_id", "doc_id"), "score"):
            scores = table["score"].to_numpy()
            for number in np.flatnonzero(~np.isfinite(scores))[:1]:
                score = table["score"][int(number)].as_py()
                raise DataError(_no_score(f"{part}, row {before + number}", score))
            rows = np.flatnonzero(pc.is_in(table["query_id"], asked).to_numpy())
            taken = (table[name].take(rows).to_pylist() for name in ("query_id", "doc_id"))
            for number, *pair in zip(rows.tolist(), *taken, strict=True):
                row = row_of.get((pair[0], pair[1]))
                if row is None:
                    continue
                if found[row] not in (-np.inf, scores[number]):
                    raise DataError(_again(f"{part}, row {before + number}", pair[0], pair[1]))
                found[row] = scores[number]
            before += len(table)
            is_empty = is_empty and len(table) == 0
    if not np.isfinite(found).any():
        raise DataError(_ranks_nothing(path, is_empty=is_empty))
    return found


def read_rankings(path: Path, depth: int) -> dict[str, tuple[str, ...]]:
    """The first `depth` documents of every query of a run file, by score; ties as they stand."""
    if path.is_dir():
        raise DataError(f"{path}: a folder; rankings are taken from one run file")
    if not path.is_file():
        raise DataError(absent(path))
    table = suffix_of_table(path) in TABLE_SUFFIXES
    found: dict[str, list[tuple[float, str]]] = {}
    for (query, document), score in _by_pair(
        str(path), _rows_of_table(path) if table else _rows_of_trec(path)
    ).items():
        found.setdefault(query, []).append((-score, document))
    if not found:
        raise DataError(_ranks_nothing(path, is_empty=True))
    return {
        query: tuple(document for _, document in sorted(rows, key=lambda row: row[0])[:depth])
        for query, rows in found.items()
    }


def scores_of_pairs(
    where: str, rows: Iterable[tuple[str, tuple[str, str], float | None]], dataset: Dataset
) -> NDArray[np.float64]:
    """Scores by query and document, in the order of a data set; rows come with their place."""
    found = _by_pair(where, rows)
    _require_each_once(dataset)
    scores = np.array([found.get(pair, -np.inf) for pair in dataset.pairs()], dtype=np.float64)
    if not np.isfinite(scores).any():
        raise DataError(_ranks_nothing(where, is_empty=not found))
    return scores


def _ranks_nothing(where: str | Path, *, is_empty: bool) -> str:
    why = "the run is empty" if is_empty else "none of its documents is in this data set"
    return f"{where}: {why}"


def _require_each_once(dataset: Dataset) -> None:
    for query, document in sorted(dataset.catalogue.pairs_twice()):
        raise DataError(
            f"{dataset.source}: {document_of(query, document)} stands there twice; "
            "a run cannot tell one from the other"
        )


def _no_score(place: str, score: float | None) -> str:
    said = "missing" if score is None else score
    return f"{place}: the score is {said}; expected a finite number"


def _again(place: str, query: str, document: str) -> str:
    return (
        f"{place}: {document_of(query, document)} stands there before, with another score; "
        "expected each document of a query once"
    )


def _by_pair(
    where: str, rows: Iterable[tuple[str, tuple[str, str], float | None]]
) -> dict[tuple[str, str], float]:
    """The score of every query and document, checked."""
    found: dict[tuple[str, str], float] = {}
    for place, pair, score in rows:
        if score is None or not math.isfinite(score):
            raise DataError(_no_score(f"{where}{place}", score))
        if found.setdefault(pair, score) != score:
            raise DataError(_again(f"{where}{place}", *pair))
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
