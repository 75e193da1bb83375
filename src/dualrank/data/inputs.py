"""What functions take in: the nouns, or the files and data frames that become them."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dualrank.data.catalogue import Catalogue
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.feature_rows import KEYS, FeatureRows, by_query
from dualrank.data.features import THE_FEATURES, read_features
from dualrank.data.frames import is_frame, to_table
from dualrank.data.log.read_log import finish, read_log
from dualrank.data.runs import scores_of_pairs
from dualrank.errors import DataError

SCORE = "score"


def dataset_from(features: Any, **known: Any) -> Dataset:
    """A data set as it is, or what `read_features` reads."""
    return features if isinstance(features, Dataset) else read_features(features, **known)


def log_from(log: Any) -> ClickLog:
    """A log as it is, or what `read_log` reads."""
    return log if isinstance(log, ClickLog) else read_log(log)


@overload
def log_and_dataset(log: Any, features: None) -> tuple[ClickLog, None]: ...
@overload
def log_and_dataset(log: Any, features: Any) -> tuple[ClickLog, Dataset]: ...
def log_and_dataset(log: Any, features: Any) -> tuple[ClickLog, Dataset | None]:
    """A log and the data set that its lists point to, if features are given.

    A log that was read by itself numbers its documents in an order of its own.
    """
    if features is None:
        return log_from(log), None
    dataset = dataset_from(features)
    if not isinstance(log, ClickLog):
        return read_log(log, dataset), dataset
    ours, there = log.catalogue, dataset.catalogue
    if ours is None or log.reading is None or _alike(ours, there):
        return log, dataset
    return finish(log, dataset, 0.0, log.reading.bad_shares), dataset


def rows_from(frame: Any, *, names: tuple[str, ...] | None, count: int) -> FeatureRows:
    """The features of a frame that a model can take: by name where it has names, or all."""
    table = to_table(frame, THE_FEATURES)
    rows = FeatureRows.of(table, THE_FEATURES, names=names, keys=())
    if rows.matrix.shape[1] != count:
        raise DataError(f"{THE_FEATURES}: {rows.matrix.shape[1]} features; expected {count}")
    rows.require_finite(THE_FEATURES)
    return rows


def judged_from(judged: Any) -> tuple[Dataset, NDArray[np.int64] | None]:
    """A judged data set, and of which row of a frame each of its documents is.

    A frame needs `query_id` and `grade`; its other columns are not looked at.
    """
    if isinstance(judged, Dataset) or not is_frame(judged):
        return dataset_from(judged), None
    where = "the judgments"
    table = to_table(judged, where)
    missing = [name for name in ("query_id", "grade") if name not in table.column_names]
    if missing:
        raise DataError(f"{where}: column {missing[0]!r} is missing; expected query_id and grade")
    chosen = [name for name in (*KEYS, "grade") if name in table.column_names]
    # Grades stand in the place of features, of which a judged table need have none.
    rows = FeatureRows.of(table.select(chosen), where, names=["grade"], keys=["query_id"])
    if len(rows.matrix) == 0:
        raise DataError(f"{where}: there are no documents")
    assert rows.queries is not None
    order = by_query(rows.queries)
    dataset = Dataset.from_arrays(
        np.zeros((len(order), 1)),
        rows.queries[order],
        None if rows.grades is None else rows.grades[order],
        doc_ids=None if rows.documents is None else rows.documents[order],
    )
    if rows.documents is not None:
        for query, document in sorted(dataset.catalogue.pairs_twice()):
            raise DataError(
                f"{where}: document {document!r} of query {query!r} stands there twice; expected "
                "one row of judgments"
            )
    return dataset, order


def scores_from(scores: Any, dataset: Dataset, order: NDArray[np.int64] | None) -> Any:
    """One score per document of a data set, which was made from rows in this order.

    A frame with `query_id`, `doc_id` and `score` may stand in any order, and documents that it
    leaves out come last; with `score` alone it has a row for each document.
    """
    if is_frame(scores):
        where = "the scores"
        table = to_table(scores, where)
        if SCORE not in table.column_names:
            raise DataError(f"{where}: column {SCORE!r} is missing")
        keys = KEYS if set(KEYS) <= set(table.column_names) else ()
        rows = FeatureRows.of(table.select([*keys, SCORE]), where, names=[SCORE], keys=keys)
        scores = rows.matrix[:, 0]
        if rows.queries is not None and rows.documents is not None:
            pairs = zip(rows.queries.tolist(), rows.documents.tolist(), strict=True)
            places = (f", row {number}" for number in range(1, len(scores) + 1))
            found = zip(places, pairs, scores.tolist(), strict=True)
            return scores_of_pairs(where, found, dataset)
    if order is None:
        return scores
    values = np.asarray(scores)
    if values.shape != (len(order),):
        raise DataError(f"scores has shape {values.shape}, but there are {len(order)} documents")
    return values[order]


def _alike(ours: Catalogue, there: Catalogue) -> bool:
    """Whether two catalogues give the same documents the same numbers."""
    return (
        np.array_equal(ours.doc_ids, there.doc_ids)
        and np.array_equal(ours.query_of_document, there.query_of_document)
        and np.array_equal(ours.query_ids, there.query_ids)
    )
