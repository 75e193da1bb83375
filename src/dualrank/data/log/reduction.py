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
from dualrank.data.log.engine import Engine, numbered, only_value
from dualrank.data.log.event_amounts import check_amounts, sums_of_amounts
from dualrank.data.log.examples import MAX_DEPTH
from dualrank.data.log.log_judging import CLICKED, LogJudging
from dualrank.data.log.log_options import LogOptions
from dualrank.data.log.log_periods import cut
from dualrank.data.log.log_rows import steady_columns, view_rows
from dualrank.data.log.log_traffic import leave_out, top_clients
from dualrank.data.log.reading_report import KINDS, Client, Problem, ReadingReport
from dualrank.errors import DataError
from dualrank.sentences import shortened, start_of

WORD = 62
"""Positions whose clicks one 64-bit number holds (two bits stay free for signs and overflow)."""

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
    view_rows(engine, columns, options)
    check_amounts(engine, columns, source)
    words = 1
    while True:
        _sessions(engine, columns, words)
        deepest = only_value(engine, "SELECT max(place) FROM displayed")
        if deepest is None or deepest <= words * WORD:
            break
        if deepest > MAX_DEPTH:
            # An engine that believes the statistics of a file asks no row whether it fits.
            raise DataError(
                f"{source}: it holds position {deepest:,}, which its own statistics deny: it is "
                "damaged; write it again"
            )
        words = -(-deepest // WORD)
    return _Reduction(engine, columns, options, source, words, problems, shards).account()


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
    for name in steady_columns(columns):
        wanted += [f"min({name}) AS {name}", f"min({name}) <> max({name}) AS several_{name}"]
    if "timestamp" in columns:
        wanted.append("min(time) AS time")
    others = "".join(f", {name}" for name in steady_columns(columns))
    others += ", time" if "timestamp" in columns else ""
    engine.keep(
        "sessions",
        f"SELECT session, {', '.join(wanted)} FROM "
        f"(SELECT session, place, click{others}, {one} AS one FROM rows) GROUP BY session",
    )
    engine.keep(
        "lists",
        "SELECT one, two, min(session) AS session, min(row_count) AS row_count, "
        f"count(*) AS sessions, {CLICKED} AS clicked FROM sessions "
        "WHERE session IS NOT NULL GROUP BY one, two",
    )
    engine.keep(
        "displayed",
        "SELECT r.session, r.query, r.document, r.place, r.click, "
        "CAST(r.position AS STRING) AS position, CAST(r.clicked AS STRING) AS clicked "
        "FROM rows r JOIN lists l ON r.session = l.session",
    )


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
        self.judging = LogJudging(
            engine, columns, options, words, shards or PARTS, self.timed, problems
        )
        self.stray = sum(
            p.count for p in problems if p.treatment != "noted" and KINDS[p.kind].unit == "clicks"
        )

    def account(self) -> Account:
        """Everything, in the order in which one thing needs the other."""
        found = self._totals()
        self.judging.judge_lists()
        faults = self.judging.judge_sessions()
        bad, bad_clicked = self.judging.count_bad(faults)
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
        self._keep_shown(all_happened=faults == "FALSE" and not filters)
        problems = self.judging.problems
        report = ReadingReport(
            source=self.source,
            rows=found["rows"],
            sessions=found["sessions"],
            kept=int(kept),
            clicks=found["clicks"],
            problems=tuple(problems[kind] for kind in KINDS if kind in problems),
            filtered={name: count for name, (_, count) in filters.items()},
            clients=clients,
            bad=bad,
            clicked=found["clicked"],
            bad_clicked=bad_clicked,
        )
        return Account(self.columns.contexts, names, report, tuple(self.columns.events))

    def _keep_shown(self, *, all_happened: bool) -> None:
        """`pairs` of query and document, and `shown`: which of them the lists show where.

        Names are fetched once a pair: lists are many, and repeat them. Where sessions were left
        out, so is what they alone were shown.
        """
        happened = (
            ""
            if all_happened
            else "JOIN (SELECT DISTINCT shard, list FROM happened) h "
            "ON j.shard = h.shard AND j.list = h.list "
        )
        self.engine.view(
            "kept_rows",
            "SELECT j.shard, j.list, d.query, d.document, d.place FROM displayed d "
            f"JOIN judged j ON d.session = j.session {happened}"
            "WHERE NOT j.dropped AND d.place IS NOT NULL",
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
            self.judging.add("no_session", int(totals["no_session"]), example)
        return {
            "rows": rows,
            "sessions": int(totals["sessions"]),
            "clicks": int(totals["clicks"]) + self.stray,
            "clicked": int(totals["clicked"]),
        }

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
