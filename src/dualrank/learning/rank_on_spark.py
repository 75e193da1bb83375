"""Ranking on Spark: the model is broadcast, and every executor scores what it has.

Executors need numpy and pyarrow, and neither torch nor dualrank: what runs there is
`plain_scoring`, sent along as it stands.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualrank.data.feature_rows import FEATURES, GRADE, KEYS, columns_to_read
from dualrank.data.log.log_rows import id_as_text
from dualrank.data.log.spark import SparkEngine
from dualrank.data.log.spark_session import unlogged
from dualrank.data.run_writing import COLUMNS, is_folder_of_parts, require_run_name
from dualrank.data.shards.sharded_log import is_sharded
from dualrank.errors import DataError, DualrankError, SettingsError
from dualrank.learning import plain_scoring
from dualrank.learning.model import Model
from dualrank.learning.rank_features import Ranked
from dualrank.learning.score_checks import NEARLY, OF_ONE_QUERY, Ties
from dualrank.sentences import URL, reason_of, start_of
from dualrank.storage import whole_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TOLD = re.compile(rf"{plain_scoring.REFUSED}([^\n]*?)(?: SQLSTATE: \w+)?$", re.MULTILINE)

_LACKS = re.compile(r"ModuleNotFoundError: No module named '(\w+)")


def rank_on_spark(
    model: Model,
    features: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    session: SparkSession | None = None,
    master: str | None = None,
    replace: bool = False,
) -> Ranked:
    """What `rank_features` does, on Spark: beside your session, or on one of its own.

    `session` and `master` are as in `read_log_on_spark`, `features` is whatever this Spark can
    read, and `out` a folder for Parquet files on its file systems; `replace` allows one that is
    there. Documents of equal score are ranked by their ids, since rows of Spark have no order.
    """
    plain = plain_scoring.plain_model(model)
    if plain is None:
        raise SettingsError(
            f"a ranker of kind {model.kind} is neither layers nor trees; rank without Spark"
        )
    where, folder = os.fspath(features), os.fspath(out)
    if is_sharded(where):
        raise SettingsError(
            f"{where}: a log in shards, which Spark does not read; rank it without Spark, or give "
            "the features that it was made of"
        )
    with (
        SparkEngine.on(session, master, "dualrank rank", quiet=True) as engine,
        _mendable(where),
    ):
        engine.open(where)
        frame, columns = _features(engine, where, model)
        with (
            _writable(engine.session, folder, replace=replace) as (path, mode),
            _broadcast(engine.session, plain) as held,
        ):
            ranked = _ranked(frame, columns, held, where)
            ranked.write.mode(mode).option("compression", "zstd").parquet(path)
            return _looked_at(engine.session, path)


@contextmanager
def _mendable(where: str) -> Iterator[None]:
    try:
        with unlogged():
            yield
    except DualrankError:
        raise
    except Exception as error:
        raise DataError(_sentence(where, error)) from error


def _sentence(where: str, error: Exception) -> str:
    """What went wrong on an executor, in one sentence."""
    text = str(error)
    if told := _TOLD.search(text):
        return start_of(told[1], 500)
    if lacks := _LACKS.search(text):
        return (
            f"the Python of Spark's executors has no {lacks[1]}; install it there, or name another "
            "Python with PYSPARK_PYTHON"
        )
    return f"{where}: Spark cannot rank it ({reason_of(error)})"


def _features(engine: SparkEngine, where: str, model: Model) -> tuple[DataFrame, list[str] | None]:
    """Ids as text beside features as floats, and which columns these are (None for lists)."""
    from pyspark.sql.pandas.types import to_arrow_schema

    found = engine.table("log")
    names, count = model.feature_names, model.scaler.input_count
    columns = columns_to_read(to_arrow_schema(found.schema), where, names=names)
    own = None
    if FEATURES not in columns:
        own = list(names or [name for name in columns if name not in (*KEYS, GRADE)])
        if len(own) != count:
            raise DataError(f"{where}: {len(own)} features; expected {count}")
    # Decimals are written as they stand, 5.00 and not 5: so does Arrow where there is no Spark.
    kinds = {key: "number" if kind in ("float", "double") else "text" for key, kind in found.dtypes}
    said = [f"{id_as_text(engine.quote(key), kinds[key])} AS {key}" for key in KEYS]
    if own is None:
        said.append(f"CAST({FEATURES} AS array<float>) AS {FEATURES}")
    else:
        # Numbered, since names may hold anything.
        said += [f"CAST({engine.quote(name)} AS float) AS f{i}" for i, name in enumerate(own)]
    frame = found.selectExpr(*said)
    if frame.isEmpty():
        raise DataError(f"{where}: there are no documents")
    return frame, None if own is None else [f"f{i}" for i in range(len(own))]


@contextmanager
def _broadcast(session: SparkSession, plain: dict[str, Any]) -> Iterator[Any]:
    """The model on every executor, for as long as it is needed."""
    held = session.sparkContext.broadcast(plain)
    try:
        yield held
    finally:
        held.destroy()


def _ranked(frame: DataFrame, columns: list[str] | None, held: Any, where: str) -> DataFrame:
    from pyspark import cloudpickle
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    # By its value, and not by the name of a module that executors do not have.
    cloudpickle.register_pickle_by_value(plain_scoring)
    try:
        score = plain_scoring.scores_of_batches(held, columns, where)
        scored = frame.mapInArrow(score, "query_id string, doc_id string, score float")
    finally:
        cloudpickle.unregister_pickle_by_value(plain_scoring)
    # Both windows find the rows of a query in one place.
    together = scored.repartition("query_id")
    times = f.count("*").over(Window.partitionBy("query_id", "doc_id"))
    again = f.concat(
        f.lit(f"{plain_scoring.REFUSED}{where}: document '"),
        "doc_id",
        f.lit("' of query '"),
        "query_id",
        f.lit("' stands there twice; expected one row of features"),
    )
    once = together.withColumn("times", f.when(times > 1, f.raise_error(again)).otherwise(times))
    best_first = Window.partitionBy("query_id").orderBy(f.desc("score"), "doc_id")
    rank = f.row_number().over(best_first).cast("long")
    # Asked of every row, so that Spark does not leave the check out.
    found = once.withColumn("rank", rank).filter("times = 1").select(*COLUMNS)
    return found.sortWithinPartitions("query_id", "rank")


@contextmanager
def _writable(session: SparkSession, out: str, *, replace: bool) -> Iterator[tuple[str, str]]:
    """Where Spark writes, and how; a folder of this machine is whole or not there."""
    default = session.sparkContext._jsc.hadoopConfiguration().get("fs.defaultFS") or "file:"
    if URL.match(out) or not default.startswith("file:"):
        yield out, "overwrite" if replace else "errorifexists"
        return
    path = Path(out)
    if path.exists() and not path.is_dir():
        raise SettingsError(f"{path}: Spark writes a folder, and this is a file; give another name")
    if path.is_dir() or is_folder_of_parts(path):
        require_run_name(path)
    elif path.suffix != ".parquet":
        raise SettingsError(f"{path}: Spark writes a folder of Parquet files; give its name")
    with whole_folder(path) as new:
        yield new.absolute().as_uri(), "overwrite"


def _looked_at(session: SparkSession, path: str) -> Ranked:
    """How much was written, and whether scores tell documents apart."""
    from pyspark.sql import functions as f

    run = session.read.parquet(path)
    alike = run.groupBy("query_id", "score").agg(f.count("*").alias("n"))
    of_query = alike.groupBy("query_id").agg(
        f.sum("n").alias("n"),
        f.expr("sum(n * (n - 1) / 2)").alias("tied"),
        f.min("score").alias("low"),
        f.max("score").alias("high"),
    )
    nearly = f"high - low <= {NEARLY} * greatest(abs(low), abs(high))"
    pairs = "n * (n - 1) / 2"
    found = of_query.agg(
        f.count("*").alias("queries"),
        f.sum("n").alias("documents"),
        f.expr(f"sum(CASE WHEN {nearly} THEN {pairs} ELSE tied END)").alias("tied"),
        f.expr(f"sum({pairs})").alias("pairs"),
    ).collect()[0]
    ties = Ties(float(found["tied"]), float(found["pairs"]))
    return Ranked(found["queries"], found["documents"], ties.warning(OF_ONE_QUERY))
