"""What users did besides clicking, summed: the SQL of a reduction for further kinds of events.

A kind of event is an amount by row: 1 for a purchase, 40 for so many seconds, nothing for NULL. The
rows with an amount, which are few, are joined to their sessions and added up by what happened there
(list, clicked positions, contexts, period) and place. No rows of a session are collected, and no
session that did nothing else than click costs anything.

Sums are taken in decimals, to a millionth: sums of floating point numbers would depend on the order
in which rows are added, and so on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from dualrank.data.log.columns import Columns
from dualrank.data.log.engine import Engine, Type
from dualrank.errors import DataError
from dualrank.sentences import shortened

LARGEST = 1e11
"""Amounts from here on are no seconds, no prices and no counts, and sums would run over."""


def amount(column: str, kind: Type) -> str:
    """The amount in a column: 0 for NULL, and NULL for what is no number."""
    if kind == "boolean":
        return f"CASE WHEN {column} THEN 1.0E0 ELSE 0.0E0 END"
    text = f"lower(trim(CAST({column} AS STRING)))"
    named = f"WHEN {text} IN ('true', 't') THEN 1.0E0 WHEN {text} IN ('false', 'f', '') THEN 0.0E0 "
    return (
        f"CASE WHEN {column} IS NULL THEN 0.0E0 {named if kind == 'text' else ''}"
        f"ELSE TRY_CAST({column} AS DOUBLE) END"
    )


def check_amounts(engine: Engine, columns: Columns, source: str) -> None:
    """Refuse a kind of event that has something else than amounts."""
    for number, (kind, name) in enumerate(columns.events.items()):
        if engine.types("log")[name] in ("time", "other"):
            raise DataError(
                f"{source}: the column {name!r} of the event {kind!r} holds no numbers; expected "
                "0 and 1, or amounts"
            )
        value = f"amount_{number}"
        # A nan is larger than every number.
        bad = engine.fetch(
            f"SELECT CAST(session AS STRING) AS session, written_{number} AS written FROM rows "
            f"WHERE {value} IS NULL OR {value} < 0 OR NOT {value} < {LARGEST} "
            "ORDER BY session, written LIMIT 1"
        ).to_pylist()
        if bad:
            raise DataError(
                f"{source}: session {shortened(bad[0]['session'])} has "
                f"{shortened(bad[0]['written'])} as the amount "
                f"of the event {kind!r}; expected a number from 0 to below {LARGEST:g}: mend the "
                "log, or leave this event out"
            )


def sums_of_amounts(sessions: str, keys: Sequence[str], kinds: int) -> str:
    """The query for the amounts of so many kinds by row of `happened` and by place.

    `sessions` is the query for the sessions that are kept, which happened alike where their list
    and `keys` are equal. A row that is repeated in a session counts once.
    """
    values = [f"amount_{number}" for number in range(kinds)]
    some = " OR ".join(f"{value} > 0" for value in values)
    once = ", ".join(f"max({value}) AS {value}" for value in values)
    sums = ", ".join(
        f"CAST(sum(CAST({value} AS DECIMAL(18, 6))) AS DOUBLE) AS {value}" for value in values
    )
    same = " AND ".join(f"s.{key} = h.{key}" for key in keys)
    return (
        f"SELECT h.shard, h.happening, r.place, {sums} FROM "
        f"(SELECT session, place, {once} FROM rows WHERE place IS NOT NULL AND ({some}) "
        "GROUP BY session, place) r "
        f"JOIN ({sessions}) s ON r.session = s.session "
        "JOIN judged j ON s.one = j.one AND s.two = j.two "
        f"JOIN happened h ON h.shard = j.shard AND h.list = j.list AND {same} "
        "GROUP BY h.shard, h.happening, r.place"
    )
