"""Ranking files of features with a model, in a memory that does not grow with them.

Parquet files, and the features of a log in shards, are read some rows at a time, scored, and sorted
by DuckDB (`ScoreOrder`). LETOR text, what a service displayed, and rankers that see whole lists
take all documents at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from dualrank.data.feature_batches import FeatureFiles, FeatureSource, ShardedFeatures
from dualrank.data.features import is_parquet, read_features
from dualrank.data.run_writing import require_run_name, writing_run
from dualrank.data.runs import write_run
from dualrank.data.score_order import MEMORY, ScoreOrder
from dualrank.data.shards.sharded_log import ShardedLog, is_sharded
from dualrank.errors import DataError, SettingsError
from dualrank.learning.batch_scoring import BatchScoring
from dualrank.learning.model import Model
from dualrank.learning.score_checks import OF_ONE_QUERY, Ties, hardly_any_differ
from dualrank.progress import shows_progress
from dualrank.sentences import document_of

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Ranked:
    """How much was ranked, and what there is to say about it."""

    queries: int
    documents: int
    warning: str | None = None


@shows_progress("ranking")
def rank_features(
    model: Model,
    features: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    memory: str = MEMORY,
    progress: Progress | None = None,
) -> Ranked:
    """Score and rank the documents of every query, and write the run.

    `out` ends in .parquet, .csv, or .run (TREC), or it is a folder, for Parquet files of some
    million rows each. Queries come in the order of their first row, documents best first, those of
    equal score in the order of the features. `memory` is DuckDB's; beyond it the sort uses disk.
    """
    path = Path(out)
    require_run_name(path)
    source = _source(model, features)
    if source is None:
        count, names = model.scaler.input_count, model.feature_names
        dataset = read_features(features, count=count, names=names, progress=progress)
        scores = model.predict(dataset)
        write_run(path, dataset, scores)
        told = hardly_any_differ(scores, dataset.query_of_document)
        return Ranked(len(dataset), dataset.document_count, told)
    return _rank(model, source, path, memory, progress or (lambda done, total: None))


def _source(model: Model, features: str | os.PathLike[str]) -> FeatureSource | None:
    """What gives the features some rows at a time; None where all are needed at once."""
    count, names = model.scaler.input_count, model.feature_names
    if is_sharded(features):
        if model.ranker.by_list:
            raise SettingsError(
                f"{os.fspath(features)}: this ranker sees whole lists, and ranks no shards; give "
                "the features that they were made of"
            )
        return ShardedFeatures(ShardedLog.open(features), count=count, names=names)
    if model.ranker.by_list or not is_parquet(os.fspath(features)):
        return None
    files = FeatureFiles(features, count=count, names=names)
    return None if files.latest else files


def _rank(
    model: Model, source: FeatureSource, out: Path, memory: str, progress: Progress
) -> Ranked:
    total = 2 * source.documents  # each is scored, and then written
    ties, twice, queries = Ties(), _Twice(source.where), 0
    with ScoreOrder(source.where, memory) as order:
        scoring = BatchScoring(model, source.where, source.names)
        for batch in source.batches():
            order.add(batch.queries, batch.documents, scoring.scores(batch))
            progress(scoring.documents, total)
        scoring.require_good()
        written = 0
        with writing_run(out) as write:
            for rows in order.ranked():
                group = np.cumsum(rows["rank"].to_numpy() == 1)
                twice.look(rows, group)
                ties.add(rows["score"].to_numpy(), group)
                write(rows)
                queries += int(group[-1])
                written += len(rows)
                progress(scoring.documents + written, total)
            twice.refuse()
    return Ranked(queries, written, ties.warning(OF_ONE_QUERY))


class _Twice:
    """The first document, by names, of all that stand twice in a query."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._first: tuple[str, str] | None = None

    def look(self, rows: pa.Table, group: np.ndarray) -> None:
        """Look at all documents of some queries."""
        names = rows["doc_id"].combine_chunks().dictionary_encode()
        pair = group * len(names.dictionary) + names.indices.to_numpy(zero_copy_only=False)
        order = np.argsort(pair, kind="stable")
        again = order[1:][pair[order][1:] == pair[order][:-1]]
        found = [(rows["query_id"][row].as_py(), rows["doc_id"][row].as_py()) for row in again]
        if found:
            self._first = min(found if self._first is None else [*found, self._first])

    def refuse(self) -> None:
        """Refuse features in which there is one."""
        if self._first is not None:
            raise DataError(
                f"{self._where}: {document_of(*self._first)} stands there twice; expected one row "
                "of features"
            )
