"""For each thing that is wrong with a session, the words that show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from dualrank.sentences import shortened, start_of

MAX_DEPTH = 1_024
"""The longest list that is read."""

Row = Mapping[str, Any]

_NAMES = {
    "query": "query_id",
    "document": "doc_id",
    "position": "position",
    "clicked": "clicked",
}


def example_of(kind: str, session: Any, rows: Sequence[Row], first: int = 1) -> str:
    """What is wrong with this session, in a log whose positions start with `first`, in words.

    Rows are dictionaries of query, document, position and clicked as they were found, and of
    place and click as they were understood, sorted by place and document.
    """
    shown = _EXAMPLES[kind](rows)
    if kind == "bad_position":
        shown += f"; expected a whole number from {first} to {first + MAX_DEPTH - 1}"
    if kind == "gap":
        shown += f"; expected {first}, {first + 1}, {first + 2} … without gaps"
        if first == 0 and not any(row["place"] == 1 for row in rows):
            shown += "; for a log that counts from 1 set first_position to 1"
    return f"session {shortened(session)} {shown}"


def changing(session: Any, name: str, values: Sequence[str]) -> str:
    """That a session has several values of what cannot change while one list is displayed."""
    return (
        f"session {shortened(session)} has {name} {shortened(values[0])} and "
        f"{shortened(values[1])}; a session is one list that one user saw: build its "
        "id of visit, query and time"
    )


def _written(number: object) -> str:
    """What stands there for a number, which may be anything."""
    return start_of(str(number), longest=24)


def _missing(rows: Sequence[Row]) -> str:
    for row in rows:
        for column, name in _NAMES.items():
            if row[column] is None and not (column == "position" and row["click"]):
                where = (
                    "" if row["position"] is None else f" at position {_written(row['position'])}"
                )
                return f"has no {name}{where}"
    return "displays no document"


def _positions(rows: Sequence[Row]) -> str:
    found = [_written(row["position"]) for row in rows if row["position"] is not None]
    if len(found) > 12:
        found = [*found[:12], "…"]
    return f"has positions {', '.join(found)}"


def _zero(rows: Sequence[Row]) -> str:
    return f"{_positions(rows)}; for a log that counts from 0 set first_position to 0"


def _bad_position(rows: Sequence[Row]) -> str:
    bad = next(row for row in rows if row["position"] is not None and row["place"] is None)
    return f"has position {_written(bad['position'])}"


def _bad_click(rows: Sequence[Row]) -> str:
    bad = next(row for row in rows if row["clicked"] is not None and row["click"] is None)
    return f"has clicked {_written(bad['clicked'])} at position {_written(bad['position'])}"


def _same_position(rows: Sequence[Row]) -> str:
    for one, other in pairwise(row for row in rows if row["place"] is not None):
        if one["place"] == other["place"] and one["document"] != other["document"]:
            return (
                f"has documents {shortened(one['document'])} and {shortened(other['document'])} "
                f"at position {_written(one['position'])}"
            )
    return _positions(rows)


def _same_document(rows: Sequence[Row]) -> str:
    places: dict[str, list[str]] = {}
    for row in rows:
        if row["place"] is not None and row["document"] is not None:
            found = places.setdefault(row["document"], [])
            if row["position"] not in found:
                found.append(row["position"])
    document, found = next(item for item in places.items() if len(item[1]) > 1)
    return f"shows document {shortened(document)} at positions {' and '.join(map(_written, found))}"


def _queries(rows: Sequence[Row]) -> str:
    queries = sorted({row["query"] for row in rows if row["query"] is not None})
    return f"holds queries {shortened(queries[0])} and {shortened(queries[1])}"


def _not_displayed(rows: Sequence[Row]) -> str:
    outside = next(row for row in rows if row["position"] is None and row["click"])
    return f"has a click on {shortened(outside['document'])}, which it does not show"


def _repeated(rows: Sequence[Row]) -> str:
    times = Counter((row["document"], row["position"]) for row in rows)
    (document, position), count = times.most_common(1)[0]
    return f"has document {shortened(document)} at position {_written(position)} {count} times"


_EXAMPLES: Mapping[str, Callable[[Sequence[Row]], str]] = {
    "missing_value": _missing,
    "bad_position": _bad_position,
    "zero_based": _zero,
    "gap": _positions,
    "partial_list": _positions,
    "same_position": _same_position,
    "same_document": _same_document,
    "bad_click": _bad_click,
    "several_queries": _queries,
    "not_displayed": _not_displayed,
    "repeated_row": _repeated,
}
