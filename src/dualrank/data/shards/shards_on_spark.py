"""The same shards from Spark, which reduces the log and joins the features; here, one at a time."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dualrank.data.log.engine import Progress
from dualrank.data.log.log_options import LogOptions
from dualrank.data.log.reduction import reduce_in_engine
from dualrank.data.log.spark import SparkEngine
from dualrank.data.shards.engine_features import VIEW, EngineFeatures
from dualrank.data.shards.reduce_to_shards import REDUCED, feature_files, part_of, schemas_of
from dualrank.data.shards.sharded_log import ShardedLog
from dualrank.data.shards.sharded_reduction import fetch_shards

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
            joined = EngineFeatures.keep(engine, where, _schemas(engine, where), shards)
        report = part_of(progress, REDUCED, 1.0)
        return fetch_shards(
            engine, account, Path(out), shards, options.max_bad_share, joined, report
        )


def _schemas(engine: SparkEngine, where: str) -> list[pa.Schema]:
    """What the features hold, as their files say where they are to be seen from here.

    Spark does not know which columns pandas wrote as an index.
    """
    if os.path.exists(where):
        return schemas_of(feature_files(where))
    return [engine.fetch(f"SELECT * FROM {VIEW} LIMIT 0").schema]
