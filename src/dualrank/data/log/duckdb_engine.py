"""DuckDB, which answers what a reduction asks by default."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import Thread
from types import TracebackType
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from dualrank.data.log.engine import Progress, Type
from dualrank.data.log.log_format import Source
from dualrank.data.log.scratch import ScratchFolder
from dualrank.errors import DataError, SettingsError
from dualrank.sentences import LONGEST_REASON, reason_of, start_of

MEMORY_LIMIT = "1200MB"
GLOB = frozenset("*?[\\")
"""What DuckDB takes for a pattern in the name of a file."""
STAGES = {
    "sessions": (0, 50),
    "lists": (50, 60),
    "displayed": (60, 80),
    "judged": (80, 85),
    "pairs": (85, 95),
}
"""From which to which per cent of a reduction it takes to keep these tables, roughly."""

Result = TypeVar("Result")


class DuckDBEngine:
    """A DuckDB of its own, which works in `memory` and spills to a temporary folder.

    It opens these `files` and no others, nothing on the network, and loads no extensions. Queries
    run beside the main thread, so that signals are heard meanwhile, and `progress` is. `what` it is
    asked to hold, and what that is `called`, stand in its sentences.
    """

    def __init__(
        self,
        memory: str = MEMORY_LIMIT,
        threads: int | None = None,
        *,
        files: Sequence[str] = (),
        progress: Progress | None = None,
        what: str = "log",
        called: str = "",
    ) -> None:
        self._progress = progress
        self._what = what
        self._opened: dict[str, None] = {called: None} if called else {}
        self._types: dict[str, dict[str, Type]] = {}
        self._appended: set[str] = set()
        self._scratch = ScratchFolder()
        try:
            self._given = {file: self._plain_name(file) for file in files}
            self.connection = duckdb.connect()
            try:
                self.connection.execute(f"SET memory_limit = {_literal(memory)}")
            except duckdb.Error as error:
                raise SettingsError(f"memory is a size such as 4GB, not {memory!r}") from error
            self._set_up(threads)
        except BaseException:
            self._scratch.remove()
            raise

    def _set_up(self, threads: int | None) -> None:
        settings = {
            "temp_directory": _literal(str(self._scratch.path)),
            "preserve_insertion_order": "false",
            "arrow_large_buffer_size": "true",
            "TimeZone": "'UTC'",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allowed_paths": self.texts(list(self._given.values())),
            "enable_external_access": "false",
        }
        if threads is not None:
            settings["threads"] = str(threads)
        self._count_progress()
        for name, value in {**settings, "lock_configuration": "true"}.items():
            self.connection.execute(f"SET {name} = {value}")

    def _count_progress(self) -> None:
        """Let DuckDB count how far a query is, and print nothing of it."""
        # It prints where it believes itself in a terminal. In a notebook it refuses both unless
        # ipywidgets is there; only the ends of queries are heard of then.
        with suppress(duckdb.InvalidInputException):
            self.connection.execute("SET enable_progress_bar_print = false")
            self.connection.execute("SET enable_progress_bar = true")

    def _plain_name(self, file: str) -> str:
        """A name of this file that DuckDB takes for nothing else, if need be that of a link.

        There is no way to write a pattern's characters in a name that holds for all of them.
        """
        whole = os.path.abspath(file)
        if _is_plain(whole):
            return whole
        compression = os.path.splitext(file)[1].lower()
        ending = compression if compression in (".gz", ".zst") else ""
        link = self._scratch.path / f"file-{len(os.listdir(self._scratch.path))}{ending}"
        if not _is_plain(str(link)):
            raise SettingsError(
                f"{self._scratch.path.parent}: temporary files cannot lie in a folder with one of "
                f"{' '.join(sorted(GLOB))} in its name; set TMPDIR to another"
            )
        link.symlink_to(whole)
        return str(link)

    def __enter__(self) -> DuckDBEngine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.connection.close()
        self._scratch.remove()

    def open(self, source: Source, name: str = "log") -> None:
        """Make the files of a source a view of this name."""
        self._opened[source.name] = None
        self._types.pop(name, None)
        plain = replace(source, files=tuple(self._given[file] for file in source.files))
        try:
            self.rows(_view(name, source.format.rows(self, plain)))
        except DataError as error:
            raise DataError(self._as_called(str(error))) from error
        except MemoryError as error:
            raise DataError(f"{source.name}: {_NO_MEMORY}") from error
        except duckdb.Error as error:
            if _TOO_MANY in str(error):
                raise self._too_many() from error
            kind = source.format.title
            raise DataError(
                f"{source.name}: not a readable {kind} file ({self._reason(error)})"
            ) from error

    def register(self, table: pa.Table, name: str = "log") -> None:
        """Make a table in memory a view of this name."""
        self._types.pop(name, None)
        self.connection.register(name, table)

    def types(self, table: str) -> dict[str, Type]:
        """The columns of a table, view or query, with what kind of value they hold."""
        # Of text, DuckDB guesses again with every query how it is laid out, which takes long.
        if table not in self._types:
            with self._mendable():
                self._types[table] = self.described(table)
        return self._types[table]

    def described(self, query: str) -> dict[str, Type]:
        """The `types` of a query, or what DuckDB says against it."""
        return {name: _kind(declared) for name, declared, *_ in self.rows(f"DESCRIBE {query}")}

    def view(self, name: str, query: str) -> None:
        """Give a query a name."""
        self._types.pop(name, None)
        with self._mendable():
            self.rows(_view(name, query))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query's result, or what DuckDB says against it."""
        return self._beside(lambda: self.connection.execute(query).fetchall())

    def keep(self, name: str, query: str, by: str | None = None) -> None:
        """Run a query and keep its result under a name; rows with equal `by` near each other."""
        self._types.pop(name, None)
        # In order, most blocks of rows are passed over where one value is asked for.
        order = f" ORDER BY {by}" if by is not None else ""
        statement = f"CREATE OR REPLACE TEMP TABLE {name} AS {query}{order}"
        with self._mendable():
            self._beside(lambda: self.connection.execute(statement), STAGES.get(name))

    def fetch(self, query: str) -> pa.Table:
        """Run a query and bring its result here."""
        with self._mendable():
            return self._beside(lambda: self.connection.sql(query).to_arrow_table())

    def append(self, name: str, table: pa.Table) -> None:
        """Add rows to those that are kept under a name."""
        new = name not in self._appended
        statement = f"CREATE TEMP TABLE {name} AS" if new else f"INSERT INTO {name}"
        self._appended.add(name)
        with self._mendable():
            self.connection.register("appended", table)
            self._beside(lambda: self.connection.execute(f"{statement} SELECT * FROM appended"))
            self.connection.unregister("appended")

    def batches(self, query: str, rows: int) -> Iterator[pa.RecordBatch]:
        """Run a query and bring its result here, so many rows at a time."""
        with self._mendable():
            found = self._beside(lambda: self.connection.sql(query).to_arrow_reader(rows))
            while True:
                try:
                    batch = self._beside(found.read_next_batch)
                except StopIteration:
                    return
                except (pa.ArrowException, OSError) as error:
                    # Arrow passes on what DuckDB says, as an error of its own.
                    memory = "Out of Memory" in str(error)
                    kind = duckdb.OutOfMemoryException if memory else duckdb.Error
                    raise kind(str(error)) from error
                yield batch

    def _beside(self, work: Callable[[], Result], stage: tuple[int, int] | None = None) -> Result:
        """Do this beside the main thread, which alone hears signals, and hears none in DuckDB."""
        outcome: Future[Result] = Future()
        try:
            Thread(target=_complete, args=(outcome, work), daemon=True).start()
            while not wait([outcome], timeout=0.2).done:
                if stage is not None:
                    self._report(stage, self.connection.query_progress())
        except BaseException:
            # A query that has not begun never does; interrupted once, it might begin all the same.
            while not (outcome.cancel() or wait([outcome], timeout=0.1).done):
                self.connection.interrupt()
            raise
        if stage is not None:
            self._report(stage, 100)
        return outcome.result()

    def _report(self, stage: tuple[int, int], percent: float) -> None:
        if self._progress is not None:
            start, end = stage
            self._progress(start + round((end - start) * min(max(percent, 0), 100) / 100), 100)

    @contextmanager
    def _mendable(self) -> Iterator[None]:
        try:
            yield
        except MemoryError as error:
            raise DataError(f"{self._name}: {_NO_MEMORY}") from error
        except duckdb.OutOfMemoryException as error:
            if "temp_directory" in str(error):
                raise self._full(error) from error
            raise DataError(
                f"{self._name}: the {self._what} does not fit into the memory limit "
                f"({reason_of(error)}); give more, such as memory='4GB'"
            ) from error
        except duckdb.Error as error:
            if _TOO_MANY in str(error):
                raise self._too_many() from error
            if str(self._scratch.path / "duckdb_temp") in str(error):
                raise self._full(error) from error
            raise DataError(
                f"{self._name}: the {self._what} cannot be read ({self._reason(error)})"
            ) from error

    @property
    def _name(self) -> str:
        """What the user calls the files; DuckDB does not always say in which of them it was."""
        return " and ".join(self._opened) or f"the {self._what}"

    def _too_many(self) -> DataError:
        return DataError(
            f"{self._name}: its {len(self._given)} files are more than this process may have open "
            "at once; raise the limit (ulimit -n), or write fewer files"
        )

    def _full(self, error: Exception) -> DataError:
        return DataError(
            f"{self._scratch.path.parent}: the temporary files that the {self._what} needs cannot "
            f"be written ({reason_of(error)}); make room there, set TMPDIR to another folder, or "
            "give more memory, such as memory='4GB'"
        )

    def _as_called(self, text: str) -> str:
        """A text about files with the names that the user gave them."""
        for file, given in self._given.items():
            if given != file:
                text = text.replace(given, file)
        return text

    def _reason(self, error: Exception) -> str:
        """What DuckDB found, and of a CSV file in which line: its message goes on with advice."""
        lines = [line.strip() for line in str(error).splitlines()]
        found = [line for line in lines[1:] if line.startswith(_TELLING)]
        return self._as_called(
            ", ".join(start_of(line, LONGEST_REASON) for line in [lines[0], *found])
        )

    def quote(self, name: str) -> str:
        """A column's name, whatever characters it holds."""
        return '"' + name.replace('"', '""') + '"'

    def text(self, value: str) -> str:
        """A text, whatever characters it holds."""
        return _literal(value)

    def texts(self, values: Sequence[str]) -> str:
        """A list of texts, such as names of files."""
        return f"[{', '.join(_literal(value) for value in values)}]"

    def hash(self, values: Sequence[str]) -> str:
        """64 bits that tell these values, any of which may be NULL, from others."""
        return f"hash({', '.join(values)})"

    def sum_of_hashes(self, value: str) -> str:
        """What tells sums of 64-bit hashes from each other, without an overflow."""
        return f"sum({value})"

    def bit(self, place: str) -> str:
        """2 to the power of `place`, a number from 0 to 62."""
        return f"(CAST(1 AS BIGINT) << ({place}))"

    def shard(self, text: str, count: int) -> str:
        """Which of so many shards a text is in: the same on every engine, 0 for NULL."""
        digits = f"CAST('0x' || substr(md5({text}), 1, 15) AS BIGINT)"
        return f"CAST(coalesce({digits} % {count}, 0) AS INTEGER)"

    def seconds(self, column: str, kind: Type) -> str:
        """The time in a column as seconds (or the number that stands there), NULL if unreadable."""
        if kind in ("integer", "number"):
            return f"CAST({column} AS DOUBLE)"
        time = f"epoch_us(TRY_CAST({column} AS TIMESTAMPTZ)) / 1e6"
        return f"coalesce(TRY_CAST({column} AS DOUBLE), {time})" if kind == "text" else time


_TOO_MANY = os.strerror(errno.EMFILE)
# How lines of DuckDB's messages begin that say what is wrong, and where.
_TELLING = ("Expected Number", "Value with", "Invalid unicode", "file")
_NO_MEMORY = (
    "reading the log takes more memory than this process can get; give it more, or let DuckDB use "
    "less, such as memory='500MB'"
)


def _complete(outcome: Future[Result], work: Callable[[], Result]) -> None:
    """Give a future the result or error of `work`, unless it was cancelled before."""
    if outcome.set_running_or_notify_cancel():
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _view(name: str, query: str) -> str:
    return f"CREATE OR REPLACE TEMP VIEW {name} AS {query}"


def _is_plain(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return GLOB.isdisjoint(name)


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
