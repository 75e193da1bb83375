"""A table that prints itself: as Markdown, as HTML, and in a terminal."""

from __future__ import annotations

import html
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dualrank.certainty import LEVEL
from dualrank.report.template import render
from dualrank.sentences import counted
from dualrank.showing.card import bolder, card, grid, said
from dualrank.showing.visible import plain, visible

if TYPE_CHECKING:
    from markupsafe import Markup
    from rich.table import Table as RichTable
    from rich.text import Text

BETTER, WORSE = "+", "−"
_SUPERSCRIPT = {BETTER: "⁺", WORSE: "⁻", "": ""}
_ARROW = {BETTER: "↑", WORSE: "↓", "": ""}


@dataclass(frozen=True)
class Cell:
    """A mean, its standard deviation (None with one value), and how it compares.

    `mark` is `BETTER` or `WORSE` where a test found a difference, and `other_mark` so where a test
    against something else did; `best` says that no other row has a better mean (see `with_best`).
    `unit` is written after the number.
    """

    mean: float
    spread: float | None = None
    mark: str = ""
    best: bool = False
    decimals: int = 3
    unit: str = ""
    other_mark: str = ""

    @classmethod
    def of(cls, values: Sequence[float], mark: str = "", decimals: int = 3, unit: str = "") -> Cell:
        """The mean and the sample standard deviation of values, of which there is at least one."""
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
        return cls(float(np.mean(values)), spread, mark, decimals=decimals, unit=unit)

    @property
    def mean_text(self) -> str:
        """The mean, as printed.

        >>> Cell(-0.25).mean_text, Cell(float("nan")).mean_text
        ('−0.250', '–')
        """
        if np.isnan(self.mean):
            return "–"
        return f"{self.mean:.{self.decimals}f}{self.unit}".replace("-", "−")

    @property
    def number(self) -> str:
        """The mean with its spread, as printed.

        >>> Cell(12.34, 0.56, decimals=1, unit=" %").number
        '12.3 ± 0.6 %'
        """
        if self.spread is None:
            return self.mean_text
        return f"{self.mean_text.removesuffix(self.unit)} ± {self.spread_text}{self.unit}"

    @property
    def spread_text(self) -> str:
        """The spread, as printed."""
        return f"{self.spread:.{self.decimals}f}"

    @property
    def arrow(self) -> str:
        """The other mark, as printed."""
        return _ARROW[self.other_mark]

    @property
    def superscript(self) -> str:
        """Both marks, each as one raised character."""
        return _SUPERSCRIPT[self.mark] + self.arrow


@dataclass(frozen=True)
class Row:
    """What is compared, under its label; a cell is a `Cell`, plain text, or None for no value.

    A line is drawn where `group` changes. A `strong` label is bold, a `dim` row speaks about the
    one above it, and a row that stands `aside` takes no part in the contest for the best.
    """

    label: str
    cells: tuple[Cell | str | None, ...]
    group: str = ""
    strong: bool = False
    dim: bool = False
    aside: bool = False


@dataclass(frozen=True)
class Table:
    """Rows by columns.

    `corner` is the heading over the labels. The column `main` is tinted. Where a terminal is too
    narrow, the columns that stay are the first of `kept_first`. The columns in `words` hold text:
    they are aligned at the left and wrap (`corner` may be one of them). `reference`, `alpha` and
    `other_reference` say what marked cells were tested against; `remark` is said below the table.
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    corner: str = ""
    main: str | None = None
    kept_first: Sequence[str] = ()
    words: Collection[str] = ()
    reference: str = ""
    other_reference: str = ""
    alpha: float = LEVEL
    remark: str = ""

    @property
    def note(self) -> str:
        """What the signs in this table mean, as far as they occur in it, and the remark."""
        cells = [cell for row in self.rows for cell in row.cells if isinstance(cell, Cell)]
        parts = []
        if any(cell.spread is not None for cell in cells):
            parts.append("Mean ± standard deviation over seeds.")
        tests = (
            (_SUPERSCRIPT, self.reference, any(cell.mark for cell in cells)),
            (_ARROW, self.other_reference, any(cell.other_mark for cell in cells)),
        )
        parts += [
            f"{signs[BETTER]} and {signs[WORSE]}: significantly better and worse than {reference} "
            f"(p ≤ {self.alpha:g})."
            for signs, reference, occurs in tests
            if occurs
        ]
        if any(cell.best for cell in cells):
            aside = "".join(f", {row.label} aside" for row in self.rows if row.aside)
            parts.append(f"Bold: the best{aside}.")
        return " ".join([*parts, *([self.remark] if self.remark else [])])

    def markdown(self) -> str:
        """A Markdown table with its note."""
        sides = ["---" if name in self.words else "---:" for name in self.columns]
        head = [_markdown_text(name) for name in (self.corner, *self.columns)]
        body = [
            [_markdown_text(row.label), *(_markdown_cell(cell) for cell in row.cells)]
            for row in self.rows
        ]
        lines = ["| " + " | ".join(cells) + " |" for cells in [head, *body]]
        lines.insert(1, f"|{'|'.join(['---', *sides])}|")
        return "\n".join(lines) + "\n" + (f"\n{self.note}\n" if self.note else "")

    def html(self) -> Markup:
        """An HTML table; everything that comes from outside is escaped."""
        return render("table.html", table=self)

    def _repr_html_(self) -> str:
        """The table for notebooks, light or dark, with its note."""
        texts = [
            [row.label, *(_shown(cell) + _mark(cell) for cell in row.cells)] for row in self.rows
        ]
        bold = [[row.strong, *map(_is_best, row.cells)] for row in self.rows]
        rows = [
            [bolder(text) if is_bold else text for text, is_bold in zip(*each, strict=True)]
            for each in zip(texts, bold, strict=True)
        ]
        columns = (self.corner, *self.columns)
        words = {0, *(number for number, name in enumerate(columns) if name in self.words)}
        return card("", (), grid(columns, rows, words=words), said(self.note, aside=True))

    def rich(self, width: int) -> RichTable:
        """A table for a terminal of this width, narrower or with fewer columns where it must be.

        The columns that stay are the ones that are spoken about most; numbers never wrap.
        """
        from rich.console import Console

        console = Console(width=10_000)
        table = self._rich(self.columns, padding=1)
        for count in range(len(self.columns), 0, -1):
            for padding in (1, 0):
                table = self._rich(self.most_telling(count), padding)
                if console.measure(table).minimum <= width:
                    if count < len(self.columns):
                        hidden = counted(len(self.columns) - count, "more columns")
                        table.caption = f"{hidden} in a wider terminal"
                    return table
        return table

    def most_telling(self, count: int) -> tuple[str, ...]:
        """At most `count` of the columns, in the order of the table."""
        wanted = [name for name in (self.main, *self.kept_first) if name in self.columns]
        wanted = list(dict.fromkeys([*wanted, *self.columns]))[:count]
        return tuple(name for name in self.columns if name in wanted)

    def _rich(self, columns: Sequence[str], padding: int) -> RichTable:
        from rich import box
        from rich.table import Table as RichTable

        table = RichTable(
            box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, padding)
        )
        chosen = [self.columns.index(name) for name in columns]
        for name, index in zip((self.corner, *columns), (None, *chosen), strict=True):
            texts = [
                visible(row.label)
                if index is None
                else _shown(row.cells[index]) + _mark(row.cells[index])
                for row in self.rows
            ]
            wraps = name in self.words
            table.add_column(
                plain(name),
                justify="left" if wraps or index is None else "right",
                no_wrap=not wraps,
                overflow="fold" if wraps else "ellipsis",
                min_width=None if wraps else max(len(name), *map(len, texts), 0),
            )
        # Numbers are aligned by hand, since marks stand after them in some rows only.
        widths = {
            index: max(
                len(self.columns[index]) - 1, *(len(_shown(row.cells[index])) for row in self.rows)
            )
            for index in chosen
            if any(_mark(row.cells[index]) for row in self.rows)
        }
        for i, row in enumerate(self.rows):
            if i and row.group != self.rows[i - 1].group:
                table.add_section()
            table.add_row(
                plain(row.label),
                *(_rich_cell(row.cells[index], widths.get(index)) for index in chosen),
                style="dim" if row.dim else None,
            )
        return table


def with_best(rows: Sequence[Row], lowest: Collection[int] = ()) -> tuple[Row, ...]:
    """Rows in which the best cell of each column is bold, those that stand aside left out.

    High is good, except in the columns whose index is in `lowest`. Means that print alike share
    the place. Where fewer than two rows compete, nothing is best.
    """
    contest = [row for row in rows if not row.aside]
    if len(contest) < 2:
        return tuple(rows)
    best = []
    for index in range(len(rows[0].cells)):
        cells = [row.cells[index] for row in contest]
        sign = -1 if index in lowest else 1
        known = [cell for cell in cells if isinstance(cell, Cell) and not np.isnan(cell.mean)]
        top = max(known, key=lambda cell: sign * cell.mean, default=None)
        best.append(None if top is None else top.mean_text)
    return tuple(
        replace(
            row,
            cells=tuple(
                replace(cell, best=cell.mean_text == top) if isinstance(cell, Cell) else cell
                for cell, top in zip(row.cells, best, strict=True)
            ),
        )
        if row in contest
        else row
        for row in rows
    )


def _text(cell: Cell | str | None) -> str:
    return cell.number if isinstance(cell, Cell) else cell or ""


def _shown(cell: Cell | str | None) -> str:
    """A cell as a terminal shows it, without its mark."""
    return visible(_text(cell))


def _is_best(cell: Cell | str | None) -> bool:
    return isinstance(cell, Cell) and cell.best


def _mark(cell: Cell | str | None) -> str:
    return cell.superscript if isinstance(cell, Cell) else ""


def _markdown_text(text: str) -> str:
    written = visible(" ".join(html.escape(text, quote=False).split()))
    return written.replace("\\", "\\\\").replace("|", "\\|")


def _markdown_cell(cell: Cell | str | None) -> str:
    text = _markdown_text(_text(cell))
    return (f"**{text}**" if _is_best(cell) else text) + _mark(cell)


def _rich_cell(cell: Cell | str | None, width: int | None) -> Text:
    text = plain(_text(cell), "bold" if _is_best(cell) else "")
    if width is None:
        return text
    text.pad_left(width - len(text))
    text.justify = "left"
    mark = cell.mark if isinstance(cell, Cell) else ""
    return text.append(_mark(cell), style={BETTER: "green", WORSE: "red"}.get(mark, ""))
