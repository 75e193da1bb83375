"""The table of the paper's Table 2: methods by metrics, with spread and significance."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dualrank.report.labels import (
    extra,
    main_metric,
    method,
    metric_label,
    ordered_methods,
    ordered_metrics,
    setting_label,
    swept_setting,
)
from dualrank.report.results import Results, Run

if TYPE_CHECKING:
    from rich.table import Table

BETTER, WORSE = "+", "−"
_SUPERSCRIPT = {BETTER: "⁺", WORSE: "⁻", "": ""}


@dataclass(frozen=True)
class Cell:
    """The mean over seeds, its standard deviation (None with one seed), and its marks."""

    mean: float
    spread: float | None = None
    mark: str = ""
    best: bool = False

    def __str__(self) -> str:
        return self.number + self.superscript

    @property
    def number(self) -> str:
        """The mean with its spread, as printed."""
        spread = "" if self.spread is None else f" ± {self.spread:.3f}"
        return f"{self.mean:.3f}{spread}"

    @property
    def superscript(self) -> str:
        """The mark as one raised character."""
        return _SUPERSCRIPT[self.mark]


@dataclass(frozen=True)
class Row:
    """One method (and one value of what is swept, if anything is)."""

    method: str
    label: str
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True)
class ResultTable:
    """Methods by metrics, as an object that prints.

    Bold is the best of the rows that a team could use: Oracle DNN learns from the judgements
    themselves and stands outside the contest. Means that print alike share the place.
    """

    metrics: tuple[str, ...]
    rows: tuple[Row, ...]
    first_metric: str | None
    alpha: float | None
    reference: str

    @classmethod
    def from_results(cls, results: Results) -> ResultTable:
        """Summarise runs over seeds; a swept value gives every method a row per value."""
        metrics = tuple(ordered_metrics(m for run in results.runs for m in run.metrics))
        swept = swept_setting(results)
        rows = []
        for name in ordered_methods(results):
            for suffix, runs in _by_setting(results.of(name), swept):
                cells = tuple(_cell(results, name, runs, metric) for metric in metrics)
                if swept is not None:
                    # The test compares methods over all values, not within one of them.
                    cells = tuple(cell and replace(cell, mark="") for cell in cells)
                rows.append(Row(name, method(name).label + suffix, cells))
        return cls.of_rows(
            metrics,
            rows if swept else with_best(rows),
            results.significance,
            first_metric=main_metric(results),
        )

    @classmethod
    def of_rows(
        cls,
        columns: Sequence[str],
        rows: Sequence[Row],
        test: Mapping[str, Any],
        *,
        first_metric: str | None = None,
    ) -> ResultTable:
        """Any columns; `test` says by which significance test the cells are marked."""
        marked = any(cell and cell.mark for row in rows for cell in row.cells)
        return cls(
            metrics=tuple(columns),
            rows=tuple(rows),
            first_metric=first_metric,
            alpha=float(test.get("alpha", 0.05)) if marked else None,
            reference=method(str(test.get("reference", "dla"))).label,
        )

    @property
    def note(self) -> str:
        """What the signs in this table mean, as far as they occur in it."""
        cells = [cell for row in self.rows for cell in row.cells if cell]
        parts = []
        if any(cell.spread is not None for cell in cells):
            parts.append("Mean ± standard deviation over seeds.")
        if self.alpha is not None:
            parts.append(
                f"{_SUPERSCRIPT[BETTER]} and {_SUPERSCRIPT[WORSE]}: significantly better and "
                f"worse than {self.reference} (p ≤ {self.alpha:g})."
            )
        if any(cell.best for cell in cells):
            oracle = any(row.method == "oracle" for row in self.rows)
            parts.append(f"Bold: the best{', Oracle DNN aside' if oracle else ''}.")
        return " ".join(parts)

    def markdown(self) -> str:
        """A Markdown table with its note."""
        lines = [
            "| | " + " | ".join(metric_label(metric) for metric in self.metrics) + " |",
            "|---|" + "---:|" * len(self.metrics),
        ]
        for row in self.rows:
            cells = [_markdown_cell(cell) for cell in row.cells]
            lines.append("| " + " | ".join([_markdown_text(row.label), *cells]) + " |")
        return "\n".join(lines) + "\n" + (f"\n{self.note}\n" if self.note else "")

    def rich(self, width: int) -> Table:
        """A table for a terminal of this width, with as many of the columns as fit.

        The columns that stay are the ones that are spoken about most; none wraps.
        """
        from rich.console import Console

        console = Console(width=10_000)
        for count in range(len(self.metrics), 1, -1):
            table = self._rich_columns(self.columns(count))
            if console.measure(table).maximum <= width:
                return table
        return self._rich_columns(self.columns(1))

    def columns(self, count: int) -> list[str]:
        """The most telling metrics, at most `count`, in the order of the table."""
        first = [self.first_metric, "map", "err@10", "ndcg@1", "ndcg@3", "ndcg@5"]
        wanted = [metric for metric in first if metric in self.metrics]
        wanted += [metric for metric in self.metrics if metric not in wanted]
        return [metric for metric in self.metrics if metric in wanted[:count]]

    def _rich_columns(self, metrics: Sequence[str]) -> Table:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        table.add_column("", no_wrap=True, overflow="ellipsis")
        for metric in metrics:
            table.add_column(metric_label(metric), justify="right", no_wrap=True)
        chosen = [self.metrics.index(metric) for metric in metrics]
        # Numbers are aligned here, since marks stand after them in some rows only.
        widths = {
            index: max(
                len(metric_label(self.metrics[index])) - 1,
                *(len(cell.number) for row in self.rows if (cell := row.cells[index])),
            )
            for index in chosen
        }
        for row, following in zip(self.rows, [*self.rows[1:], None], strict=True):
            cells = []
            for index in chosen:
                cell = row.cells[index]
                style = {BETTER: "green", WORSE: "red"}.get(cell.mark, "") if cell else ""
                text = Text(
                    (cell.number if cell else "").rjust(widths[index]),
                    style="bold" if cell and cell.best else "",
                    justify="left",
                )
                cells.append(text.append(cell.superscript if cell else "", style=style))
            ends = following is not None and _group(row.method) != _group(following.method)
            table.add_row(Text(row.label), *cells, end_section=ends)
        return table

    def html(self) -> str:
        """An HTML table; everything that comes from outside is escaped."""
        head = "".join(
            f'<th scope="col"{_main(metric == self.first_metric)}>'
            f"{html.escape(metric_label(metric))}</th>"
            for metric in self.metrics
        )
        group = ' class="group"'
        body = []
        previous = None
        for row in self.rows:
            begins = previous is not None and _group(row.method) != previous
            previous = _group(row.method)
            cells = "".join(
                _html_cell(cell, metric == self.first_metric)
                for cell, metric in zip(row.cells, self.metrics, strict=True)
            )
            body.append(
                f'<tr{group if begins else ""}><th scope="row"{_strong(row.method)}>'
                f"{html.escape(row.label)}</th>{cells}</tr>"
            )
        return (
            f'<table class="results"><thead><tr><th scope="col">Method</th>{head}</tr></thead>'
            f"<tbody>{''.join(body)}</tbody></table>"
        )


def mean_and_spread(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean and the sample standard deviation, which one value alone does not have."""
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return float(np.mean(values)), spread


def _by_setting(runs: list[Run], swept: str | None) -> list[tuple[str, list[Run]]]:
    if swept is None:
        return [("", runs)]
    groups: dict[object, list[Run]] = {}
    for run in runs:
        groups.setdefault(extra(run, swept), []).append(run)
    ordered = sorted(groups.items(), key=lambda item: (isinstance(item[0], str), item[0] or 0))
    return [(f", {setting_label(swept)} = {value}", group) for value, group in ordered]


def _cell(results: Results, name: str, runs: Sequence[Run], metric: str) -> Cell | None:
    values = [run.metrics[metric] for run in runs if metric in run.metrics]
    if not values:
        return None
    mean, spread = mean_and_spread(values)
    return Cell(mean, spread, significance_mark(results.significance, name, metric))


def significance_mark(test: Mapping[str, Any], name: str, metric: str) -> str:
    """`+` where the method is significantly better than the reference, `−` where worse."""
    p = test.get("p_values", {}).get(name, {}).get(metric)
    difference = test.get("difference", {}).get(name, {}).get(metric)
    if p is None or not difference or p > test.get("alpha", 0.05):
        return ""
    return BETTER if difference > 0 else WORSE


def with_best(rows: Sequence[Row]) -> list[Row]:
    """Rows in which the best cell of each column is bold, the oracle's aside."""
    contest = [row for row in rows if row.method != "oracle"]
    if len(contest) < 2:
        return list(rows)
    best = [
        max((round(row.cells[i].mean, 3) for row in contest if row.cells[i]), default=None)  # type: ignore[union-attr]
        for i in range(len(rows[0].cells))
    ]
    return [
        replace(
            row,
            cells=tuple(
                cell and replace(cell, best=row in contest and round(cell.mean, 3) == top)
                for cell, top in zip(row.cells, best, strict=True)
            ),
        )
        for row in rows
    ]


def _group(name: str) -> str:
    """Rows that belong together: the table draws a line where the group changes."""
    groups = {"dla": "dla", "initial": "bounds", "oracle": "bounds"}
    return groups.get(name) or ("svm" if name.startswith("svm-") else "dnn")


def _markdown_text(text: str) -> str:
    plain = " ".join(html.escape(text, quote=False).split())
    return plain.replace("\\", "\\\\").replace("|", "\\|")


def _markdown_cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    return (f"**{cell.number}**" if cell.best else cell.number) + cell.superscript


def _strong(name: str) -> str:
    return ' class="strong"' if name == "dla" else ""


def _main(is_main: bool) -> str:
    return ' class="main"' if is_main else ""


def _html_cell(cell: Cell | None, is_main: bool) -> str:
    if cell is None:
        return f"<td{_main(is_main)}></td>"
    mean = f"<b>{cell.mean:.3f}</b>" if cell.best else f"{cell.mean:.3f}"
    # An empty mark keeps its room, so that the digits of a column stand under each other.
    kind = {BETTER: "better", WORSE: "worse"}.get(cell.mark, "none")
    spread = "" if cell.spread is None else f"<small>±{cell.spread:.3f}</small>"
    return f'<td{_main(is_main)}>{mean}<sup class="{kind}">{cell.mark}</sup>{spread}</td>'
