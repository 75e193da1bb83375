"""What a join of UBI queries and events loses, or should let its reader know.

A click is a document that was clicked in a search, however often; what is more is a repeated click.
The clicks of sessions, those that are ignored and those repeated add up to the events of the file.
"""

from __future__ import annotations

from dualrank.data.log.duckdb_engine import DuckDBEngine
from dualrank.data.log.reading_report import Problem
from dualrank.sentences import listed, shortened

IMPRESSION = "impression"

_SEEN = f"SELECT * FROM done WHERE action = '{IMPRESSION}'"
_KNOWN = "SELECT query_id FROM asked WHERE query_id IS NOT NULL"
_ANSWERED = "SELECT query_id FROM asked WHERE hits IS NOT NULL AND query_id IS NOT NULL"
_SHOWN = "SELECT query_id FROM displayed WHERE query_id IS NOT NULL"

_COUNTS = {
    # Events without a query_id may be of any number of searches, so that none is known as repeated.
    "no_query": "sum(CASE WHEN query_id IS NULL THEN times ELSE 1 END) AS n, "
    "min(query_id) AS first FROM outside WHERE doc_id IS NOT NULL AND times > 0 "
    f"AND (query_id IS NULL OR query_id NOT IN ({_KNOWN}))",
    "which_list": "count(*) AS n, min(query_id) AS first FROM outside "
    f"WHERE doc_id IS NOT NULL AND times > 0 AND session_id IS NULL AND query_id IN ({_KNOWN})",
    # Likewise of any number of documents.
    "no_object": "sum(times) AS n, min(query_id) AS first FROM tally "
    "WHERE doc_id IS NULL AND times > 0",
    "unknown_query": "count(DISTINCT query_id) AS n, min(query_id) AS first "
    f"FROM ({_SEEN}) WHERE query_id NOT IN ({_KNOWN})",
    "nameless_impression": "count(*) AS n, min(query_id) AS first "
    f"FROM ({_SEEN}) WHERE doc_id IS NULL",
    "stray_event": "sum(others) AS n, min(query_id) AS first FROM outside WHERE others > 0",
    "nothing_shown": "count(DISTINCT query_id) AS n, min(query_id) AS first FROM asked "
    f"WHERE query_id NOT IN ({_SHOWN})",
    "repeated_click": "sum(times - 1) AS n, min(query_id) AS first FROM tally "
    "WHERE times > 1 AND query_id IS NOT NULL AND doc_id IS NOT NULL",
    "several_lists": "count(DISTINCT query_id) AS n, min(query_id) AS first FROM displayed "
    "WHERE session_id <> query_id",
    "other_position": "count(*) AS n, min(t.query_id) AS first FROM tally t JOIN displayed d "
    "ON t.session_id = d.session_id AND t.doc_id = d.doc_id WHERE t.place <> d.position",
    "unlisted_impression": "count(*) AS n, min(s.query_id) AS first "
    f"FROM ({_SEEN}) s WHERE doc_id IS NOT NULL AND query_id IN ({_ANSWERED}) AND NOT EXISTS "
    "(SELECT 1 FROM displayed d WHERE d.query_id = s.query_id AND d.doc_id = s.doc_id)",
    "from_impressions": "count(DISTINCT query_id) AS n, min(query_id) AS first FROM displayed "
    f"WHERE query_id NOT IN ({_ANSWERED})",
}


def account(engine: DuckDBEngine) -> list[Problem]:
    """What is left out or worth knowing before sessions are looked at one by one.

    Reads the tables of the join: `asked`, `done`, `tally`, `displayed` and `outside`.
    """
    found = []
    for kind, query in _COUNTS.items():
        (row,) = engine.fetch(f"SELECT {query}").to_pylist()
        if row["n"]:
            first = row["first"]
            example = (
                "without a query_id" if first is None else f"such as query_id {shortened(first)}"
            )
            if kind == "from_impressions":
                example += _counting(engine)
            found.append(Problem(kind, int(row["n"]), example))
    return found


def _counting(engine: DuckDBEngine) -> str:
    """Where the positions of impressions that made lists begin, application by application."""
    starts = engine.fetch(
        f"SELECT DISTINCT start, application FROM ({_SEEN}) WHERE query_id IN ({_SHOWN}) "
        f"AND query_id NOT IN ({_ANSWERED}) ORDER BY start, application"
    ).to_pylist()
    if len({row["start"] for row in starts}) == 1:
        return f"; positions count from {starts[0]['start']}"
    words = [f"from {row['start']} in {shortened(row['application'], 40)}" for row in starts]
    return f"; positions count {listed(words)}"
