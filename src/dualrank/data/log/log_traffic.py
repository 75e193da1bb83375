"""Which sessions are left out for their traffic, and who clicked most."""

from __future__ import annotations

from collections.abc import Mapping

from dualrank.data.log.engine import Engine, only_value
from dualrank.data.log.log_options import LogOptions
from dualrank.data.log.reading_report import Client

TOP_CLIENTS = 10


def top_clients(
    engine: Engine, options: LogOptions, found: Mapping[str, int]
) -> tuple[Client, ...]:
    """Count the sessions and clicks of all `clients`; those that clicked most."""
    engine.keep(
        "clients",
        "SELECT client, count(*) AS sessions, sum(click_count) AS clicks "
        "FROM sessions WHERE session IS NOT NULL AND client IS NOT NULL GROUP BY client",
    )
    rows = engine.fetch(
        f"SELECT * FROM clients ORDER BY clicks DESC, sessions DESC, client LIMIT {TOP_CLIENTS}"
    ).to_pylist()
    share = options.max_client_share
    return tuple(
        Client(
            name=row["client"],
            sessions=int(row["sessions"]),
            clicks=int(row["clicks"]),
            share_of_sessions=int(row["sessions"]) / found["sessions"],
            share_of_clicks=int(row["clicks"]) / max(found["clicks"], 1),
            left_out=share is not None and row["clicks"] > share * found["clicks"],
        )
        for row in rows
    )


def leave_out(
    engine: Engine, options: LogOptions, clicked: str, clicks: int, faults: str
) -> dict[str, tuple[str, int]]:
    """For each filter the sessions it leaves out that no other did: condition and count."""
    filters = {}
    if options.max_clicks is not None:
        filters["max_clicks"] = f"({clicked}) > {options.max_clicks}"
    if options.max_client_share is not None:
        most = options.max_client_share * clicks
        filters["max_client_share"] = (
            f"coalesce(client IN (SELECT client FROM clients WHERE clicks > {most!r}), FALSE)"
        )
    counted = {}
    before = f"({faults})"
    for name, condition in filters.items():
        count = only_value(
            engine,
            "SELECT count(*) FROM sessions s JOIN judged j ON s.one = j.one AND s.two = j.two "
            f"WHERE s.session IS NOT NULL AND NOT j.dropped AND NOT {before} AND {condition}",
        )
        counted[name] = (condition, int(count))
        before = f"({before} OR {condition})"
    return counted
