"""The accounts of how days were read, as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dualrank.data.log.log_traffic import TOP_CLIENTS
from dualrank.data.log.reading_report import FILTERS, KINDS, Client, Problem, ReadingReport


def added_reports(accounts: Sequence[Mapping[str, Any]], source: str) -> ReadingReport:
    """The sum of accounts, as `ReadingReport.to_dict` wrote them.

    Of each problem the first example stays. Of clients, a day tells those that clicked most, so
    that the sums are over the days on which a client was among them.
    """
    days = [ReadingReport.from_dict(account) for account in accounts]
    clicked = [day.clicked for day in days if day.clicked is not None]
    sessions, clicks = sum(day.sessions for day in days), sum(day.clicks for day in days)
    filtered = [name for name in FILTERS if any(name in day.filtered for day in days)]
    return ReadingReport(
        source=source,
        rows=sum(day.rows for day in days),
        sessions=sessions,
        kept=sum(day.kept for day in days),
        clicks=clicks,
        problems=_problems([problem for day in days for problem in day.problems]),
        filtered={name: sum(day.filtered.get(name, 0) for day in days) for name in filtered},
        clients=_clients([client for day in days for client in day.clients], sessions, clicks),
        bad=sum(day.bad for day in days),
        clicked=sum(clicked) if len(clicked) == len(days) else None,
        bad_clicked=sum(day.bad_clicked for day in days),
    )


def _problems(found: Sequence[Problem]) -> tuple[Problem, ...]:
    added = []
    for kind in KINDS:
        same = [problem for problem in found if problem.kind == kind]
        clicked = [problem.clicked for problem in same if problem.clicked is not None]
        if same:
            added.append(
                Problem(
                    kind,
                    sum(problem.count for problem in same),
                    same[0].example,
                    sum(clicked) if len(clicked) == len(same) else None,
                )
            )
    return tuple(added)


def _clients(found: Sequence[Client], sessions: int, clicks: int) -> tuple[Client, ...]:
    added = []
    for name in {client.name for client in found}:
        same = [client for client in found if client.name == name]
        own = sum(client.sessions for client in same), sum(client.clicks for client in same)
        left_out = any(client.left_out for client in same)
        shares = own[0] / max(sessions, 1), own[1] / max(clicks, 1)
        added.append(Client(name, *own, *shares, left_out))
    added.sort(key=lambda client: (-client.clicks, -client.sessions, client.name))
    return tuple(added[:TOP_CLIENTS])
