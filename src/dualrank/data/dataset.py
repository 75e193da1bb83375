"""The noun that carries documents: one matrix for all of them, offsets per query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualrank.data.catalogue import Catalogue
from dualrank.data.feature_rows import FeatureRows
from dualrank.data.frames import is_frame, to_table
from dualrank.errors import DataError
from dualrank.sentences import counted, listed, start_of
from dualrank.showing.card import card, facts


@dataclass(frozen=True, eq=False)
class Dataset:
    """Queries with their candidate documents, as a few flat arrays.

    The documents of query `q` are the rows `offsets[q]:offsets[q + 1]` of `features`. Readers
    and `from_arrays` check what comes in; the constructor trusts its arguments.

    >>> data = Dataset.from_arrays([[0.1], [0.7], [0.3]], qid=[7, 7, 9], grades=[0, 2, 1])
    >>> data
    Dataset(2 queries, 3 documents, 1 feature, grades 0 to 2)
    >>> data.lengths
    array([2, 1])
    """

    features: NDArray[np.float32]
    offsets: NDArray[np.int64]
    query_ids: NDArray[np.str_]
    grades: NDArray[np.float32] | None = None
    doc_ids: NDArray[np.str_] | None = None
    max_grade: float = 0.0
    feature_names: tuple[str, ...] | None = None
    source: str = "the features"
    """Where the features were read from, for sentences about them."""

    @classmethod
    def from_arrays(
        cls,
        features: ArrayLike | Any,
        qid: ArrayLike,
        grades: ArrayLike | None = None,
        *,
        doc_ids: ArrayLike | None = None,
        max_grade: float | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> Dataset:
        """Build a data set from arrays with one row per document, rows of a query together.

        A feature that is nan is missing, which trees can learn from, and networks not. Features may
        be a data frame, whose columns then give them their names.
        """
        if is_frame(features):
            rows = FeatureRows.of(to_table(features, "the features"), "the features", keys=())
            features, feature_names = rows.matrix, feature_names or rows.names
        matrix = _matrix(features)
        if matrix.ndim != 2:
            raise DataError(
                f"features must be a matrix of documents by features, not of {matrix.ndim} "
                "dimensions"
            )
        ids = np.asarray(qid)
        if ids.shape != (len(matrix),):
            raise DataError(f"qid has shape {ids.shape}, but there are {len(matrix)} documents")
        if len(matrix) == 0:
            raise DataError("there are no documents")
        bad = np.flatnonzero(np.isinf(matrix).any(axis=1))
        if len(bad):
            raise DataError(f"row {bad[0]} of features holds an infinity")
        if doc_ids is not None and np.shape(doc_ids) != (len(matrix),):
            raise DataError(
                f"doc_ids has shape {np.shape(doc_ids)}, but there are {len(matrix)} documents"
            )
        if feature_names is not None and len(feature_names) != matrix.shape[1]:
            raise DataError(
                f"there are {len(feature_names)} feature names for {matrix.shape[1]} features"
            )
        starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]])
        names = ids[starts].astype(str)
        unique, counts = np.unique(names, return_counts=True)
        if len(unique) < len(names):
            raise DataError(
                f"query {str(unique[counts > 1][0])!r} occurs in separate places; "
                "rows of one query must stand together"
            )
        return cls(
            features=matrix,
            offsets=np.append(starts, len(matrix)).astype(np.int64),
            query_ids=names,
            doc_ids=None if doc_ids is None else np.asarray(doc_ids).astype(str),
            feature_names=None if feature_names is None else tuple(feature_names),
        ).with_grades(grades, max_grade)

    def with_grades(self, grades: ArrayLike | None, max_grade: float | None = None) -> Dataset:
        """The same documents with these grades, checked."""
        if grades is None:
            return replace(self, max_grade=max_grade or 0.0)
        values = np.ascontiguousarray(grades, dtype=np.float32)
        if values.shape != (len(self.features),):
            raise DataError(
                f"grades has shape {values.shape}, but there are {len(self.features)} documents"
            )
        bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
        if len(bad):
            raise DataError(f"row {bad[0]} has grade {values[bad[0]]:g}; grades are 0 or more")
        highest = float(values.max())
        if max_grade is not None and highest > max_grade:
            raise DataError(
                f"row {int(values.argmax())} has grade {highest:g}, "
                f"above the declared maximum of {max_grade:g}"
            )
        return replace(self, grades=values, max_grade=highest if max_grade is None else max_grade)

    def with_features(self, names: Sequence[str] | None) -> Dataset:
        """The same documents with the features of these names, in this order.

        Where either has no names, the features are taken to be those already.
        """
        own = self.feature_names
        if names is None or own is None or tuple(names) == own:
            return self
        missing = [name for name in names if name not in own]
        if missing:
            raise DataError(f"{self.source}: feature {missing[0]!r} is missing")
        columns = [own.index(name) for name in names]
        matrix = np.ascontiguousarray(self.features[:, columns])
        return replace(self, features=matrix, feature_names=tuple(names))

    def filled(self) -> Dataset:
        """The same documents with the mean of a feature where it is missing; 0 where it always is.

        For what looks at features without ranking by them. Rankers say themselves whether they can
        do with less.
        """
        missing = np.isnan(self.features)
        if not missing.any():
            return self
        known = np.maximum((~missing).sum(axis=0), 1)
        means = np.where(missing, 0.0, self.features).sum(axis=0, dtype=np.float64) / known
        return replace(self, features=np.where(missing, means.astype(np.float32), self.features))

    def __repr__(self) -> str:
        n = self.feature_count
        grades = "no grades" if self.grades is None else f"grades 0 to {self.max_grade:g}"
        return (
            f"Dataset({len(self)} {'query' if len(self) == 1 else 'queries'}, "
            f"{self.document_count} document{'s' * (self.document_count != 1)}, "
            f"{n} feature{'s' * (n != 1)}, {grades})"
        )

    def _repr_html_(self) -> str:
        """A card for notebooks: how much the data set holds, and what its features are called."""
        lengths = self.lengths
        each = f"{lengths.min():,} to {lengths.max():,} a query" if len(self) else ""
        grades = {} if self.grades is None else {"grades": f"0 to {self.max_grade:g}"}
        names = {} if self.feature_names is None else {"features": listed(self.feature_names)}
        about = (
            counted(len(self), "queries"),
            counted(self.document_count, "documents"),
            counted(self.feature_count, "features"),
        )
        known = {"from": start_of(self.source), "documents": each, **grades, **names}
        return card("Dataset", about, facts(known))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def document_count(self) -> int:
        """How many documents there are, over all queries."""
        return len(self.features)

    @property
    def feature_count(self) -> int:
        """How many features each document has."""
        return self.features.shape[1]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Documents per query."""
        return np.diff(self.offsets)

    @property
    def query_of_document(self) -> NDArray[np.int64]:
        """The index of the query that each document belongs to."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def ids_of_documents(self) -> NDArray[np.str_]:
        """The ids of the documents; where the data have none, their row numbers."""
        if self.doc_ids is not None:
            return self.doc_ids
        return np.arange(self.document_count).astype(str)

    def pairs(self) -> list[tuple[str, str]]:
        """The ids of query and document of every row."""
        return self.catalogue.pairs()

    @property
    def catalogue(self) -> Catalogue:
        """The names of the queries and documents."""
        return Catalogue(self.query_ids, self.ids_of_documents(), self.query_of_document)

    def require_grades(self) -> NDArray[np.float32]:
        """The grades, or an error that says that they are missing."""
        if self.grades is None:
            raise DataError("this data set has no grades; they are needed here")
        return self.grades

    def take(self, queries: ArrayLike) -> Dataset:
        """The data set of these queries (indices), in this order."""
        chosen = np.asarray(queries, dtype=np.int64)
        lengths = self.lengths[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], lengths)
        return replace(
            self,
            features=np.ascontiguousarray(self.features[rows]),
            offsets=offsets,
            query_ids=self.query_ids[chosen],
            grades=None if self.grades is None else self.grades[rows],
            doc_ids=None if self.doc_ids is None else self.doc_ids[rows],
        )

    def keep(self, documents: NDArray[np.bool_]) -> Dataset:
        """The data set of the documents marked, and of the queries that still have one."""
        lengths = np.add.reduceat(documents, self.offsets[:-1], dtype=np.int64)
        left = lengths > 0
        return replace(
            self,
            features=self.features[documents],
            offsets=np.append(0, np.cumsum(lengths[left])),
            query_ids=self.query_ids[left],
            grades=None if self.grades is None else self.grades[documents],
            doc_ids=None if self.doc_ids is None else self.doc_ids[documents],
        )


def _matrix(features: Any) -> NDArray[np.float32]:
    try:
        return np.ascontiguousarray(features, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"features must be numbers, documents by features ({error})") from error


def concatenate(datasets: Sequence[Dataset]) -> Dataset:
    """One data set with the queries of all, which must be different queries.

    Grades and document ids are kept where every data set has them.
    """
    first = datasets[0]
    for other in datasets:
        if other.feature_count != first.feature_count:
            raise DataError(
                f"one data set has {first.feature_count} features, another "
                f"{other.feature_count}; expected equal numbers"
            )
    query_ids = np.concatenate([data.query_ids for data in datasets])
    unique, counts = np.unique(query_ids, return_counts=True)
    if len(unique) < len(query_ids):
        raise DataError(
            f"query {str(unique[counts > 1][0])!r} occurs in more than one data set; "
            "expected different queries"
        )
    grades = [data.grades for data in datasets if data.grades is not None]
    doc_ids = [data.doc_ids for data in datasets if data.doc_ids is not None]
    return replace(
        first,
        features=np.concatenate([data.features for data in datasets]),
        offsets=np.append(0, np.cumsum(np.concatenate([data.lengths for data in datasets]))),
        query_ids=query_ids,
        grades=np.concatenate(grades) if len(grades) == len(datasets) else None,
        doc_ids=np.concatenate(doc_ids) if len(doc_ids) == len(datasets) else None,
        max_grade=max(data.max_grade for data in datasets),
    )


@dataclass(frozen=True)
class Splits:
    """Training, validation and test queries of one collection."""

    train: Dataset
    valid: Dataset
    test: Dataset
    note: str = field(default="", kw_only=True)
    """What a reader of results must know about the split."""
