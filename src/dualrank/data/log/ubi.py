"""User Behavior Insights 1.3: queries with what they returned, and events with what users did.

A UBI `query_id` names one time that someone searched, so it is a session here; what the user typed,
`user_query`, is the query. The documents displayed are `query_response_hit_ids`, in that order. An
event of an action such as `click` is joined to them by its `query_id` and
`event_attributes.object.object_id`.

Exports nest these fields (JSON, Parquet), flatten them into columns with dots in their names (CSV),
or wrap each record in `_source`; all are understood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dualrank.data.log.columns import REQUIRED, Columns
from dualrank.data.log.engine import DuckDBEngine
from dualrank.data.log.log_format import LogFormat, Source
from dualrank.data.log.log_options import LogOptions
from dualrank.data.log.reading_report import Problem
from dualrank.errors import DataError, SettingsError

OBJECT = "event_attributes.object.object_id"
POSITIONS = ("event_attributes.position.ordinal", "event_attributes.position", "position")
"""Where an event may say at which position it was; the first that holds a number counts."""


@dataclass(frozen=True)
class Ubi(LogFormat):
    """Queries and `events`, files of any format each; events of one of the `actions` are clicks."""

    title = "UBI"
    events: Source
    actions: Sequence[str] = ("click",)

    def __post_init__(self) -> None:
        if not self.actions:
            raise SettingsError("actions is empty; expected names such as click")

    def open(
        self, engine: DuckDBEngine, source: Source, options: LogOptions
    ) -> tuple[Columns, Sequence[Problem]]:
        """Join events to queries; what the join loses is counted."""
        if options.columns:
            raise SettingsError("events go with files of UBI queries, and no other columns")
        return _join(engine, source, self.events, self.actions, options.contexts)


def _join(
    engine: DuckDBEngine,
    queries: Source,
    events: Source,
    actions: Sequence[str],
    contexts: Sequence[str],
) -> tuple[Columns, list[Problem]]:
    engine.open(queries, "ubi_queries")
    engine.open(events, "ubi_events")
    asked = _Fields(engine, "ubi_queries", queries.name)
    optional = [name for name in ("client_id", "timestamp") if asked.has(name)]
    carried = [engine.quote(name) for name in dict.fromkeys((*optional, *contexts))]
    values = [asked.text(name) for name in dict.fromkeys((*optional, *contexts))]
    engine.keep(
        "asked",
        f"SELECT {asked.text('query_id')} AS query_id, {asked.text('user_query')} AS user_query, "
        f"{asked.list('query_response_hit_ids')} AS hits"
        + "".join(f", {value} AS {name}" for value, name in zip(values, carried, strict=True))
        + " FROM ubi_queries",
    )
    done = _Fields(engine, "ubi_events", events.name)
    ordinals = [f"TRY_CAST({done.text(path)} AS INTEGER)" for path in POSITIONS if done.has(path)]
    ordinal = f"coalesce({', '.join(ordinals)})" if ordinals else "NULL"
    engine.keep(
        "clicks",
        f"SELECT {done.text('query_id')} AS query_id, {done.text(OBJECT)} AS doc_id, "
        f"min({ordinal}) AS ordinal, count(*) AS times FROM ubi_events "
        f"WHERE {done.text('action_name')} IN {engine.texts(actions)} GROUP BY 1, 2",
    )
    others = "".join(f", {name}" for name in carried)
    engine.keep(
        "displayed",
        "SELECT query_id, user_query, unnest(hits) AS doc_id, "
        f"generate_subscripts(hits, 1) AS position{others} FROM asked",
    )
    engine.keep(
        "outside",
        "SELECT query_id, doc_id, times FROM clicks c WHERE doc_id IS NOT NULL AND NOT EXISTS "
        "(SELECT 1 FROM displayed d WHERE d.query_id = c.query_id AND d.doc_id = c.doc_id)",
    )
    lowest = "".join(f", min({name}) AS {name}" for name in carried)
    engine.keep(
        "log",
        "SELECT d.query_id AS session_id, d.user_query AS query_id, d.doc_id, d.position, "
        f"c.times IS NOT NULL AS clicked{others} FROM displayed d "
        "LEFT JOIN clicks c ON c.query_id = d.query_id AND c.doc_id = d.doc_id UNION ALL "
        f"SELECT query_id, user_query, doc_id, NULL, TRUE{others} FROM outside JOIN "
        f"(SELECT query_id, min(user_query) AS user_query{lowest} FROM asked GROUP BY query_id) "
        "USING (query_id)",
    )
    columns = Columns({name: name for name in (*REQUIRED, *optional)}, tuple(contexts))
    return columns, _problems(engine)


class _Fields:
    """The fields of a table of records, wherever the export put them."""

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
                f"{self.where}: there is no field {path!r}; the records have "
                f"{', '.join(self.types)}"
            )
        return f"CAST({found} AS VARCHAR)"

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


def _problems(engine: DuckDBEngine) -> list[Problem]:
    """What is left out or worth knowing before sessions are looked at one by one."""
    queries = {
        "no_query": "sum(times) AS n, min(query_id) AS first FROM outside "
        "WHERE query_id NOT IN (SELECT query_id FROM asked WHERE query_id IS NOT NULL)",
        "no_object": "sum(times) AS n, min(query_id) AS first FROM clicks WHERE doc_id IS NULL",
        "nothing_shown": "count(*) AS n, min(query_id) AS first FROM asked "
        "WHERE coalesce(len(hits), 0) = 0",
        "repeated_click": "sum(times - 1) AS n, min(query_id) AS first FROM clicks "
        "WHERE times > 1 AND doc_id IS NOT NULL",
        "other_position": "count(*) AS n, min(c.query_id) AS first FROM clicks c JOIN displayed d "
        "ON c.query_id = d.query_id AND c.doc_id = d.doc_id WHERE c.ordinal <> d.position",
    }
    found = []
    for kind, query in queries.items():
        (row,) = engine.fetch(f"SELECT {query}").to_pylist()
        if row["n"]:
            found.append(Problem(kind, int(row["n"]), f"such as query_id {row['first']!r}"))
    return found
