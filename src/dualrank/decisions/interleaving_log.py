"""Interleaved impressions, read from a click log: what every session's clicks count for each arm.

The log is long, one row per displayed document. Whose document it is stands in a column `arm` (or
`team`), or is looked up in the lists that were served: by their number, where the log has it in a
column `interleaving`, or else by what was displayed. Rows are checked, filtered and reduced as
those of any log: what a session's arms were, and its day, are contexts of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.data.click_log import ClickLog
from dualrank.data.frames import is_frame, to_table
from dualrank.data.log.assembly import assemble
from dualrank.data.log.columns import Columns, find_columns
from dualrank.data.log.duckdb_engine import MEMORY_LIMIT, DuckDBEngine
from dualrank.data.log.engine import Progress
from dualrank.data.log.formats import PARQUET
from dualrank.data.log.log_files import find_source
from dualrank.data.log.log_options import LogOptions
from dualrank.data.log.log_rows import NO_CONTEXT
from dualrank.data.log.read_log import finish
from dualrank.data.log.reading_report import ReadingReport
from dualrank.data.log.reduction import reduce_log
from dualrank.data.log.saved import is_saved
from dualrank.data.shards.sharded_log import is_sharded
from dualrank.decisions.interleaving_events import holds_events, rows_of_events
from dualrank.decisions.interleaving_lists import InterleavedLists, read_lists
from dualrank.errors import DataError, SettingsError
from dualrank.progress import shows_progress
from dualrank.sentences import counted, listed, shortened

ARM, CREDIT, NUMBER = "arm", "credit", "interleaving"
ARM_COLUMNS = (ARM, "team", "search_config", "search_configuration_uuid", "search_configuration_id")
MOST_ARMS = 20
_ASSIGNED, _DAY = "dualrank_assigned", "dualrank_day"
_SECONDS_A_DAY = 86_400

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class InterleavedLog:
    """What happened in interleaved sessions, equal ones counted together.

    Row i stands for `counts[i]` sessions of query `queries[query_of[i]]` on the day `day_of[i]`
    (days since 1970; -1 where that is not known), in which clicks counted `credits[i, a]` for arm
    `arms[a]`. Sessions are `graded` where documents count differently.
    """

    arms: tuple[str, ...]
    queries: NDArray[np.object_]
    query_of: NDArray[np.int64]
    day_of: NDArray[np.int64]
    credits: Floats
    counts: NDArray[np.int64]
    graded: bool = False
    notes: tuple[str, ...] = ()
    reading: ReadingReport | None = None

    @property
    def sessions(self) -> int:
        """How many sessions there are, with and without clicks."""
        return int(self.counts.sum())


@shows_progress("reading interleaved sessions")
def read_interleaved(
    log: Any,
    *,
    lists: str | Path | InterleavedLists | None = None,
    arms: Sequence[str] = (),
    memory: str = MEMORY_LIMIT,
    options: LogOptions | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> InterleavedLog:
    """Read interleaved sessions: a long click log with its arms, or with the `lists` served.

    `log` is what `read_log` takes: Parquet, CSV, JSON lines, folders, patterns, a data frame; or
    User Behavior Insights events that say which arm their documents are of. How it is read is said
    by the fields of `LogOptions`; in `columns` there are further meanings, `arm`, `credit` and
    `interleaving`. `arms` names those to compare, and their order.
    """
    options = replace(options or LogOptions(), **settings)
    own = {key: options.columns[key] for key in (ARM, CREDIT, NUMBER) if key in options.columns}
    others = {key: name for key, name in options.columns.items() if key not in own}
    options = replace(options, columns=others, contexts=(), event_kinds=(), periods=0)
    served = None if lists is None else lists
    if served is not None and not isinstance(served, InterleavedLists):
        served = read_lists(Path(served))
    in_shards = is_sharded(log)
    source = None if is_frame(log) or in_shards else find_source(log)
    name = "the log" if is_frame(log) else str(log) if source is None else source.name
    files = source.files if source is not None else ()
    parquet = source is not None and source.format is PARQUET
    if in_shards or (parquet and any(is_saved(f) for f in files)):
        raise DataError(
            f"{name}: a reduced log does not tell which arm a document was of; give the log's own "
            "files"
        )
    notes: list[str] = []
    with DuckDBEngine(memory, files=files, progress=progress) as engine:
        table = "logged"
        if source is None:
            engine.register(to_table(log, name), table)
        else:
            engine.open(source, table)
        if holds_events(engine, table, name):
            told = rows_of_events(engine, table, "from_events", name)
            table, options = "from_events", replace(options, first_position=None)
            notes += [told] if told else []
        columns = find_columns(engine.types(table), options, where=name)
        found = _assign(engine, table, columns, options, own, served is not None, name)
        wanted = replace(options, contexts=(_ASSIGNED, _DAY))
        columns = find_columns(engine.types("log"), wanted, where=name)
        reduced = reduce_log(engine, columns, wanted, name)
    click_log = finish(assemble(reduced), None, options.max_bad_share, None, name)
    if progress is not None:
        progress(100, 100)
    if served is None:
        known: tuple[str, ...] = found
        weights, of_row = _from_keys(click_log, len(known), options.first, name)
        kept = np.ones(len(click_log.counts), dtype=bool)
    else:
        known = served.making.arms
        weights, of_row = _from_lists(click_log, served)
        kept = of_row >= 0
        notes += _unmatched(click_log, kept, options.max_bad_share, name)
    click_log, of_row = click_log.take_rows(np.flatnonzero(kept)), of_row[kept]
    return _credited(click_log, known, weights, of_row, tuple(arms), tuple(notes), name)


def _assign(
    engine: DuckDBEngine,
    table: str,
    columns: Columns,
    options: LogOptions,
    own: Mapping[str, str],
    served: bool,
    name: str,
) -> tuple[str, ...]:
    """The view `log`: the rows with their session's arms and day. Gives the names of the arms."""
    present = engine.types(table)
    for meaning, column in own.items():
        if column not in present:
            raise DataError(
                f"{name}: there is no column {column!r} (as {meaning}); the log has "
                f"{listed(present)}"
            )
    session = engine.quote(columns["session_id"])
    names: tuple[str, ...] = ()
    if served:
        number = own.get(NUMBER, NUMBER)
        key = f"min(CAST({engine.quote(number)} AS VARCHAR))" if number in present else "NULL"
    else:
        names, key = _arms_key(engine, table, columns, own, name)
    day = "NULL"
    if "timestamp" in columns:
        stamp = columns["timestamp"]
        seconds = engine.seconds(engine.quote(stamp), present[stamp])
        # Counted in milliseconds or microseconds, today is beyond what seconds say of any year.
        seconds = (
            f"(CASE WHEN {seconds} > 1e14 THEN {seconds} / 1e6 "
            f"WHEN {seconds} > 1e11 THEN {seconds} / 1e3 ELSE {seconds} END)"
        )
        day = f"CAST(floor(min(CASE WHEN {seconds} BETWEEN 0 AND 1e11 THEN {seconds} END) / "
        day += f"{_SECONDS_A_DAY}) AS BIGINT)"
    engine.keep(
        "assigned",
        f"SELECT {session} AS session, {key} AS assignment, {day} AS day FROM {table} "
        f"WHERE {session} IS NOT NULL GROUP BY {session}",
    )
    engine.view(
        "log",
        f"SELECT l.*, a.assignment AS {_ASSIGNED}, a.day AS {_DAY} FROM {table} l "
        f"LEFT JOIN assigned a ON a.session = l.{session}",
    )
    return names


def _arms_key(
    engine: DuckDBEngine, table: str, columns: Columns, own: Mapping[str, str], name: str
) -> tuple[tuple[str, ...], str]:
    """The arms of the log, and what of each session tells which of them its documents are of."""
    present = engine.types(table)
    column = own.get(ARM) or next((each for each in ARM_COLUMNS if each in present), None)
    if column is None:
        raise DataError(
            f"{name}: no column says which arm a document is of; expected {ARM} or team (another "
            f"name is given as columns={ {ARM: 'NAME'} }), or give lists= with the lists that were "
            "shown"
        )
    arm = f"nullif(CAST({engine.quote(column)} AS VARCHAR), '')"
    names = engine.fetch(
        f"SELECT DISTINCT {arm} AS arm FROM {table} WHERE {arm} IS NOT NULL ORDER BY arm "
        f"LIMIT {MOST_ARMS + 1}"
    )["arm"].to_pylist()
    if not names:
        raise DataError(f"{name}: column {column!r} is empty; expected the arm of each document")
    if len(names) > MOST_ARMS:
        raise DataError(
            f"{name}: column {column!r} has more than {MOST_ARMS} values ({listed(names[:3])} …); "
            "expected the names of a few arms"
        )
    credit = "1"
    worth = own.get(CREDIT, CREDIT)
    if worth in present:
        credit = f"TRY_CAST({engine.quote(worth)} AS DOUBLE)"
        bad = engine.fetch(
            f"SELECT CAST({engine.quote(worth)} AS VARCHAR) AS said FROM {table} WHERE {arm} IS "
            f"NOT NULL AND NOT coalesce({credit} >= 0 AND {credit} < 1e9, FALSE) LIMIT 1"
        )["said"].to_pylist()
        if bad:
            raise DataError(
                f"{name}: a {worth} is {shortened(bad[0])}; expected a number of 0 or more in "
                "every row with an arm"
            )
    code = f"list_position({engine.texts(names)}, {arm}) - 1"
    place = f"TRY_CAST({engine.quote(columns['position'])} AS DOUBLE)"
    entry = f"concat_ws(':', CAST({place} AS BIGINT), {code}, {credit})"
    entry = f"CASE WHEN {arm} IS NOT NULL AND abs({place}) < 1e9 THEN {entry} END"
    return tuple(names), f"string_agg(DISTINCT {entry}, ',' ORDER BY {entry})"


def _from_keys(log: ClickLog, arms: int, first: int, name: str) -> tuple[Floats, NDArray[np.int64]]:
    """What a click at each position counts for each arm, and which of these holds for each row."""
    column = log.column(_ASSIGNED)
    weights = np.zeros((len(column.names), log.lists.depth, arms))
    for number, key in enumerate(column.names):
        taken: dict[int, int] = {}
        for entry in key.split(",") if key != NO_CONTEXT else ():
            place, code, credit = entry.split(":")
            position = int(place) - first
            if taken.setdefault(position, int(code)) != int(code):
                raise DataError(
                    f"{name}: a session has two arms at position {place}; expected one arm for "
                    "each document"
                )
            if 0 <= position < log.lists.depth:
                weights[number, position, int(code)] = float(credit)
    return weights, column.codes.astype(np.int64)


def _from_lists(log: ClickLog, served: InterleavedLists) -> tuple[Floats, NDArray[np.int64]]:
    """The same by the lists that were served; -1 where what was displayed is none of them."""
    assert log.catalogue is not None
    code_of = {arm: code for code, arm in enumerate(served.making.arms)}
    column = log.column(_ASSIGNED)
    pairs, of_row = np.unique(
        np.stack([log.list_of, column.codes], axis=1), axis=0, return_inverse=True
    )
    weights = np.zeros((len(pairs), log.lists.depth, len(code_of)))
    matched = np.zeros(len(pairs), dtype=bool)
    for number, (row, code) in enumerate(pairs.tolist()):
        places = np.flatnonzero(log.lists.documents[row] >= 0).tolist()
        documents = log.catalogue.doc_ids[log.lists.documents[row][places]].tolist()
        drawn = served.lists.get(log.catalogue.query_ids[log.lists.queries[row]], ())
        said = column.names[code]
        if said != NO_CONTEXT:
            at = int(said) if said.isascii() and said.isdigit() and len(said) < 10 else 0
            drawn = drawn[at - 1 : at] if at else ()
        # Of a list, its beginning may have been shown, or logged, alone.
        fits = [
            each
            for each in drawn
            if places[-1] < len(each.documents)
            and [each.documents[place] for place in places] == documents
        ]
        # Which of several draws it was that show the same, nobody knows: each as likely as it is.
        total = sum(each.probability for each in fits)
        for each in fits if total > 0 else ():
            matched[number] = True
            for position in places:
                arm = each.arms[position]
                if arm is not None:
                    share = each.probability / total
                    weights[number, position, code_of[arm]] += share * each.credits[position]
    of_row = of_row.reshape(-1).astype(np.int64)
    return weights, np.where(matched[of_row], of_row, -1)


def _unmatched(
    log: ClickLog, kept: NDArray[np.bool_], max_bad_share: float, name: str
) -> list[str]:
    """Refuse or note sessions whose lists are not among those that were served."""
    count, total = int(log.counts[~kept].sum()), log.sessions
    if not count:
        return []
    assert log.catalogue is not None
    row = log.list_of[np.flatnonzero(~kept)[0]]
    shown = log.lists.documents[row]
    documents = log.catalogue.doc_ids[shown[shown >= 0]].tolist()
    query = log.catalogue.query_ids[log.lists.queries[row]]
    what = f"{count:,} of {total:,} sessions show a list that is not among those that lists= names"
    if count == total or count / total > max_bad_share:
        raise DataError(
            f"{name}: {what}, such as {listed(documents, 60)} for query {shortened(query)}; give "
            "the file that was served, or raise max_bad_share to leave such sessions out"
        )
    return [f"{count:,} of {total:,} sessions show a list that was not served, and are left out"]


def _credited(
    log: ClickLog,
    known: tuple[str, ...],
    weights: Floats,
    of_row: NDArray[np.int64],
    wanted: tuple[str, ...],
    notes: tuple[str, ...],
    name: str,
) -> InterleavedLog:
    """What clicks count, for the arms that are compared."""
    seen = weights[np.unique(of_row)].max(axis=(0, 1), initial=0.0)
    shown = [arm for arm, most in zip(known, seen.tolist(), strict=True) if most > 0]
    chosen = wanted or known
    if len(set(chosen)) < len(chosen):
        raise SettingsError(f"arms names one twice: {listed(chosen)}")
    if len(wanted) == 1:
        raise SettingsError(f"arms names one arm, {shortened(wanted[0])}; a comparison has two")
    for arm in chosen:
        if arm not in shown:
            raise DataError(
                f"{name}: arm {shortened(arm)} is in no impression; there are {listed(shown)}"
            )
    if len(chosen) < 2:
        raise DataError(
            f"{name}: all documents are of one arm, {shortened(chosen[0])}; a comparison has two"
        )
    credits = np.zeros((len(log.counts), len(known)))
    for start in range(0, len(credits), 100_000):
        part = slice(start, start + 100_000)
        credits[part] = np.einsum("pd,pda->pa", log.clicks[part], weights[of_row[part]])
    of_nobody = int(log.counts[~weights[of_row].any(axis=(1, 2))].sum())
    if of_nobody:
        told = "in which no document is of an arm count as ties"
        notes = (*notes, f"{counted(of_nobody, 'sessions')} {told}")
    assert log.catalogue is not None
    days = log.column(_DAY)
    day = np.array([-1 if said == NO_CONTEXT else int(said) for said in days.names], np.int64)
    worths = np.unique(weights[weights > 0])
    return InterleavedLog(
        tuple(chosen),
        np.asarray(log.catalogue.query_ids, dtype=object),
        log.lists.queries[log.list_of].astype(np.int64),
        day[days.codes],
        credits[:, [known.index(arm) for arm in chosen]],
        log.counts,
        graded=len(worths) > 1,
        notes=notes,
        reading=log.reading,
    )
