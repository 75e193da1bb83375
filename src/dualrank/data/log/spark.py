"""The same reduction on Spark, for logs beyond one machine."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.log.assembly import assemble
from dualrank.data.log.columns import Columns, find_columns
from dualrank.data.log.engine import Type
from dualrank.data.log.folder_columns import NOTHING, named_by_folders
from dualrank.data.log.log_options import LogOptions
from dualrank.data.log.read_log import finish
from dualrank.data.log.reduction import reduce_log
from dualrank.data.log.spark_session import own_session, unlogged
from dualrank.errors import DataError, DualrankError
from dualrank.sentences import reason_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_log_on_spark(
    log: str | os.PathLike[str],
    dataset: Dataset | None = None,
    *,
    session: SparkSession | None = None,
    master: str | None = None,
    options: LogOptions | None = None,
    **settings: Any,
) -> ClickLog:
    """What `read_log` does, on Spark.

    It runs beside your session, given or already there in this process, whose views and settings
    stay as they are; where there is none, Spark is started, on `master`, and stopped again. `log`
    is whatever this Spark can read: a path or pattern on its own file systems, or the name of a
    table or view. The result is row by row that of `read_log`.
    """
    options = replace(options or LogOptions(), **settings)
    with SparkEngine.on(session, master) as engine:
        columns = engine.open_log(os.fspath(log), options)
        result = assemble(reduce_log(engine, columns, options, os.fspath(log)))
    return finish(result, dataset, options.max_bad_share)


class SparkEngine:
    """A Spark session that holds a log, and is nobody else's."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self._kept: dict[str, Any] = {}
        self._opened: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._mark = secrets.token_hex(4)
        # Spark's own number of parts is 200, which on a few cores takes longer than the work
        # itself. Where the user has decided otherwise, or Spark does not show its parts (Connect),
        # it stays.
        self._spread_like_input = _SHUFFLED not in session.conf.getAll and hasattr(
            session, "sparkContext"
        )

    @classmethod
    @contextmanager
    def on(
        cls,
        session: SparkSession | None,
        master: str | None,
        name: str = "dualrank reduce",
        *,
        quiet: bool = False,
    ) -> Iterator[SparkEngine]:
        """An engine in an `own_session`, which holds nothing any more once it is left."""
        with own_session(session, master, name, quiet=quiet) as own:
            engine = cls(own)
            try:
                yield engine
            finally:
                engine.release()

    def open_log(self, name: str, options: LogOptions) -> Columns:
        """Open a log, and find the columns that are to be read."""
        self.open(name)
        with self._mendable():
            self.add_folder_columns(options)
            if self._spread_like_input:
                parts = self.table("log").rdd.getNumPartitions()
                least = 2 * self.session.sparkContext.defaultParallelism
                self.session.conf.set(_SHUFFLED, max(parts, least))
        return find_columns(self.types("log"), options, where=name)

    def open(self, log: str, view: str = "log") -> None:
        """Make files, or a table, a view; the columns of text files stay text."""
        ends = log.rstrip("/").lower().removesuffix(".gz").removesuffix(".zst")
        # Otherwise a folder called doc_id=5 would replace what the files say.
        read = self.session.read.option("recursiveFileLookup", True)
        # What is there by this very name is no pattern.
        path = re.sub(r"([*?\[\]{}\\])", r"\\\1", log) if os.path.exists(log) else log
        try:
            if ends.endswith((".csv", ".tsv")):
                separator = "\t" if ends.endswith(".tsv") else ","
                found = read.csv(path, header=True, sep=separator, escape='"')
            elif ends.endswith((".jsonl", ".ndjson", ".json")):
                found = read.option("primitivesAsString", True).json(path)
            elif (
                re.fullmatch(r"\w+(\.\w+){0,2}", log)
                and not ends.endswith((".parquet", ".pq"))
                and not os.path.exists(log)
            ):
                found = self.session.table(log)
            else:
                found = read.option("mergeSchema", True).parquet(path)
        except Exception as error:
            raise DataError(f"{log}: Spark cannot read it ({reason_of(error)})") from error
        self._call(found, view)
        self._opened[view] = log

    def add_folder_columns(self, options: LogOptions) -> None:
        """What the names of folders say of columns that are asked for and in no file."""
        frame = self.table("log")
        files = frame.inputFiles()
        for name in named_by_folders(options, frame.columns, files):
            value = f"regexp_extract(input_file_name(), '/{re.escape(name)}=([^/]*)/', 1)"
            # Spark gives the name as a URL, in which Hive's own escapes are escaped once more.
            for _ in range(2):
                value = f"url_decode(replace({value}, '+', '%2B'))"
            said = f"nullif(nullif({value}, ''), '{NOTHING}')"
            frame = frame.selectExpr("*", f"{said} AS {self.quote(name)}")
        self._call(frame, "log")

    def release(self) -> None:
        """Free what was kept."""
        for frame in self._kept.values():
            frame.unpersist()

    def types(self, table: str) -> dict[str, Type]:
        """The columns of a table or view, with what kind of value they hold."""
        return {name: _kind(declared) for name, declared in self.table(table).dtypes}

    def view(self, name: str, query: str) -> None:
        """Give a query a name."""
        with self._mendable():
            self._call(self._planned(query), name)

    def keep(self, name: str, query: str, by: str | None = None) -> None:
        """Run a query and keep its result under a name, on disk where memory is short."""
        if name in self._kept:
            self._kept[name].unpersist()
        with self._mendable():
            found = self._planned(query)
            if by is not None:
                found = found.repartition(by).sortWithinPartitions(by)
            self._kept[name] = found.persist()
            # At once, so that Spark knows how large it is before it plans what comes after: the
            # lists are sent to the rows where they are few, and the rows stay where they are.
            self._kept[name].count()
            self._call(self._kept[name], name)

    def fetch(self, query: str) -> pa.Table:
        """Run a query and bring its result here."""
        with self._mendable():
            return self._planned(query).toArrow()

    def table(self, name: str) -> DataFrame:
        """What was opened, kept or given a name."""
        return self.session.table(self._names[name])

    def _call(self, frame: DataFrame, name: str) -> None:
        """Give a frame a name, which is another in Spark.

        A view of the user may have the same one: other views may be made of it, and where it is
        cached, Spark forgets that once the name is given to another, in whichever session.
        """
        self._names[name] = f"_dualrank_{self._mark}_{name}"
        frame.createOrReplaceTempView(self._names[name])

    def _planned(self, query: str) -> DataFrame:
        def renamed(found: re.Match[str]) -> str:
            return f"{found[1]} {self._names[found[2]]}" if found[2] in self._names else found[0]

        return self.session.sql(_TABLE.sub(renamed, query))

    @contextmanager
    def _mendable(self) -> Iterator[None]:
        """What Spark says against a query, when it plans it or runs it, as one sentence."""
        try:
            with unlogged():
                yield
        except DualrankError:
            raise
        except Exception as error:
            name = " and ".join(self._opened.values())
            raise DataError(f"{name}: Spark cannot reduce this ({reason_of(error)})") from error

    def quote(self, name: str) -> str:
        """A column's name, whatever characters it holds."""
        return "`" + name.replace("`", "``") + "`"

    def hash(self, values: Sequence[str]) -> str:
        """64 bits that tell these values, any of which may be NULL, from others."""
        # xxhash64 passes over NULLs, so that ('a', NULL) and (NULL, 'a') would be one.
        return f"xxhash64({', '.join(f'{value}, {value} IS NULL' for value in values)})"

    def sum_of_hashes(self, value: str) -> str:
        """64 bits that tell sums of 64-bit hashes from each other."""
        # Halves cannot overflow, and decimals, which cannot either, take several times as long.
        high, low = f"sum(shiftrightunsigned({value}, 32))", f"sum({value} & 4294967295)"
        return f"xxhash64({high}, {low})"

    def bit(self, place: str) -> str:
        """2 to the power of `place`, a number from 0 to 62."""
        return f"shiftleft(CAST(1 AS BIGINT), {place})"

    def shard(self, text: str, count: int) -> str:
        """Which of so many shards a text is in: the same on every engine, 0 for NULL."""
        digits = f"CAST(conv(substr(md5({text}), 1, 15), 16, 10) AS BIGINT)"
        return f"CAST(coalesce({digits} % {count}, 0) AS INTEGER)"

    def seconds(self, column: str, kind: Type) -> str:
        """The time in a column as seconds (or the number that stands there), NULL if unreadable."""
        if kind in ("integer", "number"):
            return f"CAST({column} AS DOUBLE)"
        time = f"unix_micros(TRY_CAST({column} AS TIMESTAMP)) / 1e6D"
        return f"coalesce(TRY_CAST({column} AS DOUBLE), {time})" if kind == "text" else time


_SHUFFLED = "spark.sql.shuffle.partitions"
# Where a query names a table, or quotes a text or a column, which may hold anything.
_TABLE = re.compile(r"`[^`]*`|'[^']*'|\b(FROM|JOIN)\s+(\w+)")


def _kind(declared: str) -> Type:
    if declared in ("tinyint", "smallint", "int", "bigint"):
        return "integer"
    if declared in ("float", "double") or declared.startswith("decimal"):
        return "number"
    if declared.startswith(("timestamp", "date")):
        return "time"
    known = {"boolean": "boolean", "string": "text"}
    return known.get(declared, "other")
