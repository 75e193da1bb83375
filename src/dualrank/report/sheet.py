"""What a person is shown of a piece of work, given once for the page, the files and the terminal.

    >>> from dualrank.report.table import Cell, Row, Table
    >>> table = Table(("nDCG@10",), (Row("mine", (Cell(0.7),)), Row("yours", (Cell(0.6),))))
    >>> section = Section("Results", table=table, file="table.md")
    >>> sheet = Sheet("Mine and yours", sections=(section,))
    >>> "<h2>Results</h2>" in sheet.html()
    True

`Sheet.html` is the page, `Sheet.write` leaves it with the tables and figures in a directory, and
`Sheet.show` tells the same in a terminal.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from dualrank.errors import SettingsError
from dualrank.extras import require
from dualrank.report.in_words import described
from dualrank.report.table import Table
from dualrank.report.template import render
from dualrank.report.theme import css_variables, png, svg_file, svg_inline
from dualrank.showing.palette import DARK, FONT, LIGHT
from dualrank.storage import atomic_file, write_text
from dualrank.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

    from dualrank.diagnostics.point import Point
    from dualrank.report.console import Bars

MARKS = {"good": "✓", "warning": "!", "failed": "✗", "not measured": "·"}

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Exhibit:
    """A figure under a name that no other of its sheet has, with what it shows.

    `draw` is called where the figure is needed; it returns None where there is nothing to draw.
    The file is `figure-{name}.svg`, and with `as_png` also a PNG, for places that take no SVG.
    A figure of several panels is too wide for a phone: its `panels` stand in the page instead.
    """

    name: str
    draw: Callable[[], Figure | None]
    caption: str
    as_png: bool = False
    wide: bool = False
    panels: tuple[Exhibit, ...] = ()


@dataclass(frozen=True)
class Section:
    """A part of a sheet under its title: what is said, then a table, figures, a note and points.

    The table also stands, with the text, in the Markdown `file` (several sections may share one).
    `lead` is said first and strongly. `Markup` in `text` and `note` is taken as HTML.
    """

    title: str
    text: str = ""
    lead: str = ""
    table: Table | None = None
    file: str = ""
    exhibits: tuple[Exhibit, ...] = ()
    note: str = ""
    points: Sequence[Point] = ()

    def markdown(self) -> str:
        """The table with its note and the text."""
        table = "" if self.table is None else self.table.markdown()
        return table + (f"\n{self.text}\n" if self.text else "")


@dataclass(frozen=True)
class Explanation:
    """Something that a reader may need to know, under "How to read this".

    `terms` are words with their meaning, `items` a list.
    """

    title: str
    text: str = ""
    terms: Sequence[tuple[str, str]] = ()
    items: Sequence[str] = ()


@dataclass(frozen=True)
class Sheet:
    """Title, findings, sections, how to read them, and what was run to get them.

    `verdict` are sentences, the most important first. `bars` are drawn in the terminal. The
    footer names `numbers`, the files that hold everything that the page rounds.
    """

    title: str
    summary: str = ""
    verdict: Sequence[str] = ()
    sections: Sequence[Section] = ()
    explanations: Sequence[Explanation] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    version: str = __version__
    numbers: str = "results.json"
    bars: Bars | None = None

    def html(self) -> str:
        """The page: no script, style, font or picture from elsewhere."""
        return self._page(_drawn(self._exhibits))

    def write(self, directory: Path) -> list[Path]:
        """Write the Markdown tables, the figures and `report.html`; return their paths.

        Each file is either whole or not there. Figures whose data are not there are left out, and
        so are all of them, with a warning, where matplotlib is not installed.
        """
        written = []
        texts: dict[str, list[str]] = {}
        for section in self.sections:
            if section.file:
                texts.setdefault(section.file, []).append(section.markdown())
        for name, parts in texts.items():
            written.append(directory / name)
            write_text(written[-1], "\n".join(parts))
        figures = _drawn(self._exhibits)
        written += _write_drawn(self._exhibits, figures, directory)
        written.append(directory / "report.html")
        write_text(written[-1], self._page(figures))
        return written

    def show(self, console: Console, files: Sequence[Path] = ()) -> None:
        """Print what a person wants to see at the end, and where the files are."""
        from dualrank.report.console import show

        show(self, console, files)

    @property
    def _exhibits(self) -> list[Exhibit]:
        return [exhibit for section in self.sections for exhibit in section.exhibits]

    def _page(self, figures: Mapping[str, Figure]) -> str:
        def in_page(section: Section) -> list[tuple[Exhibit, Markup]]:
            shown = [panel for each in section.exhibits for panel in each.panels or (each,)]
            return [
                (each, Markup(svg_inline(figures[each.name], each.name, each.caption)))
                for each in shown
                if each.name in figures
            ]

        return render(
            "page.html",
            sheet=self,
            sections=[(section, in_page(section)) for section in self.sections],
            settings=described(self.settings),
            marks=MARKS,
            light=Markup(css_variables(LIGHT)),
            dark=Markup(css_variables(DARK)),
            font=Markup(FONT),
        )


def write_exhibits(exhibits: Sequence[Exhibit], directory: Path) -> list[Path]:
    """Write figures under their names; return the paths."""
    return _write_drawn(exhibits, _drawn(exhibits), directory)


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure as SVG or, where the name ends so, as PNG."""
    with atomic_file(path) as file:
        file.write(png(figure) if path.suffix == ".png" else svg_file(figure).encode())


def _drawn(exhibits: Sequence[Exhibit]) -> dict[str, Figure]:
    """Every figure that there is something to draw of, with its panels, by name."""
    try:
        if exhibits:
            require("charts", "matplotlib")
    except SettingsError as error:
        logger.warning("figures are left out: %s", error)
        return {}
    drawn = {each.name: each.draw() for exhibit in exhibits for each in (exhibit, *exhibit.panels)}
    return {name: figure for name, figure in drawn.items() if figure is not None}


def _write_drawn(
    exhibits: Sequence[Exhibit], figures: Mapping[str, Figure], directory: Path
) -> list[Path]:
    written = []
    for exhibit in exhibits:
        if exhibit.name in figures:
            for suffix in ["svg"] + ["png"] * exhibit.as_png:
                written.append(directory / f"figure-{exhibit.name}.{suffix}")
                write_figure(figures[exhibit.name], written[-1])
    return written
