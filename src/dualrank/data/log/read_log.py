"""`read_log`: a click log from whatever it is written in."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.features import read_features
from dualrank.data.frames import to_table
from dualrank.data.log.added_days import read_days
from dualrank.data.log.assembly import assemble
from dualrank.data.log.columns import find_columns
from dualrank.data.log.days import Day
from dualrank.data.log.duckdb_engine import MEMORY_LIMIT, DuckDBEngine
from dualrank.data.log.engine import Progress
from dualrank.data.log.features_join import point_to
from dualrank.data.log.formats import PARQUET
from dualrank.data.log.log_files import find_source
from dualrank.data.log.log_format import Source
from dualrank.data.log.log_options import LogOptions
from dualrank.data.log.reading_report import Problem
from dualrank.data.log.reduction import reduce_log
from dualrank.data.log.saved import is_saved, read_saved
from dualrank.data.log.ubi import Ubi
from dualrank.data.shards.sharded_log import ShardedLog, is_sharded
from dualrank.errors import DataError, SettingsError
from dualrank.progress import shows_progress

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@shows_progress("reading the log")
def read_log(
    log: Paths | Any,
    dataset: Dataset | Any | None = None,
    *,
    events: Paths | None = None,
    actions: Sequence[str] = ("click",),
    memory: str = MEMORY_LIMIT,
    options: LogOptions | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> ClickLog:
    """Read a click log: one row per displayed document, or a reduced log that was saved.

    A folder of days that `dualrank reduce --append` wrote, or some files of it, are added up; so
    are the shards that `dualrank reduce --shards` wrote, which must then fit into memory.

    `log` is a Parquet, CSV or JSON lines file (`.gz` and `.zst` too), a folder of them, a pattern
    such as `clicks/2024-*.parquet`, several of these, or a data frame (pandas, polars, Arrow). With
    a `dataset`, or features that `read_features` reads, the log points to its documents; without,
    to a catalogue of its own.

    How it is read is said by the fields of `LogOptions`, as keywords (`columns={"doc_id": "item"}`,
    `contexts=["device"]`, `first_position=0`, `max_bad_share=0.01` …), or by one made before.

    With `events`, both are exports of User Behavior Insights: `log` has the queries, and events of
    one of the `actions` are the clicks. Both may be the same files.

    What is wrong with the log is counted in `reading` of the result, and left out. A share of bad
    sessions above `max_bad_share` is refused with a `BadLogError`, which names every kind of them;
    so is such a share of rows without a session, or of UBI clicks without a displayed document.
    DuckDB does the work within `memory`, and on disk beyond it; what is left in the end is held
    here, in memory of its own. `progress(done, total)` hears how far it is.

    >>> import pyarrow as pa
    >>> import dualrank as dr
    >>> table = pa.table({"session_id": [1, 1, 2, 2], "query_id": ["shoes"] * 4,
    ...                   "item": ["a", "b", "a", "b"], "position": [0, 1, 0, 1],
    ...                   "clicked": [True, False, False, True]})
    >>> log = dr.read_log(table, columns={"doc_id": "item"}, first_position=0)
    >>> log.sessions, log.reading.bad
    (2, 0)
    """
    options = replace(options or LogOptions(), **settings)
    if dataset is not None and not isinstance(dataset, Dataset):
        dataset = read_features(dataset)
    sharded = ShardedLog.open(log) if is_sharded(log) else None
    source = find_source(log) if _is_path(log) and sharded is None else None
    name = None if source is None else source.name
    if sharded is not None:
        name = str(sharded.folder)
    before: Mapping[str, float] = {}
    saved = _saved_files(source)
    if name is not None and (saved or sharded is not None):
        if events is not None:
            raise SettingsError(
                f"{name}: this log is reduced already; events are given when it is reduced"
            )
        days = None
        if source is not None and len(saved) == len(source.files):
            days = source.files if all(Day.of(file) for file in saved) else None
        # Days are cut into periods when they are added up.
        plain = replace(options, periods=LogOptions().periods) if days else options
        plain.require_reduced(name)
        if sharded is not None:
            result = sharded.read()
        elif days is not None:
            result = read_days(days, name, options.periods, progress)
        else:
            assert source is not None
            result = _read_saved(source)
        options.require_kept(name, result.columns, result.events)
        # What was bad when it was reduced was allowed then.
        before = result.reading.bad_shares if result.reading else {}
    else:
        if source is None and events is not None:
            raise SettingsError("events go with files of UBI queries")
        others = None if events is None else find_source(events)
        files = [file for each in (source, others) if each is not None for file in each.files]
        with DuckDBEngine(memory, files=files, progress=progress) as engine:
            if source is None:
                engine.register(to_table(log, "the log"))
                columns = find_columns(engine.types("log"), options)
                problems: Sequence[Problem] = ()
            else:
                format = source.format if others is None else Ubi(others, actions)
                columns, problems = format.open(engine, source, options)
            reduced = reduce_log(engine, columns, options, name or "the log", problems)
        result = assemble(reduced)
        if progress is not None:
            progress(100, 100)
    return finish(result, dataset, options.max_bad_share, before, name)


def is_reduced(log: Paths) -> bool:
    """Whether files are reduced logs, or some of them are."""
    return is_sharded(log) or bool(_saved_files(find_source(log)))


def finish(
    log: ClickLog,
    dataset: Dataset | None,
    max_bad_share: float,
    before: Mapping[str, float] | None = None,
    name: str | None = None,
) -> ClickLog:
    """Point a log to a data set, if there is one, and refuse it if too much of it is bad."""
    if dataset is not None:
        log = point_to(log, dataset)
    if log.reading is not None:
        log.reading.check(max_bad_share, before=before, name=name)
        if log.sessions and not log.lists.mask[:, 0].any():
            raise DataError(
                f"{name or log.reading.source}: no session shows a document at position 1, to "
                "which examination is relative; number the positions from the first that is shown"
            )
        if log.sessions == 0:
            raise DataError(
                f"{name or log.reading.source}: none of its {log.reading.sessions} sessions is left"
            )
    return log


def _read_saved(source: Source) -> ClickLog:
    if len(source.files) > 1:
        raise DataError(
            f"{source.name}: {_saved_files(source)[0]} is a reduced log among {len(source.files)} "
            "files; give it alone, or the log's own files, which are all reduced together (days "
            "that add up are written by `dualrank reduce --append`)"
        )
    return read_saved(source.files[0])


def _saved_files(source: Source | None) -> list[str]:
    if source is None or source.format is not PARQUET:
        return []
    return [file for file in source.files if is_saved(file)]


def _is_path(log: Any) -> bool:
    if isinstance(log, str | os.PathLike):
        return True
    return isinstance(log, list | tuple) and all(isinstance(p, str | os.PathLike) for p in log)
