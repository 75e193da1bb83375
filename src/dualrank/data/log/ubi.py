"""User Behavior Insights 1.0 to 1.3: queries with what they returned, events with what users did.

A UBI `query_id` names one time that someone searched, so it is a session here; what the user typed,
`user_query`, is the query. The documents displayed are `query_response_hit_ids`, in that order
(older exports have other names for it, see `ubi_fields`).
Where a query has none, they are those of its events of the action `impression`, at the positions
that these name. An event of an action such as `click` is joined to them by its `query_id` and
`event_attributes.object.object_id`.

Where lists of several queries stand under one `query_id`, each of them is a session. An event
belongs to the only list that has its document, or else to that of its own `user_query`: events have
been seen to name the query that was typed next, so the document is asked first.

One program counts positions from 0, another from 1. If any event of an `application` names position
0, all of its events count from 0, else from 1; `first_position` says it for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dualrank.data.log.columns import REQUIRED, Columns
from dualrank.data.log.duckdb_engine import DuckDBEngine
from dualrank.data.log.engine import only_value
from dualrank.data.log.log_format import LogFormat, Source
from dualrank.data.log.log_options import LogOptions
from dualrank.data.log.reading_report import Problem
from dualrank.data.log.ubi_account import IMPRESSION, account
from dualrank.data.log.ubi_fields import DWELL_TIMES, HITS, OBJECT, POSITIONS, Fields
from dualrank.errors import DataError, SettingsError
from dualrank.sentences import listed

DWELL_TIME = "dwell_time"
"""The kind of event that is no action: the seconds that events name."""
# A time below zero is shown as it is, whatever the others add up to.
SECONDS = "CASE WHEN min(dwell) < 0 THEN min(dwell) ELSE coalesce(sum(dwell), 0) END"


@dataclass(frozen=True)
class Ubi(LogFormat):
    """Queries and `events`, files of any format each; events of one of the `actions` are clicks.

    Both may stand in the same files: a record with an `action_name` is an event.
    """

    title = "UBI"
    events: Source
    actions: Sequence[str] = ("click",)

    def __post_init__(self) -> None:
        if not self.actions:
            raise SettingsError("actions is empty; expected names such as click")

    def open(
        self, engine: DuckDBEngine, source: Source, options: LogOptions
    ) -> tuple[Columns, Sequence[Problem]]:
        """Join events to queries; what the join loses is counted."""
        if set(options.columns) - set(options.event_kinds):
            raise SettingsError("events go with files of UBI queries, and no other columns")
        engine.open(source, "ubi_queries")
        engine.open(self.events, "ubi_events")
        kinds = {kind: options.columns.get(kind, kind) for kind in options.event_kinds}
        carried = _asked(engine, source, options.contexts)
        _done(engine, self.events, (*self.actions, *kinds.values()), options.first_position)
        _displayed(engine, carried)
        if not only_value(engine, "SELECT count(*) FROM displayed"):
            raise DataError(
                f"{source.name}: no query has query_response_hit_ids, and none an {IMPRESSION} "
                f"with an object_id in {self.events.name}; expected what was displayed"
            )
        _tally(engine, self.actions, kinds, self.events.name)
        _log(engine, carried, kinds, options.first)
        optional = [name for name in ("client_id", "timestamp") if name in carried]
        columns = Columns(
            {name: name for name in (*REQUIRED, *optional)},
            options.contexts,
            {kind: _amount(number) for number, kind in enumerate(kinds)},
        )
        problems = account(engine)
        if not only_value(engine, "SELECT max(times) FROM tally"):
            count = only_value(engine, "SELECT count(*) FROM ubi_events")
            actions = f"the actions are {_actions(engine, self.events.name)}"
            problems.append(Problem("no_action", int(count), actions))
        return columns, problems


def _asked(engine: DuckDBEngine, queries: Source, contexts: Sequence[str]) -> list[str]:
    """`asked`: what was asked and returned, each once. Gives what else is carried along.

    A search that is sent again while the user types writes several records under one id. `several`
    has the sessions of an id under which several queries have hits, or, if none has, were asked.
    """
    fields = Fields(engine, "ubi_queries", queries.name)
    optional = [name for name in ("client_id", "timestamp") if fields.has(name)]
    carried = list(dict.fromkeys((*optional, *contexts)))
    values = {
        name: f"min({fields.text(name)})" if name == "timestamp" else fields.text(name)
        for name in carried
    }
    lists = [fields.list(name) for name in HITS if fields.has(name)]
    hits = ", ".join(f"CASE WHEN len({each}) > 0 THEN {each} END" for each in lists)
    selected = {
        "query_id": fields.text("query_id"),
        "user_query": fields.text("user_query"),
        "hits": f"coalesce({hits})" if hits else "CAST(NULL AS VARCHAR[])",
        **{engine.quote(name): value for name, value in values.items()},
    }
    only = f" WHERE {fields.text('action_name')} IS NULL" if fields.has("action_name") else ""
    engine.keep(
        "records",
        f"SELECT {', '.join(f'{value} AS {name}' for name, value in selected.items())} "
        f"FROM ubi_queries{only} GROUP BY ALL",
    )
    answered = "CASE WHEN hits IS NOT NULL THEN user_query END"
    engine.keep(
        "several",
        "SELECT DISTINCT query_id, user_query, concat(query_id, ': ', user_query) AS session_id "
        "FROM records JOIN (SELECT query_id, count(hits) > 0 AS answered FROM records "
        f"GROUP BY query_id HAVING coalesce(min({answered}) <> max({answered}), "
        "min(user_query) <> max(user_query))) USING (query_id) "
        "WHERE answered = (hits IS NOT NULL) AND user_query IS NOT NULL",
    )
    engine.view(
        "asked",
        "SELECT r.*, coalesce(s.session_id, r.query_id) AS session_id FROM records r "
        "LEFT JOIN several s ON s.query_id = r.query_id AND s.user_query = r.user_query",
    )
    return carried


def _done(engine: DuckDBEngine, events: Source, actions: Sequence[str], first: int | None) -> None:
    """`done`: the events that matter, with the place that they name, counted from 1.

    `typed` is the session of the query that an event names, where its id has `several`.
    """
    fields = Fields(engine, "ubi_events", events.name)
    document, action = fields.text(OBJECT), fields.text("action_name")
    dwell = fields.first(DWELL_TIMES, "DOUBLE")
    wanted = engine.texts([IMPRESSION, *actions])
    others = f" OR {dwell} IS NOT NULL" if DWELL_TIME in actions else ""
    engine.keep(
        "named",
        "SELECT e.* EXCLUDE (user_query), session_id AS typed FROM "
        f"(SELECT {action} AS action, {fields.text('query_id')} AS query_id, "
        f"{document} AS doc_id, {fields.first(POSITIONS, 'INTEGER')} AS ordinal, "
        f"coalesce({fields.first(['application'])}, '') AS application, {dwell} AS dwell, "
        f"{fields.first(['user_query'])} AS user_query "
        f"FROM ubi_events WHERE {action} IN {wanted}{others}) e "
        "LEFT JOIN several s ON s.query_id = e.query_id AND s.user_query = e.user_query",
    )
    start = "CASE WHEN bool_or(ordinal = 0) THEN 0 ELSE 1 END" if first is None else str(first)
    engine.keep(
        "done",
        f"SELECT n.*, start, ordinal + 1 - start AS place FROM named n JOIN "
        f"(SELECT application, {start} AS start FROM named GROUP BY application) "
        "USING (application)",
    )


def _displayed(engine: DuckDBEngine, carried: Sequence[str]) -> None:
    """`displayed`: the documents of each session, from its hits or else from its impressions.

    Impressions that name none of the several queries of their id are a session of all of them,
    which is dropped as such.
    """
    others = "".join(f", {engine.quote(name)}" for name in carried)
    engine.keep(
        "displayed",
        "SELECT session_id, query_id, user_query, unnest(hits) AS doc_id, "
        f"generate_subscripts(hits, 1) AS position{others} FROM asked WHERE hits IS NOT NULL "
        "UNION ALL SELECT coalesce(typed, a.query_id), "
        f"a.query_id, user_query, doc_id, place AS position{others} FROM asked a JOIN "
        f"(SELECT DISTINCT query_id, typed, doc_id, place FROM done WHERE action = '{IMPRESSION}' "
        "AND doc_id IS NOT NULL) i "
        "ON i.query_id = a.query_id AND (typed IS NULL OR typed = a.session_id) "
        "WHERE a.query_id NOT IN "
        "(SELECT query_id FROM asked WHERE hits IS NOT NULL AND query_id IS NOT NULL)",
    )


def _tally(
    engine: DuckDBEngine, actions: Sequence[str], kinds: Mapping[str, str], where: str
) -> None:
    """`tally`: by session and document, where the clicks were, how many, and of each other kind.

    The session is NULL where neither document nor query tell which of `several` it is.
    """
    engine.keep(
        "holders",
        "SELECT query_id, doc_id, min(session_id) AS holder FROM displayed "
        "WHERE query_id IN (SELECT query_id FROM several) "
        "GROUP BY query_id, doc_id HAVING min(session_id) = max(session_id)",
    )
    alone = "CASE WHEN query_id NOT IN (SELECT query_id FROM several) THEN query_id END"
    clicked = f"action IN {engine.texts(actions)}"
    amounts = {"times": _counted(clicked)}
    other = [f"action IN {engine.texts([action])}" for action in kinds.values()]
    for number, (action, matches) in enumerate(zip(kinds.values(), other, strict=True)):
        amounts[_amount(number)] = SECONDS if action == DWELL_TIME else _counted(matches)
    other += ["dwell IS NOT NULL"] if DWELL_TIME in kinds.values() else []
    amounts["others"] = _counted(" OR ".join(other) or "FALSE")
    engine.keep(
        "tally",
        f"SELECT session_id, query_id, doc_id, min(CASE WHEN {clicked} THEN place END) AS place, "
        f"{', '.join(f'{value} AS {name}' for name, value in amounts.items())} "
        f"FROM (SELECT *, coalesce(holder, typed, {alone}) AS session_id FROM done "
        "LEFT JOIN holders USING (query_id, doc_id)) GROUP BY session_id, query_id, doc_id",
    )
    for number, kind in enumerate(kinds):
        if not only_value(engine, f"SELECT max({_amount(number)}) FROM tally"):
            raise DataError(_nobody(engine, kind, kinds[kind], where))


def _nobody(engine: DuckDBEngine, kind: str, action: str, where: str) -> str:
    """That no event is of this kind, and which there are."""
    what = "event with a dwell_time" if action == DWELL_TIME else f"event {action!r}"
    return (
        f"{where}: there is no {what}; the actions are "
        f"{_actions(engine, where)}: name one of them, or leave {kind!r} out"
    )


def _actions(engine: DuckDBEngine, where: str) -> str:
    """The actions that events have, the most frequent first."""
    name = Fields(engine, "ubi_events", where).text("action_name")
    found = engine.fetch(
        f"SELECT action, count(*) AS n FROM (SELECT {name} AS action FROM ubi_events) "
        "WHERE action IS NOT NULL GROUP BY action ORDER BY n DESC, action LIMIT 12"
    )
    return listed(found["action"].to_pylist())


def _log(
    engine: DuckDBEngine, carried: Sequence[str], kinds: Mapping[str, str], first: int
) -> None:
    """`log`: a row for every document displayed; `outside`: what was done elsewhere.

    A click on a document that was not displayed is a row without a position.
    """
    engine.keep(
        "outside",
        "SELECT t.* FROM tally t WHERE NOT EXISTS "
        "(SELECT 1 FROM displayed d WHERE d.session_id = t.session_id AND d.doc_id = t.doc_id)",
    )
    names = [engine.quote(name) for name in carried]
    others = "".join(f", {name}" for name in names)
    lowest = "".join(f", min({name}) AS {name}" for name in names)
    amounts = [_amount(number) for number in range(len(kinds))]
    engine.keep(
        "log",
        "SELECT d.session_id, d.user_query AS query_id, d.doc_id, "
        f"d.position + {first - 1} AS position, coalesce(times, 0) > 0 AS clicked{others}"
        f"{''.join(f', {each}' for each in amounts)} FROM displayed d "
        "LEFT JOIN tally t ON t.session_id = d.session_id AND t.doc_id = d.doc_id UNION ALL "
        f"SELECT session_id, user_query, doc_id, NULL, TRUE{others}"
        f"{', NULL' * len(amounts)} FROM outside JOIN "
        f"(SELECT session_id, coalesce(min(CASE WHEN hits IS NOT NULL THEN user_query END), "
        f"min(user_query)) AS user_query{lowest} FROM asked GROUP BY session_id) "
        "USING (session_id) "
        "WHERE times > 0 AND doc_id IS NOT NULL",
    )


def _counted(condition: str) -> str:
    return f"count(CASE WHEN {condition} THEN 1 END)"


def _amount(number: int) -> str:
    return f"amount_{number}"
