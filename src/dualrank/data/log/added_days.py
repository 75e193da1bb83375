"""Days of a log added up: what one reduction of all of them together would have given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dualrank.data.click_log import PERIOD, ClickLog, Column
from dualrank.data.log.added_reports import added_reports
from dualrank.data.log.days import Day, refuse_unlike
from dualrank.data.log.engine import Progress
from dualrank.data.log.saved import BROKEN, read_saved, rows_and_note
from dualrank.data.log.saved_rows import log_of, one_table
from dualrank.errors import DataError
from dualrank.sentences import reason_of

MILLIONTH = 1e6
"""Amounts of events are summed to a millionth of one."""
EXACT = 2**52
"""So many millionths are told apart, whatever the order in which they are added."""


def read_days(
    files: Sequence[str], source: str, periods: int, progress: Progress | None = None
) -> ClickLog:
    """The sum of days, row by row that of reducing all of their sessions at once.

    Days are whole: their order is that of their names, and periods (about so many, of about equally
    many sessions) begin where a day does, by the rule by which times are cut.
    """
    days, rows = [], {}
    for done, path in enumerate(files):
        if progress is not None:
            progress(done, len(files))
        rows[path] = rows_and_note(path)
        day = Day.of(path, rows[path][1])
        if day is None:
            raise DataError(f"{path}: no longer a day of a log; somebody has changed it meanwhile")
        days.append(day)
    days.sort(key=lambda day: day.name)
    tables, notes = [rows[day.path][0] for day in days], [rows[day.path][1] for day in days]
    refuse_unlike(days)
    try:
        log = _sum(days, tables, notes, periods)
        return replace(log, reading=added_reports([note["reading"] for note in notes], source))
    except BROKEN as error:
        for path in files:
            read_saved(path)  # names the one that is damaged
        raise DataError(f"{source}: its days do not add up ({reason_of(error)})") from error


def _sum(
    days: list[Day], tables: list[pa.Table], notes: list[dict[str, Any]], periods: int
) -> ClickLog:
    names = list(notes[0]["columns"])
    note = {
        "columns": {
            name: sorted({value for each in notes for value in each["columns"][name]})
            for name in names
        },
        "events": notes[0].get("events", []),
        "reading": None,
    }
    rows = [pc.sum(pc.list_value_length(table["happened"])).as_py() or 0 for table in tables]
    more = {}
    begins, period_of_day = _cut([day.sessions for day in days], periods)
    # A log may have periods of its own, as a context.
    if len(begins) > 1 and PERIOD not in names:
        codes = np.repeat(period_of_day, rows).astype(np.int32)
        more[PERIOD] = Column(tuple(days[begin].name for begin in begins), codes)
    log = log_of(one_table(tables), note, more)
    events = {kind: _exact(amounts, len(days)) for kind, amounts in log.events.items()}
    return replace(log, events=events)


def _cut(sessions: list[int], periods: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The days with which periods begin, and the period of each day; see `log_periods.cut`."""
    ends = np.cumsum(sessions)
    first = [int(ends[-1]) * part // max(periods, 1) for part in range(max(periods, 1))]
    begins = np.unique(np.searchsorted(ends, first, side="right"))
    return begins, np.searchsorted(begins, np.arange(len(sessions)), side="right") - 1


def _exact(amounts: NDArray[np.float64], days: int) -> NDArray[np.float64]:
    """Sums of days as a single sum of whole millionths would be."""
    millionths = amounts * MILLIONTH
    small = millionths < EXACT / max(days, 1)
    return np.where(small, np.rint(millionths) / MILLIONTH, amounts)
