"""Tables in memory: pandas, polars, Arrow, or whatever else can hand Arrow its columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from dualrank.errors import DataError
from dualrank.sentences import reason_of, shortened

KINDS = "pandas, polars, Arrow"


def is_frame(given: Any) -> bool:
    """Whether this is a table with named columns, rather than a path, an array or one column.

    >>> is_frame({"bm25": [0.5]}), is_frame([[0.5]]), is_frame("features.parquet")
    (True, False, False)
    """
    if isinstance(given, Mapping):
        return True
    speaks = hasattr(given, "__arrow_c_stream__") or hasattr(given, "__dataframe__")
    # A single column speaks Arrow too, and has neither.
    return speaks and (hasattr(given, "columns") or hasattr(given, "schema"))


def to_table(frame: Any, what: str) -> pa.Table:
    """The Arrow table of a frame, with no name twice; `what` it is stands in what is refused.

    The index of a pandas frame becomes columns where it has a name.
    """
    if not is_frame(frame):
        raise DataError(
            f"{what}: {_kind(frame)} is no table; expected a file or a data frame ({KINDS})"
        )
    try:
        if isinstance(frame, pa.Table):
            table = frame
        elif type(frame).__module__.startswith("pandas.") and not any(frame.index.names):
            table = pa.Table.from_pandas(frame, preserve_index=False)
        elif isinstance(frame, Mapping) or hasattr(frame, "__arrow_c_stream__"):
            table = pa.table(frame)
        else:
            from pyarrow.interchange import from_dataframe

            table = from_dataframe(frame)
    except (TypeError, ValueError, OverflowError, NotImplementedError, pa.ArrowException) as error:
        raise DataError(
            f"{what}: no data frame that Arrow can read ({reason_of(error)})"
        ) from error
    require_one_of_each(table, what)
    return table


def require_one_of_each(table: pa.Table, where: str) -> None:
    """Refuse a table of which two columns have one name."""
    for name, times in Counter(table.column_names).items():
        if times > 1:
            raise DataError(
                f"{where}: {times} columns are called {shortened(name)}; expected one of each name"
            )


def column_names(frame: Any) -> list[str] | None:
    """The names of a frame's columns, where it has such and all are text."""
    if not is_frame(frame):
        return None
    names = list(frame) if isinstance(frame, Mapping) else getattr(frame, "columns", None)
    if isinstance(frame, pa.Table | pa.RecordBatch):
        names = frame.column_names
    if names is None:
        names = frame.schema.names
    return [str(name) for name in names] if all(isinstance(name, str) for name in names) else None


def _kind(given: Any) -> str:
    name = type(given).__name__
    return f"a {name} that is not collected yet" if name == "LazyFrame" else f"a {name}"
