"""What is wrong with the lists and sessions of a log: found, counted, and shown by an example."""

from __future__ import annotations

from collections.abc import Sequence

from dualrank.data.log.columns import Columns
from dualrank.data.log.engine import Engine, numbered
from dualrank.data.log.examples import changing, example_of
from dualrank.data.log.log_options import LogOptions
from dualrank.data.log.log_rows import steady_columns
from dualrank.data.log.reading_report import KINDS, Problem
from dualrank.sentences import shortened

CLICKED = "count(CASE WHEN click_count > 0 THEN 1 END)"
"""How many of some sessions have a click."""

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


class LogJudging:
    """Judges the tables `lists`, `displayed` and `sessions`, and remembers what it found.

    Lists become the table `judged`, in so many `shards`; `words` of click bits are in a session.
    Sessions must have a time where the log is `timed`.
    """

    def __init__(
        self,
        engine: Engine,
        columns: Columns,
        options: LogOptions,
        words: int,
        shards: int,
        timed: bool,
        problems: Sequence[Problem],
    ) -> None:
        self.engine, self.columns, self.options = engine, columns, options
        self.words, self.shards, self.timed = words, shards, timed
        self.problems = {problem.kind: problem for problem in problems}

    def add(self, kind: str, count: int, example: str, clicked: int | None = None) -> None:
        """Note what was found how often, and in how many sessions with a click."""
        self.problems[kind] = Problem(kind, count, example, clicked)

    def judge_lists(self) -> None:
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
        shard = self.engine.shard("s.query", self.shards)
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
                self.add(name, count, self._example(name), clicked)

    def _example(self, kind: str) -> str:
        rows = self.engine.fetch(
            "SELECT session, query, document, position, clicked, place, click FROM displayed "
            f"WHERE session = (SELECT min(session) FROM judged WHERE {kind}) "
            "ORDER BY TRY_CAST(position AS DOUBLE), document, query, clicked"
        ).to_pylist()
        return example_of(kind, rows[0]["session"], rows, self.options.first)

    def judge_sessions(self) -> str:
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
                self.add("no_times", found["bad"], self._time_example(where))
                del conditions[kind]
            elif kind == "no_time":
                self.add(kind, found["bad"], self._time_example(where), found["clicked"])
            else:
                self.add(kind, found["bad"], self._changing_example(where), found["clicked"])
        return " OR ".join(f"coalesce({c}, FALSE)" for c in conditions.values()) or "FALSE"

    def _time_example(self, where: str) -> str:
        row = self.engine.fetch(
            "SELECT session, written_time FROM rows WHERE session = "
            f"(SELECT min(session) FROM sessions WHERE {where}) "
            "ORDER BY written_time NULLS LAST LIMIT 1"
        ).to_pylist()[0]
        return f"session {shortened(row['session'])} has timestamp {shortened(row['written_time'])}"

    def _changing_example(self, where: str) -> str:
        named = dict(
            zip(steady_columns(self.columns), (*self.columns.contexts, "client"), strict=False)
        )
        rows = self.engine.fetch(
            f"SELECT session, {', '.join(named)} FROM rows WHERE session = "
            f"(SELECT min(session) FROM sessions WHERE {where})"
        ).to_pylist()
        for column, name in named.items():
            values = sorted({row[column] for row in rows if row[column] is not None})
            if len(values) > 1 and (column == "client") == ("several_client" in where):
                return changing(rows[0]["session"], name, values)
        return f"such as session {shortened(rows[0]['session'])}"

    def count_bad(self, faults: str) -> tuple[int, int]:
        """Sessions that lose something, and those of them with a click."""
        if faults == "FALSE":
            bad = (
                "SELECT sum(sessions) AS sessions, sum(clicked) AS clicked FROM judged WHERE lossy"
            )
        else:
            bad = (
                f"SELECT count(*) AS sessions, {CLICKED} AS clicked FROM sessions s "
                "JOIN judged j ON s.one = j.one AND s.two = j.two "
                f"WHERE s.session IS NOT NULL AND (j.lossy OR {faults})"
            )
        (found,) = self.engine.fetch(bad).to_pylist()
        return int(found["sessions"] or 0), int(found["clicked"] or 0)
