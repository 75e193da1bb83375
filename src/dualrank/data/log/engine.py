"""What the reduction asks of a database, and DuckDB, which answers by default."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from dualrank.data.log.log_format import Source
from dualrank.errors import DataError, SettingsError

MEMORY_LIMIT = "1200MB"

Type = str
"""boolean, integer, number, text, time or other."""


class Engine(Protocol):
    """A database that holds a log, and the few words in which its SQL differs from another's."""

    def types(self, table: str) -> Mapping[str, Type]:
        """The columns of a table or view, with what kind of value they hold."""

    def view(self, name: str, query: str) -> None:
        """Give a query a name."""

    def keep(self, name: str, query: str) -> None:
        """Run a query and keep its result under a name."""

    def fetch(self, query: str) -> pa.Table:
        """Run a query and bring its result here."""

    def quote(self, name: str) -> str:
        """A column's name, whatever characters it holds."""

    def hash(self, values: Sequence[str]) -> str:
        """64 bits that tell these values, any of which may be NULL, from others."""

    def sum_of_hashes(self, value: str) -> str:
        """The sum of 64-bit hashes, which does not overflow."""

    def bit(self, place: str) -> str:
        """2 to the power of `place`, a number from 0 to 62."""

    def seconds(self, column: str, kind: Type) -> str:
        """The time in a column as seconds (or the number that stands there), NULL if unreadable."""


class DuckDBEngine:
    """A DuckDB of its own, which works in `memory` and spills to a temporary folder."""

    def __init__(self, memory: str = MEMORY_LIMIT, threads: int | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(
            prefix="dualrank-log-", ignore_cleanup_errors=True
        )
        self.connection = duckdb.connect()
        try:
            self.connection.execute(f"SET memory_limit = {_literal(memory)}")
        except duckdb.Error as error:
            raise SettingsError(f"memory is a size such as 4GB, not {memory!r}") from error
        self.connection.execute(f"SET temp_directory = {_literal(self._folder.name)}")
        self.connection.execute("SET preserve_insertion_order = false")
        self.connection.execute("SET TimeZone = 'UTC'")
        if threads is not None:
            self.connection.execute(f"SET threads = {threads}")

    def __enter__(self) -> DuckDBEngine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.connection.close()
        self._folder.cleanup()

    def open(self, source: Source, name: str = "log") -> None:
        """Make the files of a source a view of this name."""
        try:
            self.view(name, source.format.rows(self, source))
        except duckdb.Error as error:
            kind = source.format.title
            raise DataError(
                f"{source.name}: not a readable {kind} file ({_reason(error)})"
            ) from error

    def register(self, table: pa.Table, name: str = "log") -> None:
        """Make a table in memory a view of this name."""
        self.connection.register(name, table)

    def types(self, table: str) -> dict[str, Type]:
        """The columns of a table, view or query, with what kind of value they hold."""
        found = self.connection.execute(f"DESCRIBE {table}").fetchall()
        return {name: _kind(declared) for name, declared, *_ in found}

    def view(self, name: str, query: str) -> None:
        """Give a query a name."""
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {query}")

    def keep(self, name: str, query: str) -> None:
        """Run a query and keep its result under a name."""
        with _mendable():
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {query}")

    def fetch(self, query: str) -> pa.Table:
        """Run a query and bring its result here."""
        with _mendable():
            return self.connection.sql(query).to_arrow_table()

    def quote(self, name: str) -> str:
        """A column's name, whatever characters it holds."""
        return '"' + name.replace('"', '""') + '"'

    def texts(self, values: Sequence[str]) -> str:
        """A list of texts, such as names of files."""
        return f"[{', '.join(_literal(value) for value in values)}]"

    def hash(self, values: Sequence[str]) -> str:
        """64 bits that tell these values, any of which may be NULL, from others."""
        return f"hash({', '.join(values)})"

    def sum_of_hashes(self, value: str) -> str:
        """The sum of 64-bit hashes, which does not overflow."""
        return f"sum({value})"

    def bit(self, place: str) -> str:
        """2 to the power of `place`, a number from 0 to 62."""
        return f"(CAST(1 AS BIGINT) << ({place}))"

    def seconds(self, column: str, kind: Type) -> str:
        """The time in a column as seconds (or the number that stands there), NULL if unreadable."""
        if kind in ("integer", "number"):
            return f"CAST({column} AS DOUBLE)"
        time = f"epoch_us(TRY_CAST({column} AS TIMESTAMPTZ)) / 1e6"
        return f"coalesce(TRY_CAST({column} AS DOUBLE), {time})" if kind == "text" else time


def only_value(engine: Engine, query: str) -> Any:
    """The only value of a query's result."""
    return engine.fetch(query).column(0)[0].as_py()


@contextmanager
def _mendable() -> Iterator[None]:
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise DataError(
            f"the log does not fit into the memory limit ({_first_line(error)}); "
            "give more, such as memory='4GB'"
        ) from error
    except duckdb.Error as error:
        raise DataError(f"the log cannot be read ({_reason(error)})") from error


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _reason(error: Exception) -> str:
    """What DuckDB found, and of a CSV file in which line: its message goes on with advice."""
    lines = [line.strip() for line in str(error).splitlines()]
    found = [
        line for line in lines[1:] if line.startswith(("Expected Number", "Value with", "file"))
    ]
    return ", ".join([_first_line(error), *found])


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def _kind(declared: str) -> Type:
    name = declared.upper()
    if name == "BOOLEAN":
        return "boolean"
    if name.endswith("INT") or name == "INTEGER" or name == "UINTEGER":
        return "integer"
    if name.startswith("DECIMAL") or name in ("FLOAT", "DOUBLE"):
        return "number"
    if name.startswith(("TIMESTAMP", "DATE")):
        return "time"
    return "text" if name == "VARCHAR" else "other"
