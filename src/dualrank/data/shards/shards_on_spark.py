"""The same shards from Spark, which reduces the log and joins the features; here, one at a time."""

from __future__ import annotations

import glob
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualrank.data.index_columns import called_like_numbering
from dualrank.data.log.engine import Progress, only_value
from dualrank.data.log.log_options import LogOptions
from dualrank.data.log.reduction import reduce_in_engine
from dualrank.data.log.spark import SparkEngine
from dualrank.data.shards.engine_features import VIEW, EngineFeatures
from dualrank.data.shards.reduce_to_shards import REDUCED, HeldColumns, feature_files, part_of
from dualrank.data.shards.sharded_log import ShardedLog
from dualrank.data.shards.sharded_reduction import fetch_shards
from dualrank.sentences import URL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def reduce_to_shards_on_spark(
    log: str | os.PathLike[str],
    out: str | os.PathLike[str],
    shards: int,
    features: str | os.PathLike[str] | None = None,
    *,
    session: SparkSession | None = None,
    master: str | None = None,
    options: LogOptions | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> ShardedLog:
    """What `reduce_to_shards` does, on Spark: beside your session, or on one of its own.

    `session` and `master` are as in `read_log_on_spark`, `log` and `features` whatever this Spark
    can read; the folder `out` is one of this machine. The files are byte by byte those of
    `reduce_to_shards`.
    """
    options = replace(options or LogOptions(), **settings)
    name = os.fspath(log)
    with SparkEngine.on(session, master) as engine:
        columns = engine.open_log(name, options)
        where = None if features is None else os.fspath(features)
        if where is not None:
            engine.open(where, VIEW)
        account = reduce_in_engine(engine, columns, options, name, shards=shards)
        if progress is not None:
            progress(round(100 * REDUCED), 100)
        joined = None
        if where is not None:
            held = _held(engine, where)
            joined = EngineFeatures.keep(engine, where, held.schemas, held.numbering, shards)
        report = part_of(progress, REDUCED, 1.0)
        return fetch_shards(
            engine, account, Path(out), shards, options.max_bad_share, joined, report
        )


def _held(engine: SparkEngine, where: str) -> HeldColumns:
    """What the features hold, as their files say where they are to be seen from here.

    Spark does not know which columns pandas wrote as an index.
    """
    if _is_here(where):
        return HeldColumns.of(feature_files(where))
    schema = engine.fetch(f"SELECT * FROM {VIEW} LIMIT 0").schema
    types = engine.types(VIEW)
    may_be = [n for n in schema.names if called_like_numbering(n) and types[n] == "integer"]
    return HeldColumns([schema], [name for name in may_be if _numbers(engine, name)])


def _is_here(where: str) -> bool:
    """Whether these are files of this machine, which a pattern finds as Spark does."""
    if os.path.exists(where):
        return True
    found = [] if URL.match(where) else glob.glob(where, recursive=True)
    return bool(found) and all(os.path.isfile(file) for file in found)


def _numbers(engine: SparkEngine, name: str) -> bool:
    """Whether a column has another value in every row of each file."""
    rows = f"SELECT input_file_name() AS file, {engine.quote(name)} AS number FROM {VIEW}"
    distinct = "count(*) > 1 AND count(DISTINCT struct(file, number)) = count(*)"
    return bool(only_value(engine, f"SELECT {distinct} FROM ({rows})"))
