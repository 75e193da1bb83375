"""Whether Spark reduces a log to what DuckDB does, row by row, and how much longer it takes.

    python -m benchmarks.spark_reduction LOG.parquet

needs pyspark and Java. `python -m benchmarks.log_reduction LOG.parquet` writes a log of three
million sessions if there is none under this name, `python -m benchmarks.yandex LOG.parquet` a real
one. Both engines have two threads. Spark is started apart, as `dualrank reduce --engine spark`
starts it. What it takes to plan and to compile the queries is seen on the first rows of the log,
reduced before and after the whole: the first time in a session that costs the most. What it takes
to read at all is seen where each engine only reads and hashes every row. Seconds are those of the
clock and of the processor; on a machine that does other things, compare the latter.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from dualrank.data.click_log import ClickLog
from dualrank.data.log.assembly import assemble
from dualrank.data.log.duckdb_engine import DuckDBEngine
from dualrank.data.log.engine import Engine
from dualrank.data.log.log_files import find_source
from dualrank.data.log.log_options import LogOptions
from dualrank.data.log.reduction import reduce_log
from dualrank.data.log.saved import to_table
from dualrank.data.log.spark import SparkEngine

THREADS = 2
FEW = 5_000
"""Rows of a log whose reduction is all planning."""

Result = TypeVar("Result")
_READ = "(read and hashed)"


class Stages:
    """Seconds, and processor seconds, of what an engine keeps and fetches."""

    def __init__(self, processor: Callable[[], float]) -> None:
        self.processor = processor
        self.seconds: dict[str, list[float]] = {}

    def timed(self, name: str, work: Callable[[], Result]) -> Result:
        """Do this, and add its time to that of its name."""
        clock, processor = time.perf_counter(), self.processor()
        result = work()
        spent = self.seconds.setdefault(name, [0.0, 0.0])
        spent[0] += time.perf_counter() - clock
        spent[1] += self.processor() - processor
        return result

    def watch(self, engine: Any) -> Any:
        """The engine, whose every step is timed."""
        keep, fetch = engine.keep, engine.fetch

        def timed_keep(name: str, query: str, by: str | None = None) -> None:
            self.timed(name, lambda: keep(name, query, by))

        def timed_fetch(query: str) -> pa.Table:
            return self.timed("fetched", lambda: fetch(query))

        engine.keep, engine.fetch = timed_keep, timed_fetch
        return engine

    @property
    def whole(self) -> list[float]:
        """The time of all stages together."""
        steps = [spent for name, spent in self.seconds.items() if name != _READ]
        return [sum(spent[i] for spent in steps) for i in (0, 1)]


def processor_seconds(process: Path) -> float:
    """What a process has spent so far, by its /proc/…/stat."""
    fields = process.read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def reduce(engine: Engine, columns: Any, log: str, stages: Stages) -> ClickLog:
    """Reduce and assemble, after a look at what reading alone takes, which is not added."""
    values = [engine.quote(name) for name in engine.types("log")]
    engine.fetch(f"SELECT bit_xor({engine.hash(values)}) AS one FROM log")
    stages.seconds[_READ] = stages.seconds.pop("fetched")
    reduced = reduce_log(engine, columns, LogOptions(), log)
    return stages.timed("assembled", lambda: assemble(reduced))


def on_duckdb(log: str) -> tuple[ClickLog, Stages]:
    """What DuckDB finds."""
    stages, source = Stages(time.process_time), find_source(log)
    with DuckDBEngine(threads=THREADS, files=source.files) as engine:
        columns, _ = source.format.open(engine, source, LogOptions())
        return reduce(stages.watch(engine), columns, log, stages), stages


def on_spark(log: str, engine: SparkEngine) -> tuple[ClickLog, Stages]:
    """What Spark finds, on a session that runs."""
    java = Path(f"/proc/{engine.session.sparkContext._gateway.proc.pid}/stat")
    stages = Stages(lambda: time.process_time() + processor_seconds(java))
    columns = engine.open_log(log, LogOptions())
    watched = stages.watch(engine)
    try:
        return reduce(watched, columns, log, stages), stages
    finally:
        del engine.keep, engine.fetch
        engine.release()


def main() -> None:
    """Print what each engine found and spent; exit with 1 if they differ."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m benchmarks.spark_reduction LOG.parquet")
    log = sys.argv[1]
    one, duck = on_duckdb(log)
    print(f"{one}, on {THREADS} threads; DuckDB {duckdb.__version__}", flush=True)
    clock = time.perf_counter()
    with SparkEngine.on(None, f"local[{THREADS}]") as engine:
        print(
            f"Spark {engine.session.version} starts in {time.perf_counter() - clock:.1f} s",
            flush=True,
        )
        with tempfile.TemporaryDirectory() as folder:
            few = str(Path(folder, "few.parquet"))
            first = next(pq.ParquetFile(log).iter_batches(FEW))
            pq.write_table(pa.Table.from_batches([first]), few)
            found = [on_spark(each, engine) for each in (few, log, log, few)]
    names = (f"Spark, {FEW:,} rows", "whole log", "again", f"{FEW:,} rows again")
    columns = {"DuckDB": duck}
    columns |= {name: stages for name, (_, stages) in zip(names, found, strict=True)}
    print(f"{'seconds (of processor)':<24}" + "".join(f"{name:>20}" for name in columns))
    for stage in found[0][1].seconds:
        cells = [each.seconds.get(stage, [0.0, 0.0]) for each in columns.values()]
        print(f"{stage:<24}" + "".join(_cell(*cell) for cell in cells))
    print(f"{'together':<24}" + "".join(_cell(*each.whole) for each in columns.values()))
    ratios = [
        [a / b for a, b in zip(each.whole, duck.whole, strict=True)] for each in columns.values()
    ]
    print(f"{'times DuckDB':<24}" + "".join(_cell(*ratio) for ratio in ratios))
    bare = to_table(one).replace_schema_metadata(None)
    equal = all(
        to_table(other).replace_schema_metadata(None).equals(bare) and other.reading == one.reading
        for other, _ in found[1:3]
    )
    verdict = "equal" if equal else "DIFFERENT"
    print(f"lists, click patterns, counts and the account of the reading: {verdict}")
    sys.exit(not equal)


def _cell(clock: float, processor: float) -> str:
    return f"{clock:12.1f} ({processor:5.1f})"


if __name__ == "__main__":
    main()
