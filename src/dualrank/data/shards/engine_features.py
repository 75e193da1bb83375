"""Features that stay in an engine: joined there, and fetched a shard at a time.

The tables are `documents`, the rows of the features with their shard, and `rows_of_pairs`, which
says of every pair that lists show which row of its shard's features it is, in the order of query
and document; NULL where a pair has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dualrank.data.catalogue import Catalogue
from dualrank.data.feature_rows import (
    FEATURES,
    GRADE,
    KEYS,
    FeatureRows,
    columns_to_read,
    lengths_of_lists,
    uneven,
)
from dualrank.data.index_columns import say_left_out, unread
from dualrank.data.log.assembly import catalogue_in_order
from dualrank.data.log.engine import Engine, numbered, only_value
from dualrank.data.log.features_join import nothing_in_common
from dualrank.data.log.log_rows import id_as_text
from dualrank.errors import DataError
from dualrank.sentences import document_of

VIEW = "features"
"""What the features are called in an engine, as they were given."""


@dataclass(frozen=True)
class EngineFeatures:
    """The features of all documents, in the tables of an engine.

    `columns` are those of the given table that hold the features: one of lists, or one for each.
    """

    engine: Engine
    where: str
    columns: tuple[str, ...]
    count: int

    @classmethod
    def keep(
        cls,
        engine: Engine,
        where: str,
        schemas: Sequence[pa.Schema],
        numbering: Sequence[str],
        shards: int,
    ) -> EngineFeatures:
        """Lay the view `features`, of files with these schemas, out over shards, and check it.

        Columns that are `numbering` the rows of files are no features.
        """
        columns = _columns(where, schemas, numbering)
        types = engine.types(VIEW)
        query, document = (id_as_text(engine.quote(key), types[key]) for key in KEYS)
        values = ", ".join(f"{engine.quote(name)} AS f{i}" for i, name in enumerate(columns))
        engine.keep(
            "documents",
            f"SELECT {engine.shard('query', shards)} AS shard, * FROM "
            f"(SELECT {query} AS query, {document} AS document, {values} FROM {VIEW})",
            by="shard",
        )
        count = len(columns)
        if columns == (FEATURES,):
            # Of what is missing, empty or filled, the largest is filled.
            count = len(only_value(engine, "SELECT max(f0) FROM documents") or ())
        features = cls(engine, where, columns, count)
        features._check()
        row = numbered("query", "document")
        engine.keep(
            "rows_of_pairs",
            "SELECT p.shard, p.pair, d.row FROM pairs p LEFT JOIN "
            f"(SELECT shard, query, document, {row} AS row FROM documents) d "
            "ON p.shard = d.shard AND p.query = d.query AND p.document = d.document",
            by="shard",
        )
        features._require_some_of_log()
        return features

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the features, where each is a column."""
        return None if self.columns == (FEATURES,) else self.columns

    def _check(self) -> None:
        """Refuse what is no document, or one of which there are two."""
        engine = self.engine
        if not only_value(engine, "SELECT count(*) FROM documents"):
            raise DataError(f"{self.where}: there are no documents")
        for key, column in zip(KEYS, ("query", "document"), strict=True):
            if missing := only_value(
                engine, f"SELECT count(*) FROM documents WHERE {column} IS NULL"
            ):
                raise DataError(f"{self.where}: {missing} rows have no {key}")
        twice = engine.fetch(
            "SELECT query, document FROM documents GROUP BY query, document HAVING count(*) > 1 "
            "ORDER BY query, document LIMIT 1"
        ).to_pylist()
        for row in twice:
            raise DataError(
                f"{self.where}: {document_of(row['query'], row['document'])} stands there twice; "
                "expected one row of features"
            )

    def _require_some_of_log(self) -> None:
        """Refuse features of documents of which the log shows none."""
        engine, first = self.engine, "ORDER BY query, document LIMIT 1"
        if only_value(engine, "SELECT count(row) FROM rows_of_pairs"):
            return
        shown, there = (
            engine.fetch(f"SELECT query, document FROM {table} {first}").to_pylist()
            for table in ("pairs", "documents")
        )
        for pair in shown:  # a log of which no list is left shows none, and is refused for that
            ours, theirs = ((row["query"], row["document"]) for row in (pair, there[0]))
            raise DataError(nothing_in_common(self.where, ours, theirs))

    def documents(self, shard: int) -> tuple[Catalogue, NDArray[np.float32]]:
        """The names of a shard's documents, and their features."""
        values = [f"f{number}" for number in range(len(self.columns))]
        fetched = self.engine.fetch(
            f"SELECT query, document, {', '.join(values)} FROM documents WHERE shard = {shard} "
            "ORDER BY query, document"
        )
        catalogue = catalogue_in_order(fetched)
        if fetched.num_rows == 0:
            return catalogue, np.empty((0, self.count), np.float32)
        table = fetched.select(values).rename_columns(self.columns)
        if self.names is None:
            least, most = (length or 0 for length in lengths_of_lists(table[FEATURES]))
            if (least, most) != (self.count, self.count):
                raise DataError(uneven(self.where, min(least, self.count), max(most, self.count)))
        rows = FeatureRows.of(table, self.where, names=self.names, keys=())
        if not (np.isfinite(rows.matrix) | np.isnan(rows.matrix)).all():
            queries = catalogue.query_ids[catalogue.query_of_document]
            named = replace(
                rows, queries=queries.astype(np.str_), documents=catalogue.doc_ids.astype(np.str_)
            )
            named.require_finite(self.where)
        return catalogue, rows.matrix

    def rows_of_pairs(self, shard: int) -> NDArray[np.int32]:
        """Of every pair of a shard the row of its features, −1 where it has none."""
        table = self.engine.fetch(
            f"SELECT coalesce(row, -1) AS row FROM rows_of_pairs WHERE shard = {shard} "
            "ORDER BY pair"
        )
        return np.asarray(table["row"].to_numpy(), dtype=np.int32)


def _columns(where: str, schemas: Sequence[pa.Schema], numbering: Sequence[str]) -> tuple[str, ...]:
    """The columns with features, over all files; what only numbers the rows is left out."""
    found, left_out = dict[str, None](), dict[str, None]()
    for schema in schemas:
        columns = columns_to_read(schema, where)
        found |= dict.fromkeys(name for name in columns if name not in (*KEYS, GRADE))
        left_out |= dict.fromkeys(unread(schema, columns))
    if FEATURES in found and len(found) > 1:
        raise DataError(f"{where}: some files have a column 'features', others do not")
    for name in [each for each in numbering if each in found]:
        del found[name]
        left_out[name] = None
    if left_out:
        say_left_out(where, list(left_out))
    if not found:
        raise DataError(f"{where}: there are no features beside query_id and doc_id")
    return tuple(found)
