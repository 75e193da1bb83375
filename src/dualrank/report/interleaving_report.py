"""A comparison of interleaved arms for people: in the terminal, and as a page."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dualrank.decisions.interleaving_log import InterleavedLog
from dualrank.decisions.preference import Comparison, Look, Preference, Wins, per_query
from dualrank.decisions.preference_words import verdict
from dualrank.report.drawing import few_ticks, new_figure, plain, title
from dualrank.report.in_words import p_in_words
from dualrank.report.sheet import Exhibit, Explanation, Section, Sheet
from dualrank.report.table import Cell, Row, Table
from dualrank.sentences import counted
from dualrank.showing.palette import LIGHT
from dualrank.storage import write_table, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN_QUERIES = 10
"""Of each side."""
_COLUMNS = (
    "preference",
    "from",
    "to",
    "sessions +",
    "sessions −",
    "p",
    "queries +",
    "queries −",
    "p by queries",
    "permutation p",
)


def interleaving_sheet(
    found: Comparison, log: InterleavedLog, name: str, command: str = ""
) -> Sheet:
    """The verdict, the preference of every pair with its tests, day by day, and by query."""
    sections = [Section("Preference", table=preference_table(found), file="table.md")]
    if any(len(_drawn(pair)) > 1 for pair in found.pairs):
        sections.append(Section("Day by day", exhibits=_exhibits(found)))
    if len(found.arms) == 2:
        sections.append(Section("Queries that prefer one of them most", table=_queries(log)))
    return Sheet(
        f"Interleaving: {name}",
        f"{counted(found.sessions, 'sessions')} of {counted(found.queries, 'queries')}.",
        verdict=(*verdict(found), *(f"{note[0].upper()}{note[1:]}." for note in found.notes)),
        sections=tuple(sections),
        explanations=_explanations(found),
        settings={"until": found.until} if found.until is not None else {},
        command=command,
        numbers="comparison.json and queries.csv",
    )


def write_interleaving(
    found: Comparison, log: InterleavedLog, directory: Path, name: str, command: str = ""
) -> list[Path]:
    """`comparison.json`, `queries.csv`, `table.md`, the figures and `report.html`."""
    numbers, queries = directory / "comparison.json", directory / "queries.csv"
    write_text(numbers, json.dumps(found.to_dict(), indent=1) + "\n")
    write_table(queries, per_query(log), "preferences")
    return [numbers, queries, *interleaving_sheet(found, log, name, command).write(directory)]


def preference_table(found: Comparison) -> Table:
    """A row for every pair of arms."""
    rows = []
    for pair in found.pairs:
        cells: list[Cell | str | None] = [Cell(pair.mean, decimals=4)]
        cells += ["–" if e is None else Cell(e, decimals=4) for e in (pair.low, pair.high)]
        cells += _counts(pair.by_session) + _counts(pair.by_query)
        cells.append(p_in_words(pair.permutation_p))
        rows.append(Row(f"{pair.first} – {pair.second}", tuple(cells)))
    return Table(
        _COLUMNS,
        tuple(rows),
        corner="pair",
        main="preference",
        kept_first=("from", "to", "permutation p", "sessions +", "sessions −", "p"),
        remark=f"Preference: {found.unit} a session for the first arm less those for the second, "
        "with an interval that holds whenever one looks; + and − are those that prefer the first "
        "and the second, p of the sign test.",
    )


def _counts(wins: Wins | None) -> list[Cell | str | None]:
    if wins is None:
        return ["–", "–", "–"]
    p_value = "–" if wins.p_value is None else p_in_words(wins.p_value)
    return [f"{wins.first:,}", f"{wins.second:,}", p_value]


def _exhibits(found: Comparison) -> tuple[Exhibit, ...]:
    return tuple(
        Exhibit(
            f"preference-{number}" if len(found.pairs) > 1 else "preference",
            partial(preference_figure, pair, found.unit),
            f"Preference of {pair.first} over {pair.second} in all sessions until the end of each "
            "day. The band holds on all days together: where it leaves zero, the experiment is "
            "decided.",
        )
        for number, pair in enumerate(found.pairs, 1)
    )


def preference_figure(pair: Preference, unit: str) -> Figure | None:
    """The mean of all sessions so far, day by day, with its band; None for a single look."""
    looks = _drawn(pair)
    if len(looks) < 2:
        return None
    figure, (ax,) = new_figure(1, width=6.4)
    sessions = [look.sessions for look in looks]
    low, high = ([getattr(look, side) for look in looks] for side in ("low", "high"))
    ax.fill_between(sessions, low, high, color=LIGHT["blue"], alpha=0.18, lw=0)
    ax.plot(sessions, [look.mean for look in looks], color=LIGHT["blue"], lw=1.8, marker="o", ms=3)
    ax.axhline(0, color=LIGHT["ink"], lw=0.9)
    # The first looks know so little that their bands would hide the others.
    reach = float(np.quantile(np.abs([*low, *high]), 0.9)) * 1.15 or 1.0
    ax.set_ylim(-reach, reach)
    ax.set_xlabel("sessions until the end of the day")
    few_ticks(ax, "x")
    few_ticks(ax, "y")
    ax.text(0.99, 0.97, plain(f"{pair.first} ahead"), transform=ax.transAxes, **_corner("top"))
    ax.text(0.99, 0.03, plain(f"{pair.second} ahead"), transform=ax.transAxes, **_corner("bottom"))
    title(ax, f"{unit} a session")
    return figure


def _drawn(pair: Preference) -> list[Look]:
    """The looks with an interval."""
    return [look for look in pair.looks if look.low is not None and look.high is not None]


def _corner(side: str) -> dict[str, Any]:
    return {"ha": "right", "va": side, "color": LIGHT["muted"], "fontsize": 9}


def _queries(log: InterleavedLog) -> Table:
    """The queries that moved most, either way."""
    difference = (log.credits[:, 0] - log.credits[:, 1]) * log.counts
    sums = np.bincount(log.query_of, difference, len(log.queries))
    sessions = np.bincount(log.query_of, log.counts, len(log.queries))
    order = np.argsort(-sums, kind="stable")
    best = [q for q in order[:SHOWN_QUERIES] if sums[q] > 0]
    worst = [q for q in order[::-1][:SHOWN_QUERIES] if sums[q] < 0]
    rows = [
        Row(
            str(log.queries[q]),
            (
                f"{int(sessions[q]):,}",
                Cell(sums[q], decimals=1),
                Cell(sums[q] / sessions[q]),
            ),
            group=group,
        )
        for group, chosen in (("first", best), ("second", worst))
        for q in chosen
    ]
    return Table(
        ("sessions", "sum", "a session"),
        tuple(rows),
        corner="query",
        words=("query",),
        remark=f"Above zero {log.arms[0]} is preferred, below {log.arms[1]}. Single queries are "
        "noise unless they have many sessions.",
    )


def _explanations(found: Comparison) -> tuple[Explanation, ...]:
    kept = (
        "For an experiment without a planned end: it holds for ever, and is somewhat wider than a "
        "usual one on any single day."
        if found.until is None
        else f"For an experiment of {found.until:,} sessions, looked at every day: the level is "
        "spent little by little (Lan–DeMets, after O'Brien and Fleming)."
    )
    return (
        Explanation(
            "The numbers",
            terms=(
                ("preference", f"{found.unit} a session for one arm, less those for the other."),
                ("interval", kept),
                (
                    "sign test",
                    "Of sessions (or queries) that prefer somebody, as many should prefer either "
                    "if there is no difference.",
                ),
                (
                    "permutation test",
                    "Queries are taken for a sample of others: whether their preferences would be "
                    "as lopsided if each could as well be the other way around.",
                ),
            ),
        ),
    )
