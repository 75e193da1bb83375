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
from dualrank.data.log.reduction import Reading, reduce_log
from dualrank.data.log.source import find_source
from dualrank.errors import DataError, SettingsError

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def read_log(
    log: Paths | Any,
    dataset: Dataset | None = None,
    *,
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

    What is wrong with the log is counted in `reading` of the result, and left out. A share of bad
    sessions above `max_bad_share` is refused with a `BadLogError`, which names every kind of them.
    DuckDB does the work within `memory`, and on disk beyond it.
    """
    if not 0 <= max_bad_share <= 1:
        raise SettingsError(f"max_bad_share is a share from 0 to 1, not {max_bad_share}")
    reading = Reading(first_position, periods, max_clicks, max_client_share)
    with DuckDBEngine(memory) as engine:
        name = "the log"
        if _is_path(log):
            source = find_source(log)
            name = source.name
            engine.open(source)
        else:
            engine.register(_table(log))
        present = list(engine.types("log"))
        found = find_columns(present, columns, contexts, where=name)
        result = assemble(reduce_log(engine, found, reading, name))
    if dataset is not None:
        result = point_to(result, dataset)
    assert result.reading is not None
    result.reading.check(max_bad_share)
    if result.reading.kept == 0:
        raise DataError(f"{name}: no session is left of {result.reading.sessions}")
    return result


def _is_path(log: Any) -> bool:
    if isinstance(log, str | os.PathLike):
        return True
    return isinstance(log, list | tuple) and all(isinstance(p, str | os.PathLike) for p in log)


def _table(frame: Any) -> pa.Table:
    try:
        return frame if isinstance(frame, pa.Table) else pa.table(frame)
    except (TypeError, ValueError, pa.ArrowInvalid) as error:
        raise DataError(f"the log is no data frame that Arrow can read ({error})") from error
