"""`reduce_to_shards`: a click log of any size, and the features of its documents, into shards."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dualrank.data.features import is_parquet, read_features
from dualrank.data.index_columns import numbering_in
from dualrank.data.log.duckdb_engine import MEMORY_LIMIT, DuckDBEngine
from dualrank.data.log.engine import Progress
from dualrank.data.log.formats import PARQUET
from dualrank.data.log.log_files import find_source
from dualrank.data.log.log_format import Source
from dualrank.data.log.log_options import LogOptions
from dualrank.data.log.read_log import Paths, is_reduced, read_log
from dualrank.data.log.reduction import reduce_in_engine
from dualrank.data.log.ubi import Ubi
from dualrank.data.shards.engine_features import VIEW, EngineFeatures
from dualrank.data.shards.sharded_log import ShardedLog, is_sharded
from dualrank.data.shards.sharded_reduction import fetch_shards
from dualrank.data.shards.splitting import write_shards
from dualrank.data.shards.whole_shards import read_documents
from dualrank.errors import DataError
from dualrank.progress import shows_progress
from dualrank.sentences import reason_of

REDUCED = 0.7
"""Of all work, so much is done when the log is reduced, and shards can be fetched."""


@shows_progress("reducing the log")
def reduce_to_shards(
    log: Paths,
    out: str | os.PathLike[str],
    shards: int,
    features: str | os.PathLike[str] | None = None,
    *,
    events: Paths | None = None,
    actions: Sequence[str] = ("click",),
    memory: str = MEMORY_LIMIT,
    options: LogOptions | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> ShardedLog:
    """Reduce a click log to so many shards in the folder `out`, with the features beside them.

    The log and how it is read are those of `read_log`; `features` are Parquet files. DuckDB reduces
    and joins within `memory`, and on disk beyond it; here, one shard at a time is in memory. A log
    that is reduced already is read whole, and cut; one in shards keeps its features where no others
    are given.
    """
    options = replace(options or LogOptions(), **settings)
    if is_reduced(log):
        dataset = None if features is None else read_features(features)
        if features is None and is_sharded(log):
            sharded = ShardedLog.open(log)
            dataset = None if sharded.feature_count is None else read_documents(sharded)
        whole = read_log(log, dataset, events=events, options=options, progress=progress)
        return write_shards(whole, Path(out), shards, dataset)
    source = find_source(log)
    others = None if events is None else find_source(events)
    given = None if features is None else feature_files(features)
    files = [file for each in (source, others, given) if each is not None for file in each.files]
    with DuckDBEngine(memory, files=files, progress=part_of(progress, 0.0, REDUCED)) as engine:
        format = source.format if others is None else Ubi(others, actions)
        columns, problems = format.open(engine, source, options)
        account = reduce_in_engine(engine, columns, options, source.name, problems, shards=shards)
        joined = None
        if given is not None:
            engine.open(given, VIEW)
            held = HeldColumns.of(given)
            joined = EngineFeatures.keep(engine, given.name, held.schemas, held.numbering, shards)
        report = part_of(progress, REDUCED, 1.0)
        return fetch_shards(
            engine, account, Path(out), shards, options.max_bad_share, joined, report
        )


def feature_files(features: str | os.PathLike[str]) -> Source:
    """The Parquet files that features lie in, which every engine can read."""
    name = os.fspath(features)
    found = find_source(features) if is_parquet(name) or not os.path.exists(name) else None
    if found is None or found.format is not PARQUET:
        raise DataError(f"{name}: features that go into shards are Parquet files")
    return found


@dataclass(frozen=True)
class HeldColumns:
    """What files of features hold, and which columns number the rows of every file.

    A file of one row says nothing about that.
    """

    schemas: list[pa.Schema]
    numbering: list[str]

    @classmethod
    def of(cls, source: Source) -> HeldColumns:
        """Look at the columns of files, and read those that are called like an index."""
        schemas, counting, others = [], dict[str, None](), set[str]()
        for file in source.files:
            try:
                with pq.ParquetFile(file) as opened:
                    names = opened.schema_arrow.names
                    schemas.append(opened.schema_arrow)
                    found = numbering_in(opened, names)
                    if opened.metadata.num_rows > 1:
                        others |= set(names).difference(found)
            except (OSError, ValueError, pa.ArrowException) as error:
                raise DataError(f"{file}: not readable as Parquet ({reason_of(error)})") from error
            counting |= dict.fromkeys(found)
        return cls(schemas, [name for name in counting if name not in others])


def part_of(progress: Progress | None, start: float, end: float) -> Progress | None:
    """What hears of a part of the work, and tells of the whole in per cent."""
    if progress is None:
        return None
    hears = progress

    def report(done: int, total: int) -> None:
        hears(round(100 * (start + (end - start) * done / max(total, 1))), 100)

    return report
