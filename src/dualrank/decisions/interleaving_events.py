"""Interleaved impressions as OpenSearch writes them: User Behavior Insights events with an arm.

Each event of a result says which search configuration the result is from:

- `event_attributes.object.search_configuration_uuid`, the document in `event_attributes.object.id`
  and the test in `event_attributes.ab_test_id`: the A/B tests of the Search Relevance Workbench
  (opensearch-project/dashboards-search-relevance, `public/components/ab_test/utils/ubi_index.ts`);
  its value is the `_search_configuration_id` of a hit of `POST …/ab_tests/{id}/_search`
  (opensearch-project/search-relevance, `transport/abTest/ABTestSearchTransportAction.java`);
- `event_attributes.object.search_config`: the proof of concept behind OpenSearch #18383
  (o19s/chorus-opensearch-edition, `opensearch-dashboards/tdi_dashboard.ndjson`).

A session is a `query_id`, the query what was typed (`user_query`), and what was displayed are the
documents of its events. Where no event has a `query_id`, as those that the workbench's own page
registers, every click is taken for a session.
"""

from __future__ import annotations

from dualrank.data.log.duckdb_engine import DuckDBEngine
from dualrank.data.log.ubi_account import IMPRESSION
from dualrank.data.log.ubi_fields import OBJECT, POSITIONS, Fields
from dualrank.errors import DataError
from dualrank.sentences import listed

DOCUMENTS = (OBJECT, "event_attributes.object.id")
ARMS = (
    "event_attributes.object.search_configuration_uuid",
    "event_attributes.object.search_configuration_id",
    "event_attributes.object.search_config",
    "event_attributes.object.arm",
    "event_attributes.object.team",
)
"""Where an event may say whose document it is about; the first that is there counts."""
TEST = "event_attributes.ab_test_id"
CLICK = "click"


def holds_events(engine: DuckDBEngine, table: str, where: str) -> bool:
    """Whether these records are events, and no rows of displayed documents."""
    fields = Fields(engine, table, where)
    return "clicked" not in fields.types and fields.has("action_name")


def rows_of_events(engine: DuckDBEngine, table: str, name: str, where: str) -> str | None:
    """Keep a row of every displayed document under `name`; a remark on how sessions were told."""
    fields = Fields(engine, table, where)
    action, arm = fields.text("action_name"), fields.first(ARMS)
    seconds = f"CAST({fields.text('timestamp')} AS VARCHAR)" if fields.has("timestamp") else "NULL"
    engine.keep(
        "interleaved_events",
        f"SELECT row_number() OVER () AS number, {action} AS action, "
        f"{fields.first(['query_id'])} AS session, {fields.first(['user_query'])} AS typed, "
        f"{fields.first(DOCUMENTS)} AS document, {arm} AS arm, "
        f"{fields.first(POSITIONS, 'DOUBLE')} AS place, {fields.first([TEST])} AS test, "
        f"{seconds} AS written FROM {table} WHERE {action} IN ('{CLICK}', '{IMPRESSION}')",
    )
    found = engine.fetch(
        "SELECT count(*) AS events, count(arm) AS arms, count(session) AS sessions, "
        "count(document) AS documents FROM interleaved_events"
    ).to_pylist()[0]
    if not found["events"]:
        raise DataError(f"{where}: no event is a {CLICK} or an {IMPRESSION}")
    if not found["documents"]:
        raise DataError(f"{where}: no event has {OBJECT}, which names what was clicked")
    if not found["arms"]:
        raise DataError(
            f"{where}: no event says which arm its document is of; expected {ARMS[0]} or {ARMS[2]}"
        )
    tests = engine.fetch(
        "SELECT DISTINCT test FROM interleaved_events WHERE test IS NOT NULL ORDER BY test LIMIT 9"
    )["test"].to_pylist()
    if len(tests) > 1:
        raise DataError(
            f"{where}: these are events of several tests ({listed(tests)}); give those of one"
        )
    alone = not found["sessions"]
    session = "CAST(number AS VARCHAR)" if alone else "session"
    only = f" AND action = '{CLICK}'" if alone else ""
    engine.keep(
        name,
        "SELECT session AS session_id, min(typed) OVER (PARTITION BY session) AS query_id, "
        "document AS doc_id, row_number() OVER (PARTITION BY session ORDER BY place, document) "
        "AS position, clicked, arm, written AS timestamp FROM "
        f"(SELECT {session} AS session, document, min(place) AS place, min(arm) AS arm, "
        "coalesce(min(typed), '(not logged)') AS typed, "
        f"bool_or(action = '{CLICK}') AS clicked, min(written) AS written "
        f"FROM interleaved_events WHERE document IS NOT NULL{only} GROUP BY ALL)",
    )
    return "no event has a query_id: every click is taken for a session" if alone else None
