"""Queries that a new ranking moves most, with what stands on top of both, for a person to read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from dualrank.decisions.estimate_words import ends_kept
from dualrank.decisions.moves import Move, Placed
from dualrank.report.sheet import Section
from dualrank.report.table import Row, Table
from dualrank.showing.interval_rows import signed

SHOWN = 3
NEW, OLD = "The new ranker shows", "The old one"


def moves_section(title: str, moves: Sequence[Move]) -> Section | None:
    """A few rows for each query; None where there are none."""
    if not moves:
        return None
    rows = []
    for number, move in enumerate(moves):
        pairs = list(zip_longest(move.new[:SHOWN], move.old[:SHOWN])) or [(None, None)]
        for place, (new, old) in enumerate(pairs):
            first = place == 0
            rows.append(
                Row(
                    ends_kept(move.query) if first else "",
                    (
                        f"{move.sessions:,}" if first else "",
                        signed(move.gain, 3) if first else "",
                        _placed(new),
                        _placed(old),
                    ),
                    group=str(number),
                )
            )
    table = Table(
        ("Sessions", "Gain per session", NEW, OLD),
        tuple(rows),
        corner="Query",
        words=(NEW, OLD),
        remark="In the order of what all sessions of the query gain or lose together. Of both the "
        f"first {SHOWN} documents are shown; estimate.json has more.",
    )
    return Section(title, table=table, file="queries.md")


def _placed(document: Placed | None) -> str:
    """A document with how often it was displayed and clicked for this query."""
    if document is None:
        return ""
    name = ends_kept(document.document)
    if not document.displays:
        return f"{name} (never displayed)"
    return f"{name} ({document.displays:,} displayed, {document.clicks:,.0f} clicked)"
