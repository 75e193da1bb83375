"""The comparison of dual learning with click models: one page, its tables and figures."""

from __future__ import annotations

from pathlib import Path

from dualrank.report.by_sessions import SWEPT, crossings, sessions_table
from dualrank.report.directory import write_experiment
from dualrank.report.head_and_tail import head_and_tail
from dualrank.report.results import Results
from dualrank.report.results_sheet import sweep_exhibit
from dualrank.report.sheet import Section

FIGURES = ("ndcg@10", "err@10")
_HEAD_AND_TAIL = (
    "On the logged queries themselves: head is the tenth that is asked most, tail the half that "
    "is asked least. Only the oracle saw their grades."
)


def write_table_3(table: Results, by_sessions: Results | None, directory: Path) -> list[Path]:
    """Write everything that `write_experiment` does, and what Table 3 has beside it.

    `head-and-tail.md` where queries are told apart; `by-sessions.json`, `by-sessions.md` and their
    figures where there are logs of several sizes. All of it is in `report.html`.
    """
    sections = []
    parts = head_and_tail(table)
    if parts is not None:
        sections.append(
            Section("Head and tail", _HEAD_AND_TAIL, table=parts, file="head-and-tail.md")
        )
    written = []
    if by_sessions is not None:
        written.append(directory / "by-sessions.json")
        by_sessions.write(written[0])
        sections.append(
            Section(
                "By sessions per list",
                "nDCG@10 where every list has equally many sessions. "
                + " ".join(crossings(by_sessions)),
                table=sessions_table(by_sessions),
                file="by-sessions.md",
                exhibits=tuple(
                    sweep_exhibit(by_sessions, SWEPT, metric, "sessions") for metric in FIGURES
                ),
            )
        )
    return [*write_experiment(table, directory, sections), *written]
