"""`read_log`: a click log from whatever it is written in."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.log.assembly import assemble
from dualrank.data.log.columns import find_columns
from dualrank.data.log.engine import MEMORY_LIMIT, DuckDBEngine
from dualrank.data.log.features_join import point_to
from dualrank.data.log.log_files import Source, find_source
from dualrank.data.log.reading_report import Problem
from dualrank.data.log.reduction import Reading, reduce_log
from dualrank.data.log.saved import is_saved, read_saved
from dualrank.data.log.ubi import open_ubi
from dualrank.errors import DataError, SettingsError

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def read_log(
    log: Paths | Any,
    dataset: Dataset | None = None,
    *,
    events: Paths | None = None,
    actions: Sequence[str] = ("click",),
    columns: Mapping[str, str] | None = None,
    contexts: Sequence[str] = (),
    first_position: int = 1,
    periods: int = 4,
    max_bad_share: float = 0.0,
    max_clicks: int | None = None,
    max_client_share: float | None = None,
    memory: str = MEMORY_LIMIT,
) -> ClickLog:
    """Read a click log: one row per displayed document, or a reduced log that was saved.

    `log` is a Parquet, CSV or JSON lines file (`.gz` and `.zst` too), a folder of them, a pattern
    such as `clicks/2024-*.parquet`, several of these, or a data frame that Arrow can read. With a
    `dataset` the log points to its documents; without, to a catalogue of its own.

    `columns` gives the log's own names, such as `{"doc_id": "item"}`. Sessions that differ in one
    of the `contexts` are counted apart. Where there is a `timestamp`, the log is cut into `periods`
    of about equally many sessions. Sessions with more than `max_clicks` clicks, and those of
    clients with more than `max_client_share` of all clicks, are left out.

    With `events`, both are exports of User Behavior Insights: `log` has the queries, and events of
    one of the `actions` are the clicks.

    What is wrong with the log is counted in `reading` of the result, and left out. A share of bad
    sessions above `max_bad_share` is refused with a `BadLogError`, which names every kind of them;
    so is such a share of rows without a session, or of UBI clicks without a displayed document.
    DuckDB does the work within `memory`, and on disk beyond it.
    """
    if not 0 <= max_bad_share <= 1:
        raise SettingsError(f"max_bad_share is a share from 0 to 1, not {max_bad_share}")
    reading = Reading(first_position, periods, max_clicks, max_client_share)
    source = find_source(log) if _is_path(log) else None
    before: Mapping[str, float] = {}
    saved = _saved_files(source)
    if source is not None and saved:
        if events is not None:
            raise SettingsError(
                f"{source.name}: this log is reduced already; events are given when it is reduced"
            )
        if columns or reading != Reading():
            raise SettingsError(
                f"{source.name}: this log is reduced already; columns, positions, periods and "
                "traffic filters are given when it is reduced"
            )
        result = _read_saved(source, contexts)
        # What was bad when it was reduced was allowed then.
        before = result.reading.bad_shares if result.reading else {}
    else:
        with DuckDBEngine(memory) as engine:
            name, problems = "the log" if source is None else source.name, list[Problem]()
            if events is not None:
                if source is None or columns:
                    raise SettingsError("events go with files of UBI queries, and no other columns")
                used, problems = open_ubi(engine, source, find_source(events), actions, contexts)
            else:
                if source is None:
                    engine.register(_table(log))
                else:
                    engine.open(source)
                used = find_columns(list(engine.types("log")), columns, contexts, where=name)
            result = assemble(reduce_log(engine, used, reading, name, problems))
    return finish(result, dataset, max_bad_share, before, source.name if source else None)


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
        if log.sessions == 0:
            raise DataError(
                f"{name or log.reading.source}: none of its {log.reading.sessions} sessions is left"
            )
    return log


def _read_saved(source: Source, contexts: Sequence[str]) -> ClickLog:
    if len(source.files) > 1:
        raise DataError(
            f"{source.name}: {_saved_files(source)[0]} is a reduced log among {len(source.files)} "
            "files; give it alone, or the log's own files, which are all reduced together"
        )
    log = read_saved(source.files[0])
    for context in contexts:
        log.column(context)
    return log


def _saved_files(source: Source | None) -> list[str]:
    if source is None or source.format != "parquet":
        return []
    return [file for file in source.files if is_saved(file)]


def _is_path(log: Any) -> bool:
    if isinstance(log, str | os.PathLike):
        return True
    return isinstance(log, list | tuple) and all(isinstance(p, str | os.PathLike) for p in log)


def _table(frame: Any) -> pa.Table:
    try:
        return frame if isinstance(frame, pa.Table) else pa.table(frame)
    except (TypeError, ValueError, pa.ArrowInvalid) as error:
        raise DataError(f"the log is no data frame that Arrow can read ({error})") from error
