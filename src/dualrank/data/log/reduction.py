"""Sessions rebuilt from rows, checked, and counted: the SQL of a reduction.

The rows of a session are never collected. One GROUP BY over the sessions sums, for each of them, a
64-bit hash of every row (query, document, position), takes the exclusive or of a second hash, and
sets a bit per clicked position. Sessions with equal hashes displayed the same list, so the rows of
*one* session of each distinct list are read again, and everything that can be wrong with a list is
looked for there. Two different lists would be taken for one only if both their hashes were equal,
which happens to one pair in 2^128: of a billion different lists, to one in 10^20 logs. The result
does not depend on the hash function, nor on the order of rows or how they lie in files.

Nothing on the way of rows is numbered or sorted in one place. A list is called by the least of its
sessions until its query is known; its *shard* is a hash of that query which every engine computes
alike, and lists, pairs and what happened are numbered within their shard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from dualrank.data.click_log import PERIOD
from dualrank.data.log.columns import Columns
from dualrank.data.log.engine import Engine, Type, only_value
from dualrank.data.log.event_amounts import amount, check_amounts, sums_of_amounts
from dualrank.data.log.examples import MAX_DEPTH, changing, example_of
from dualrank.data.log.log_options import LogOptions
from dualrank.data.log.log_periods import cut
from dualrank.data.log.log_traffic import leave_out, top_clients
from dualrank.data.log.reading_report import KINDS, Client, Problem, ReadingReport
from dualrank.errors import DataError
from dualrank.sentences import shortened, start_of

WORD = 62
"""Positions whose clicks one 64-bit number holds (two bits stay free for signs and overflow)."""

NO_CONTEXT = "(none)"

PARTS = 32
"""Into how many shards a log is cut that is fetched whole, so that they are numbered apart."""


@dataclass(frozen=True)
class Account:
    """What a reduction found that is no table, and the names that belong to its tables."""

    contexts: tuple[str, ...]
    periods: tuple[str, ...]
    report: ReadingReport
    events: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reduced:
    """The reduction of a log, or of a shard of it, as tables in any order of their rows.

    `pairs`: shard, pair, query and document of every pair that is shown.
    `shown`: shard, list, pair, place (1-based), for the documents of each distinct list, some
    perhaps repeated.
    `happened`: shard, list, clicks_0 … (a bit per position, `WORD` in each), period, contexts,
    sessions, and, where there are further events, happening.
    `amounts`, where there are further events: what of each kind the sessions of a happening add up
    to at a place (shard, happening, place, amount_0 …), where it is more than nothing.

    Pairs, lists and happenings are numbered from 0 within their shard, pairs in the order of query
    and document.
    """

    pairs: pa.Table
    shown: pa.Table
    happened: pa.Table
    account: Account
    amounts: pa.Table | None = None


def reduce_log(
    engine: Engine,
    columns: Columns,
    options: LogOptions,
    source: str,
    problems: Sequence[Problem] = (),
) -> Reduced:
    """Reduce the table `log` of an engine; problems, with those known already, are counted."""
    return fetch_reduced(engine, reduce_in_engine(engine, columns, options, source, problems))


def fetch_reduced(engine: Engine, account: Account, shard: int | None = None) -> Reduced:
    """The tables that `reduce_in_engine` keeps, or the part of them that is a shard's."""
    only = "" if shard is None else f" WHERE shard = {shard}"
    return Reduced(
        engine.fetch(f"SELECT * FROM pairs{only}"),
        engine.fetch(f"SELECT * FROM shown{only}"),
        engine.fetch(f"SELECT * FROM happened{only}"),
        account,
        engine.fetch(f"SELECT * FROM amounts{only}") if account.events else None,
    )


def reduce_in_engine(
    engine: Engine,
    columns: Columns,
    options: LogOptions,
    source: str,
    problems: Sequence[Problem] = (),
    *,
    shards: int | None = None,
) -> Account:
    """Reduce the table `log` to the tables of `Reduced`, which stay in the engine.

    Given a number of `shards`, they are kept such that any one of them is fetched without reading
    the others.
    """
    if options.max_client_share is not None and "client_id" not in columns:
        raise DataError(
            f"{source}: max_client_share needs a column client_id (or another named as such)"
        )
    _rows(engine, columns, options)
    check_amounts(engine, columns, source)
    words = 1
    while True:
        _sessions(engine, columns, words)
        deepest = only_value(engine, "SELECT max(place) FROM displayed")
        if deepest is None or deepest <= words * WORD:
            break
        words = -(-deepest // WORD)
    return _Reduction(engine, columns, options, source, words, problems, shards).account()


def _rows(engine: Engine, columns: Columns, options: LogOptions) -> None:
    """The view `rows`: what the columns mean, as equal types, NULL where they mean nothing."""
    types = engine.types("log")
    position, clicked = (engine.quote(columns[name]) for name in ("position", "clicked"))
    if types[columns["position"]] == "integer":
        whole = position
    else:
        number = f"TRY_CAST({position} AS DOUBLE)"
        whole = (
            f"CASE WHEN {number} = floor({number}) AND abs({number}) < 1e9 "
            f"THEN CAST({number} AS INTEGER) END"
        )
    if types[columns["clicked"]] == "boolean":
        click = clicked
    elif types[columns["clicked"]] in ("integer", "number"):
        click = f"CASE WHEN {clicked} = 1 THEN TRUE WHEN {clicked} = 0 THEN FALSE END"
    else:
        text = f"lower(CAST({clicked} AS STRING))"
        click = (
            f"CASE WHEN {text} IN ('1', 'true', 't', '1.0') THEN TRUE "
            f"WHEN {text} IN ('0', 'false', 'f', '0.0') THEN FALSE END"
        )
    first, last = options.first, options.first + MAX_DEPTH - 1
    selected = {
        "session": engine.quote(columns["session_id"]),
        "query": id_as_text(engine.quote(columns["query_id"]), types[columns["query_id"]]),
        "document": id_as_text(engine.quote(columns["doc_id"]), types[columns["doc_id"]]),
        "position": position,
        "place": f"CASE WHEN {whole} BETWEEN {first} AND {last} "
        f"THEN CAST({whole} - {first - 1} AS INTEGER) END",
        "clicked": clicked,
        "click": click,
    }
    for number_of, context in enumerate(columns.contexts):
        text = f"CAST({engine.quote(context)} AS STRING)"
        selected[f"context_{number_of}"] = f"coalesce({text}, '{NO_CONTEXT}')"
    if "client_id" in columns:
        selected["client"] = f"CAST({engine.quote(columns['client_id'])} AS STRING)"
    if "timestamp" in columns:
        name = columns["timestamp"]
        seconds = engine.seconds(engine.quote(name), types[name])
        # No time is infinite; a nan is larger than every number.
        selected["time"] = f"CASE WHEN abs({seconds}) < 1e18 THEN {seconds} END"
        selected["written_time"] = f"CAST({engine.quote(name)} AS STRING)"
    for number_of, name in enumerate(columns.events.values()):
        selected[f"amount_{number_of}"] = amount(engine.quote(name), types[name])
        selected[f"written_{number_of}"] = f"CAST({engine.quote(name)} AS STRING)"
    engine.view(
        "rows", "SELECT " + ", ".join(f"{v} AS {k}" for k, v in selected.items()) + " FROM log"
    )


def id_as_text(column: str, kind: Type) -> str:
    """An id as text; a whole number that became a float beside a missing value is written whole."""
    text = f"CAST({column} AS STRING)"
    if kind != "number":
        return text
    whole = f"{column} = floor({column}) AND abs({column}) < {2**53}"
    number = f"CAST(TRY_CAST({column} AS BIGINT) AS STRING)"
    missing = f"isnan(CAST({column} AS DOUBLE))"
    return f"CASE WHEN {missing} THEN NULL WHEN {whole} THEN {number} ELSE {text} END"


def _sessions(engine: Engine, columns: Columns, words: int) -> None:
    """`sessions`, one row each; `lists`, one of each distinct list; `displayed`, its rows."""
    # What else a row can hold that matters: a click without a position, a click that is no click.
    state = (
        "CASE WHEN click IS NULL THEN CASE WHEN clicked IS NULL THEN 3 ELSE 2 END "
        "WHEN position IS NULL AND click THEN 1 ELSE 0 END"
    )
    one = engine.hash(["query", "document", "position", state])
    wanted = [f"{engine.sum_of_hashes('one')} AS one", f"bit_xor({engine.hash(['one'])}) AS two"]
    wanted += ["count(*) AS row_count", "count(CASE WHEN click THEN 1 END) AS click_count"]
    for word in range(words):
        within = f"click AND place > {word * WORD} AND place <= {(word + 1) * WORD}"
        bit = engine.bit(f"place - {word * WORD + 1}")
        wanted.append(f"coalesce(bit_or(CASE WHEN {within} THEN {bit} END), 0) AS clicks_{word}")
    for name in _grouped(columns):
        wanted += [f"min({name}) AS {name}", f"min({name}) <> max({name}) AS several_{name}"]
    if "timestamp" in columns:
        wanted.append("min(time) AS time")
    others = "".join(f", {name}" for name in _grouped(columns))
    others += ", time" if "timestamp" in columns else ""
    engine.keep(
        "sessions",
        f"SELECT session, {', '.join(wanted)} FROM "
        f"(SELECT session, place, click{others}, {one} AS one FROM rows) GROUP BY session",
    )
    engine.keep(
        "lists",
        "SELECT one, two, min(session) AS session, min(row_count) AS row_count, "
        f"count(*) AS sessions, {_CLICKED} AS clicked FROM sessions "
        "WHERE session IS NOT NULL GROUP BY one, two",
    )
    engine.keep(
        "displayed",
        "SELECT r.session, r.query, r.document, r.place, r.click, "
        "CAST(r.position AS STRING) AS position, CAST(r.clicked AS STRING) AS clicked "
        "FROM rows r JOIN lists l ON r.session = l.session",
    )


def numbered(*order: str) -> str:
    """The number of a row among those of its shard, from 0, in an order that leaves no choice."""
    return (
        f"CAST(row_number() OVER (PARTITION BY shard ORDER BY {', '.join(order)}) - 1 AS INTEGER)"
    )


_CLICKED = "count(CASE WHEN click_count > 0 THEN 1 END)"
"""How many of some sessions have a click."""


def _grouped(columns: Columns) -> list[str]:
    """What must not change within a session."""
    names = [f"context_{number}" for number in range(len(columns.contexts))]
    return [*names, "client"] if "client_id" in columns else names


# Of each list its query, if it has one, and whether it is obviously right; to look at every list
# closely costs several times as much. (The least and the greatest query would tell as well whether
# there are two; but Spark sorts all rows where it aggregates texts.)
_FIRST_LOOK = """
    SELECT l.*, s.query, coalesce(s.sound, FALSE) AS sound FROM lists l LEFT JOIN (
        SELECT session, query, count(*) AS row_count,
            query IS NOT NULL AND count(*) = max(place) AND count(*) = {places}
            AND count(*) = count(DISTINCT document) AND count(*) = count(click) AS sound
        FROM displayed GROUP BY session, query
    ) s ON l.session = s.session AND l.row_count = s.row_count
"""

# Of the rows of one list, repeated rows merged: what is wrong with them, in the order of `KINDS`.
_FLAWS = """
    SELECT session,
        bool_or(query IS NULL OR document IS NULL OR unclicked OR (nowhere AND NOT click))
            OR count(place) + count(unread) = 0 AS missing_value,
        bool_or(unread IS NOT NULL AND NOT zero) AS bad_position,
        bool_or(zero) AS zero_based,
        max(place) > count(DISTINCT place) AS gap,
        count(place) > count(DISTINCT place) AS same_position,
        count(place) > count(DISTINCT CASE WHEN place IS NOT NULL THEN document END)
            AS same_document,
        bool_or(misclicked) AS bad_click,
        count(DISTINCT query) > 1 AS several_queries,
        bool_or(nowhere AND click) AS not_displayed,
        max(times) > 1 AS repeated_row
    FROM (
        SELECT session, query, document, place, unread, count(*) AS times,
               place IS NULL AND unread IS NULL AS nowhere,
               coalesce(TRY_CAST(unread AS DOUBLE) = 0, FALSE) AS zero,
               coalesce(bool_or(click), FALSE) AS click,
               bool_or(clicked IS NULL) AS unclicked,
               bool_or(clicked IS NOT NULL AND click IS NULL) AS misclicked
        FROM (SELECT *, CASE WHEN place IS NULL THEN position END AS unread
              FROM displayed WHERE session IN (SELECT session FROM seen WHERE NOT sound))
        GROUP BY session, query, document, place, unread
    )
    GROUP BY session
"""


class _Reduction:
    """What remains once sessions and lists are there: judge, filter, count."""

    def __init__(
        self,
        engine: Engine,
        columns: Columns,
        options: LogOptions,
        source: str,
        words: int,
        problems: Sequence[Problem],
        shards: int | None,
    ) -> None:
        self.engine, self.columns, self.options = engine, columns, options
        self.source, self.words, self.shards = source, words, shards
        self.clicked = " + ".join(f"bit_count(clicks_{word})" for word in range(words))
        # A log may have periods of its own, as a context.
        own = PERIOD in columns.contexts
        self.timed = "timestamp" in columns and options.periods > 1 and not own
        self.problems = {problem.kind: problem for problem in problems}
        self.stray = sum(
            p.count for p in problems if p.treatment != "noted" and KINDS[p.kind].unit == "clicks"
        )

    def account(self) -> Account:
        """Everything, in the order in which one thing needs the other."""
        found = self._totals()
        self._judge_lists()
        faults = self._judge_sessions()
        bad, bad_clicked = self._count_bad(faults)
        clients: tuple[Client, ...] = ()
        if "client_id" in self.columns:
            clients = top_clients(self.engine, self.options, found)
        filters = leave_out(self.engine, self.options, self.clicked, found["clicks"], faults)
        edges, names = list[float](), tuple[str, ...]()
        if self.timed:
            kind = self.engine.types("log")[self.columns["timestamp"]]
            edges, names = cut(self.engine, self.options.periods, kind)
        self._keep_happened(faults, filters, edges)
        kept = only_value(self.engine, "SELECT coalesce(sum(sessions), 0) FROM happened")
        self._keep_shown()
        report = ReadingReport(
            source=self.source,
            rows=found["rows"],
            sessions=found["sessions"],
            kept=int(kept),
            clicks=found["clicks"],
            problems=tuple(self.problems[kind] for kind in KINDS if kind in self.problems),
            filtered={name: count for name, (_, count) in filters.items()},
            clients=clients,
            bad=bad,
            clicked=found["clicked"],
            bad_clicked=bad_clicked,
        )
        return Account(self.columns.contexts, names, report, tuple(self.columns.events))

    def _keep_shown(self) -> None:
        """`pairs` of query and document, and `shown`: which of them the lists show where.

        Names are fetched once a pair: lists are many, and repeat them.
        """
        self.engine.view(
            "kept_rows",
            "SELECT j.shard, j.list, d.query, d.document, d.place FROM displayed d "
            "JOIN judged j ON d.session = j.session WHERE NOT j.dropped AND d.place IS NOT NULL",
        )
        self._keep(
            "pairs",
            f"SELECT shard, {numbered('query', 'document')} AS pair, query, document "
            "FROM (SELECT DISTINCT shard, query, document FROM kept_rows)",
        )
        shown = (
            "SELECT k.shard, k.list, p.pair, k.place FROM kept_rows k "
            "JOIN pairs p ON k.query = p.query AND k.document = p.document"
        )
        if self.shards is None:
            self.engine.view("shown", shown)
        else:
            self._keep("shown", shown)

    def _keep(self, name: str, query: str) -> None:
        """Keep a table of which shards are fetched one by one, or all at once."""
        self.engine.keep(name, query, by=None if self.shards is None else "shard")

    def _totals(self) -> dict[str, int]:
        (totals,) = self.engine.fetch(
            "SELECT coalesce(sum(row_count), 0) AS row_count, count(session) AS sessions, "
            "coalesce(sum(CASE WHEN session IS NULL THEN row_count END), 0) AS no_session, "
            "coalesce(sum(click_count), 0) AS clicks, "
            "count(CASE WHEN session IS NOT NULL AND click_count > 0 THEN 1 END) AS clicked "
            "FROM sessions"
        ).to_pylist()
        rows = int(totals["row_count"])
        if rows == 0:
            raise DataError(f"{self.source}: the log is empty")
        if totals["no_session"]:
            row = self.engine.fetch(
                "SELECT query, document, CAST(position AS STRING) AS position FROM rows "
                "WHERE session IS NULL "
                "ORDER BY query NULLS LAST, document NULLS LAST, position NULLS LAST LIMIT 1"
            ).to_pylist()[0]
            example = (
                f"such as the row of document {shortened(row['document'])} of query "
                f"{shortened(row['query'])} at "
                f"position {start_of(str(row['position']), 24)}"
            )
            self._found("no_session", int(totals["no_session"]), example)
        return {
            "rows": rows,
            "sessions": int(totals["sessions"]),
            "clicks": int(totals["clicks"]) + self.stray,
            "clicked": int(totals["clicked"]),
        }

    def _found(self, kind: str, count: int, example: str, clicked: int | None = None) -> None:
        self.problems[kind] = Problem(kind, count, example, clicked)

    def _judge_lists(self) -> None:
        """`judged`: of every distinct list, whether its sessions are dropped, or lose something."""
        looked_for = _FLAWS.replace("AS gap", "AS partial_list") if self.options.partial else _FLAWS
        flaws = [name for name in KINDS if f"AS {name}" in looked_for]
        distinct = f"bit_count(bit_or({self.engine.bit('place - 1')}))"
        places = distinct if self.words == 1 else "count(DISTINCT place)"
        self.engine.keep("seen", _FIRST_LOOK.format(places=places))
        self.engine.keep("flawed", looked_for)
        # A session over two queries has two lists; what that does to positions is not news.
        # Likewise a position that cannot be read leaves a gap, and so may one that is there twice.
        elsewhere = (
            "several_queries OR bad_position OR zero_based OR missing_value OR same_position"
        )
        unless = {
            "gap": elsewhere,
            "partial_list": elsewhere,
            "same_position": "several_queries",
            "same_document": "several_queries OR missing_value",
        }
        flags = ", ".join(
            f"coalesce({name}, FALSE) AND NOT coalesce({unless[name]}, FALSE) AS {name}"
            if name in unless
            else f"coalesce({name}, FALSE) AS {name}"
            for name in flaws
        )
        dropped = " OR ".join(name for name in flaws if KINDS[name].treatment == "dropped")
        lossy = " OR ".join(name for name in flaws if KINDS[name].treatment != "noted")
        shard = self.engine.shard("s.query", self.shards or PARTS)
        self.engine.keep(
            "judged",
            f"SELECT *, {numbered('session')} AS list, {dropped} AS dropped, {lossy} AS lossy FROM "
            f"(SELECT {shard} AS shard, one, two, s.session, sessions, clicked, {flags} "
            "FROM seen s LEFT JOIN flawed f ON s.session = f.session)",
        )
        counts = ", ".join(
            f"sum(CASE WHEN {name} THEN sessions END) AS {name}, "
            f"sum(CASE WHEN {name} THEN clicked END) AS clicked_{name}"
            for name in flaws
        )
        (found,) = self.engine.fetch(f"SELECT {counts} FROM judged").to_pylist()
        for name in flaws:
            if found[name]:
                count, clicked = int(found[name]), int(found[f"clicked_{name}"])
                self._found(name, count, self._example(name), clicked)

    def _example(self, kind: str) -> str:
        rows = self.engine.fetch(
            "SELECT session, query, document, position, clicked, place, click FROM displayed "
            f"WHERE session = (SELECT min(session) FROM judged WHERE {kind}) "
            "ORDER BY TRY_CAST(position AS DOUBLE), document, query, clicked"
        ).to_pylist()
        return example_of(kind, rows[0]["session"], rows, self.options.first)

    def _judge_sessions(self) -> str:
        """The condition under which a session itself, rather than its list, is dropped."""
        conditions = {}
        contexts = [f"several_context_{i}" for i in range(len(self.columns.contexts))]
        if contexts:
            conditions["several_contexts"] = " OR ".join(contexts)
        if "client_id" in self.columns:
            conditions["several_clients"] = "several_client"
        if self.timed:
            conditions["no_time"] = "time IS NULL"
        for kind, condition in list(conditions.items()):
            where = f"session IS NOT NULL AND ({condition})"
            (found,) = self.engine.fetch(
                "SELECT count(session) AS sessions, "
                f"count(CASE WHEN {where} THEN 1 END) AS bad, "
                f"count(CASE WHEN {where} AND click_count > 0 THEN 1 END) AS clicked FROM sessions"
            ).to_pylist()
            if not found["bad"]:
                continue
            if kind == "no_time" and found["bad"] == found["sessions"]:
                # A column that holds no times at all says nothing against the sessions.
                self._found("no_times", found["bad"], self._time_example(where))
                del conditions[kind]
            elif kind == "no_time":
                self._found(kind, found["bad"], self._time_example(where), found["clicked"])
            else:
                self._found(kind, found["bad"], self._changing_example(where), found["clicked"])
        return " OR ".join(f"coalesce({c}, FALSE)" for c in conditions.values()) or "FALSE"

    def _time_example(self, where: str) -> str:
        row = self.engine.fetch(
            "SELECT session, written_time FROM rows WHERE session = "
            f"(SELECT min(session) FROM sessions WHERE {where}) "
            "ORDER BY written_time NULLS LAST LIMIT 1"
        ).to_pylist()[0]
        return f"session {shortened(row['session'])} has timestamp {shortened(row['written_time'])}"

    def _changing_example(self, where: str) -> str:
        named = dict(zip(_grouped(self.columns), (*self.columns.contexts, "client"), strict=False))
        rows = self.engine.fetch(
            f"SELECT session, {', '.join(named)} FROM rows WHERE session = "
            f"(SELECT min(session) FROM sessions WHERE {where})"
        ).to_pylist()
        for column, name in named.items():
            values = sorted({row[column] for row in rows if row[column] is not None})
            if len(values) > 1 and (column == "client") == ("several_client" in where):
                return changing(rows[0]["session"], name, values)
        return f"such as session {shortened(rows[0]['session'])}"

    def _count_bad(self, faults: str) -> tuple[int, int]:
        """Sessions that lose something, and those of them with a click."""
        if faults == "FALSE":
            bad = (
                "SELECT sum(sessions) AS sessions, sum(clicked) AS clicked FROM judged WHERE lossy"
            )
        else:
            bad = (
                f"SELECT count(*) AS sessions, {_CLICKED} AS clicked FROM sessions s "
                "JOIN judged j ON s.one = j.one AND s.two = j.two "
                f"WHERE s.session IS NOT NULL AND (j.lossy OR {faults})"
            )
        (found,) = self.engine.fetch(bad).to_pylist()
        return int(found["sessions"] or 0), int(found["clicked"] or 0)

    def _keep_happened(
        self, faults: str, filters: dict[str, tuple[str, int]], edges: Sequence[float]
    ) -> None:
        """`happened`: what happened how often, and the `amounts` of further events."""
        keys = [f"clicks_{word}" for word in range(self.words)]
        keys += [f"context_{number}" for number in range(len(self.columns.contexts))]
        passed = [f"NOT ({condition})" for condition, _ in filters.values()]
        kept = " AND ".join(["session IS NOT NULL", f"NOT ({faults})", *passed])
        period = " + ".join(f"CASE WHEN time >= {edge!r} THEN 1 ELSE 0 END" for edge in edges[1:])
        chosen = ", ".join([*keys, f"{period or 0} AS period"])
        happened = (
            f"SELECT j.shard, j.list, {', '.join(keys)}, period, n AS sessions FROM ("
            f"SELECT one, two, {', '.join(keys)}, period, count(*) AS n FROM "
            f"(SELECT one, two, {chosen} FROM sessions WHERE {kept}) "
            f"GROUP BY one, two, {', '.join(keys)}, period"
            ") h JOIN judged j ON h.one = j.one AND h.two = j.two WHERE NOT j.dropped"
        )
        if not self.columns.events:
            self._keep("happened", happened)
            return
        keys.append("period")
        happening = numbered("list", *keys)
        self._keep("happened", f"SELECT *, {happening} AS happening FROM ({happened})")
        sessions = f"SELECT session, one, two, {chosen} FROM sessions WHERE {kept}"
        self._keep("amounts", sums_of_amounts(sessions, keys, len(self.columns.events)))
