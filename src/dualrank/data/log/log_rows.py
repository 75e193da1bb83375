"""The rows of a log as a reduction sees them: what its columns mean, as equal types."""

from __future__ import annotations

from dualrank.data.log.columns import Columns
from dualrank.data.log.engine import Engine, Type
from dualrank.data.log.event_amounts import amount
from dualrank.data.log.examples import MAX_DEPTH
from dualrank.data.log.log_options import LogOptions

NO_CONTEXT = "(none)"


def view_rows(engine: Engine, columns: Columns, options: LogOptions) -> None:
    """The view `rows`: what the columns mean, as equal types, NULL where they mean nothing."""
    types = engine.types("log")
    position, clicked = (engine.quote(columns[name]) for name in ("position", "clicked"))
    if types[columns["position"]] == "integer":
        whole = position
    else:
        number = f"TRY_CAST({position} AS DOUBLE)"
        whole = (
            f"CASE WHEN {number} = floor({number}) AND abs({number}) < 1e9 "
            f"THEN CAST({number} AS INTEGER) END"
        )
    if types[columns["clicked"]] == "boolean":
        click = clicked
    elif types[columns["clicked"]] in ("integer", "number"):
        click = f"CASE WHEN {clicked} = 1 THEN TRUE WHEN {clicked} = 0 THEN FALSE END"
    else:
        text = f"lower(CAST({clicked} AS STRING))"
        click = (
            f"CASE WHEN {text} IN ('1', 'true', 't', '1.0') THEN TRUE "
            f"WHEN {text} IN ('0', 'false', 'f', '0.0') THEN FALSE END"
        )
    first, last = options.first, options.first + MAX_DEPTH - 1
    selected = {
        "session": engine.quote(columns["session_id"]),
        "query": id_as_text(engine.quote(columns["query_id"]), types[columns["query_id"]]),
        "document": id_as_text(engine.quote(columns["doc_id"]), types[columns["doc_id"]]),
        "position": position,
        "place": f"CASE WHEN {whole} BETWEEN {first} AND {last} "
        f"THEN CAST({whole} - {first - 1} AS INTEGER) END",
        "clicked": clicked,
        "click": click,
    }
    for number_of, context in enumerate(columns.contexts):
        text = f"CAST({engine.quote(context)} AS STRING)"
        selected[f"context_{number_of}"] = f"coalesce({text}, '{NO_CONTEXT}')"
    if "client_id" in columns:
        selected["client"] = f"CAST({engine.quote(columns['client_id'])} AS STRING)"
    if "timestamp" in columns:
        name = columns["timestamp"]
        seconds = engine.seconds(engine.quote(name), types[name])
        # No time is infinite; a nan is larger than every number.
        selected["time"] = f"CASE WHEN abs({seconds}) < 1e18 THEN {seconds} END"
        selected["written_time"] = f"CAST({engine.quote(name)} AS STRING)"
    for number_of, name in enumerate(columns.events.values()):
        selected[f"amount_{number_of}"] = amount(engine.quote(name), types[name])
        selected[f"written_{number_of}"] = f"CAST({engine.quote(name)} AS STRING)"
    engine.view(
        "rows", "SELECT " + ", ".join(f"{v} AS {k}" for k, v in selected.items()) + " FROM log"
    )


def id_as_text(column: str, kind: Type) -> str:
    """An id as text; a whole number that became a float beside a missing value is written whole."""
    text = f"CAST({column} AS STRING)"
    if kind != "number":
        return text
    whole = f"{column} = floor({column}) AND abs({column}) < {2**53}"
    number = f"CAST(TRY_CAST({column} AS BIGINT) AS STRING)"
    missing = f"isnan(CAST({column} AS DOUBLE))"
    return f"CASE WHEN {missing} THEN NULL WHEN {whole} THEN {number} ELSE {text} END"


def steady_columns(columns: Columns) -> list[str]:
    """What must not change within a session."""
    names = [f"context_{number}" for number in range(len(columns.contexts))]
    return [*names, "client"] if "client_id" in columns else names
