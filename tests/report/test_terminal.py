from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from dualrank.diagnostics import Point
from dualrank.report import Cell, Results, Row, Section, Sheet, Table, results_sheet
from dualrank.report.in_words import numbers_in_words, p_in_words


def printed(results: Results, width: int, files: tuple[Path, ...] = ()) -> str:
    out = io.StringIO()
    sheet = results_sheet(results, "Methods")
    sheet.show(Console(file=out, width=width, color_system=None), files)
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_nothing_is_wider_than_the_terminal(results, width):
    lines = printed(results, width).splitlines()
    assert max(map(len, lines)) <= width
    positions = [line for line in lines if "█" in line]
    assert len(positions) == 10
    assert positions[1].endswith("0.91   0.90")
    assert "…" not in "".join(lines)


def test_bars_show_where_learned_and_true_differ(make):
    results = make(seeds=1, true_examination=[1.0, 0.2, *[0.1] * 8])
    results.of("dla")[0].propensity.examination = [1.0, 0.1, *[0.2] * 8]
    bars = [line.plain for line in results_sheet(results, "Methods").bars.lines(80)]
    assert "▄" in bars[2]
    assert "▀" not in bars[2]
    assert "▀" in bars[3]


def test_a_curve_without_known_truth_is_shown_alone(results):
    del results.settings["true_examination"]
    bars = [line.plain for line in results_sheet(results, "Methods").bars.lines(80)]
    assert len(bars) == 11
    assert "true" not in "".join(bars)


def test_files_are_named_the_page_first(results, tmp_path):
    files = (tmp_path / "table.md", tmp_path / "report.html")
    text = printed(results, 60, files)
    assert f"Report: {tmp_path / 'report.html'}\n" in text
    assert "Beside it: table.md" in text


def test_markup_in_names_is_only_text(make):
    assert "[red]x[/nope]" in printed(make(ndcg={"dla": 0.7, "[red]x[/nope]": 0.6}), 80)


def test_a_terminal_without_unicode_gets_plain_characters(results):
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    results_sheet(results, "Methods").show(Console(file=out, width=80, color_system=None))
    out.flush()
    text = raw.getvalue().decode("ascii")
    assert "0.686 ~ 0.003-" in text
    assert " 4 ####" in text


def test_nothing_to_show_prints_nothing():
    assert printed(Results(experiment="demo", settings={}, runs=[]), 80) == ""


@pytest.mark.parametrize(("count", "words"), [(1, "1 warning\n"), (2, "2 warnings\n")])
def test_warnings_are_counted_in_words(count, words):
    points = tuple(Point(f"point {k}", "warning", {}, "Something.") for k in range(count))
    out = io.StringIO()
    sheet = Sheet("t", sections=(Section("Points", points=points),))
    sheet.show(Console(file=out, width=80, color_system=None))
    assert out.getvalue().endswith(words)


def test_columns_that_do_not_fit_are_counted():
    names = tuple(f"column {k}" for k in range(20))
    table = Table(names, (Row("row", tuple(Cell(0.5) for _ in names)),))
    console = Console(width=60, color_system=None)
    with console.capture() as captured:
        console.print(table.rich(60))
    assert "more columns in a wider terminal" in captured.get()


def test_a_p_value_is_never_nothing():
    assert p_in_words(1e-5) == "< 0.0001"
    assert numbers_in_words({"p_value": 1e-300}) == [("p value", "< 0.0001")]
