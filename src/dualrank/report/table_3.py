"""The comparison of dual learning with click models: one page, its tables and figures."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from dualrank.report.by_sessions import SWEPT, crossings, sessions_table
from dualrank.report.directory import write_experiment
from dualrank.report.figures import sweep_figure
from dualrank.report.head_and_tail import head_and_tail
from dualrank.report.labels import metric_label
from dualrank.report.page import Section, drawing
from dualrank.report.results import Results
from dualrank.report.theme import svg_file
from dualrank.storage import write_text

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
    sections, written = [], []

    def write(name: str, content: str) -> None:
        write_text(directory / name, content)
        written.append(directory / name)

    parts = head_and_tail(table)
    if parts is not None:
        write("head-and-tail.md", parts.markdown())
        sections.append(Section("Head and tail", _HEAD_AND_TAIL, Markup(parts.html()), parts.note))
    if by_sessions is not None:
        sizes, crossing = sessions_table(by_sessions), " ".join(crossings(by_sessions))
        by_sessions.write(directory / "by-sessions.json")
        written.append(directory / "by-sessions.json")
        write("by-sessions.md", f"{sizes.markdown()}\n{crossing}\n")
        drawings = []
        for metric in FIGURES:
            figure = sweep_figure(by_sessions, SWEPT, metric)
            if figure is not None:
                write(f"figure-sessions-{metric.replace('@', '')}.svg", svg_file(figure))
                caption = f"{metric_label(metric)} on test queries by sessions per list."
                drawings.append(drawing(figure, f"sessions-{metric.replace('@', '')}", caption))
        sections.append(
            Section(
                "By sessions per list",
                f"nDCG@10 where every list has equally many sessions. {crossing}",
                Markup(sizes.html()),
                sizes.note,
                tuple(drawings),
            )
        )
    return [*write_experiment(table, directory, sections), *written]
