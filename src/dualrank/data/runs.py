"""Scores of documents as files: Parquet, CSV, or TREC runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from dualrank.data.dataset import Dataset
from dualrank.data.lists import rank_documents
from dualrank.errors import DataError
from dualrank.storage import atomic_file, require_suffix, write_table

TREC_SUFFIXES = (".run", ".trec", ".txt")


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
    if path.suffix in (".parquet", ".csv"):
        write_table(path, table, "a run")
        return
    require_suffix(path, "a run", ".parquet", ".csv", *TREC_SUFFIXES)
    with atomic_file(path) as file:
        columns = (column.to_pylist() for column in table.columns)
        for query, document, score, rank in zip(*columns, strict=True):
            file.write(f"{query} Q0 {document} {rank} {score!r} dualrank\n".encode())


def read_run(path: Path, dataset: Dataset) -> NDArray[np.float64]:
    """The scores of a run file, in the order of the data set; unranked documents come last."""
    if not path.exists():
        raise DataError(f"{path}: there is no such file or model directory")
    if path.suffix == ".parquet":
        table = _columns(pyarrow.parquet.read_table(path), path)
    elif path.suffix == ".csv":
        table = _columns(pyarrow.csv.read_csv(path), path)
    else:
        table = _read_trec(path)
    names = (table[key].cast(pa.string()).to_pylist() for key in ("query_id", "doc_id"))
    found = dict(zip(zip(*names, strict=True), table["score"].to_pylist(), strict=True))
    scores = np.array([found.get(pair, -np.inf) for pair in dataset.pairs()], dtype=np.float64)
    if np.isnan(scores).any():
        raise DataError(f"{path}: a score is not a number")
    if not np.isfinite(scores).any():
        raise DataError(f"{path}: none of its documents is in this data set")
    return scores


def _columns(table: pa.Table, path: Path) -> pa.Table:
    missing = [name for name in ("query_id", "doc_id", "score") if name not in table.column_names]
    if missing:
        raise DataError(f"{path}: no column {missing[0]!r}; a run has query_id, doc_id, score")
    return table


def _read_trec(path: Path) -> pa.Table:
    queries, documents, scores = [], [], []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            fields = line.split()
            try:
                query, _, document, _, score, _ = fields
                scores.append(float(score))
            except ValueError as error:
                raise DataError(
                    f"{path}:{number}: a TREC run line is 'query Q0 document rank score name', "
                    f"found {line.strip()[:60]!r}"
                ) from error
            queries.append(query)
            documents.append(document)
    return pa.table({"query_id": queries, "doc_id": documents, "score": scores})
