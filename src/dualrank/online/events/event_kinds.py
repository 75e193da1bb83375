"""What kinds of events may be called: each becomes a column of the click log."""

from __future__ import annotations

import re

from dualrank.online.records import CLICK

MOST_KINDS = 32
"""Whoever may send events could otherwise fill the log with columns."""
LONGEST_KIND = 40
_FORM = re.compile(rf"[a-z][a-z0-9_-]{{0,{LONGEST_KIND - 1}}}")
_TAKEN = {
    "session_id",
    "query_id",
    "doc_id",
    "position",
    "clicked",
    "timestamp",
    "client_id",
    "version",
    "swapped",
    "clicks",
    "sessions",
    "events",
    "grade",
    "features",
}


def can_be_kind(kind: str) -> bool:
    """Whether a kind of event can be a column: a short plain name that no other column has.

    >>> can_be_kind("click"), can_be_kind("purchase"), can_be_kind("doc_id"), can_be_kind("A b")
    (True, True, False, False)
    """
    return kind == CLICK or (bool(_FORM.fullmatch(kind)) and kind not in _TAKEN)
