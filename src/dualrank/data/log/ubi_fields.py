"""The fields of User Behavior Insights, wherever an export put them.

Exports nest these fields (JSON, Parquet), flatten them into columns with dots in their names (CSV),
or wrap each record in `_source`; all are understood.
"""

from __future__ import annotations

from collections.abc import Sequence

from dualrank.data.log.duckdb_engine import DuckDBEngine
from dualrank.errors import DataError
from dualrank.sentences import listed

OBJECT = "event_attributes.object.object_id"
HITS = ("query_response_hit_ids", "query_response_object_ids", "query_response_objects_ids")
"""What a query returned, as UBI 1.3 calls it, and as those before did."""
POSITIONS = (
    "event_attributes.position.ordinal",
    "event_attributes.position.ordinal.index",
    "event_attributes.position",
    "position",
)
"""Where an event may say at which position it was; the first that holds a number counts."""
DWELL_TIMES = ("event_attributes.dwell_time", "event_attributes.object.dwell_time", "dwell_time")
"""Where an event may say how many seconds someone stayed; the first that is there counts."""


class Fields:
    """The fields of a table of records."""

    def __init__(self, engine: DuckDBEngine, table: str, where: str) -> None:
        self.engine, self.table, self.where = engine, table, where
        self.types = engine.types(table)

    def has(self, path: str) -> bool:
        """Whether there is a column that holds this field."""
        return self._expression(path) is not None

    def text(self, path: str) -> str:
        """A field as text, NULL where a record does not have it."""
        found = self._expression(path)
        if found is None:
            raise DataError(
                f"{self.where}: there is no field {path!r}; the records have {listed(self.types)}"
            )
        return f"CAST({found} AS VARCHAR)"

    def first(self, paths: Sequence[str], kind: str = "VARCHAR") -> str:
        """The first of these fields that holds such a value, NULL where none does."""
        found = [f"TRY_CAST({self.text(path)} AS {kind})" for path in paths if self.has(path)]
        return f"coalesce({', '.join(found)})" if found else f"CAST(NULL AS {kind})"

    def list(self, path: str) -> str:
        """A field as a list of texts: a list, a JSON array, or names separated by commas."""
        if path in self.types and self.types[path] == "other":
            return f"CAST({self.engine.quote(path)} AS VARCHAR[])"
        text = f"trim({self.text(path)})"
        return (
            f"CASE WHEN {text} LIKE '[%' THEN from_json({text}, '[\"VARCHAR\"]') "
            f"WHEN {text} = '' THEN [] "
            f"ELSE regexp_split_to_array({text}, '\\s*,\\s*') END"
        )

    def _expression(self, path: str) -> str | None:
        """The column of this name, a field of a nested column, or the column of its last name."""
        if path in self.types:
            return self.engine.quote(path)
        root, _, rest = path.partition(".")
        for column, inner in (("_source", path), (root, rest)):
            if column in self.types and inner:
                steps = "".join(f'."{step}"' for step in inner.split("."))
                nested = self.engine.quote(column)
                document = nested if self.types[column] == "text" else f"to_json({nested})"
                return f"json_extract_string({document}, '${steps}')"
        last = path.rpartition(".")[2]
        return self.engine.quote(last) if last in self.types else None
