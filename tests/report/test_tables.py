from __future__ import annotations

import numpy as np
import pytest
from rich.console import Console

from dualrank.report.labels import METHODS
from dualrank.report.method_table import result_table
from dualrank.report.table import BETTER, WORSE, Cell, Row, Table, with_best

NAMES = {look.label: name for name, look in METHODS.items()}


def rendered(table: Table, width: int) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(table.rich(width))
    return capture.get()


def test_rows_stand_in_the_order_of_the_paper(results):
    table = result_table(results)
    assert [row.label for row in table.rows] == [
        "DNN with DLA",
        "Ranking SVM, NoCorrect",
        "Ranking SVM, RandList",
        "DNN, NoCorrect",
        "DNN, RandList",
        "Initial Ranker",
        "Oracle DNN",
    ]
    assert table.columns == (
        "MAP",
        *("nDCG@1", "ERR@1", "nDCG@3", "ERR@3", "nDCG@5", "ERR@5", "nDCG@10", "ERR@10"),
    )


def test_cells_hold_mean_and_sample_deviation_over_seeds(results):
    table = result_table(results)
    values = [run.metrics["ndcg@10"] for run in results.of("dla")]
    cell = table.rows[0].cells[table.columns.index("nDCG@10")]
    assert cell.mean == pytest.approx(0.722)
    assert cell.spread == pytest.approx(np.std(values, ddof=1))


def test_marks_follow_significance_and_sign(results):
    results.significance["p_values"]["naive"]["map"] = 0.0501
    results.significance["p_values"]["initial"]["map"] = 0.05
    table = result_table(results)
    marks = {NAMES[row.label]: [cell.mark for cell in row.cells] for row in table.rows}
    assert set(marks["dla"]) == {""}
    assert set(marks["randlist"]) == {""}
    assert set(marks["oracle"]) == {BETTER}
    assert marks["naive"] == ["", *[WORSE] * 8]
    assert set(marks["initial"]) == {WORSE}


def test_best_leaves_the_oracle_aside_and_is_shared_by_means_that_print_alike(make):
    results = make(ndcg={"dla": 0.7221, "randlist": 0.7219, "naive": 0.7, "oracle": 0.74})
    table = result_table(results)
    best = {NAMES[row.label]: {cell.best for cell in row.cells} for row in table.rows}
    assert best == {"dla": {True}, "randlist": {True}, "naive": {False}, "oracle": {False}}


def test_one_seed_has_no_spread(make):
    table = result_table(make(seeds=1))
    assert all(cell.spread is None for row in table.rows for cell in row.cells)
    assert "±" not in table.markdown() + table.html() + rendered(table, 200)


def test_markdown_shows_values_marks_and_best(results):
    lines = result_table(results).markdown().splitlines()
    assert lines[0].startswith("| Method | MAP | nDCG@1 | ERR@1 |")
    assert all(line.count("|") == 11 for line in lines[:9])
    assert "0.722 ± 0.003 |" in lines[2]
    assert "| 0.686 ± 0.003⁻ |" in lines[5]
    assert "| **0.724 ± 0.002** |" in lines[6]
    assert "| 0.738 ± 0.003⁺ |" in lines[8]
    assert "significantly better and worse than DNN with DLA (p ≤ 0.05)" in lines[-1]


def test_a_missing_metric_leaves_its_cell_empty(results):
    for run in results.of("initial"):
        del run.metrics["map"]
    table = result_table(results)
    assert table.rows[5].cells[0] is None
    assert "| Initial Ranker |  | 0.599" in table.markdown()
    assert "<td></td>" in table.html()
    assert "Initial Ranker" in rendered(table, 80)


def test_without_significance_nothing_is_marked_or_explained(results):
    results.significance = {}
    table = result_table(results)
    assert "significant" not in table.note
    assert not any(sign in table.markdown() for sign in "⁺⁻")


@pytest.mark.parametrize("width", [60, 80, 120, 250])
def test_terminal_table_never_wraps_and_keeps_the_main_metric(results, width):
    text = rendered(result_table(results), width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert "nDCG@10" in lines[0]
    assert [line for line in lines if line.startswith("DNN, RandList")]
    assert "…" not in text
    assert ("ERR@1 " in lines[0]) == (width == 250)


def test_numbers_stand_under_each_other_with_and_without_marks(results):
    lines = rendered(result_table(results), 60).splitlines()
    assert len({line.index("±") for line in lines if "±" in line}) == 1


def test_a_swept_setting_gives_a_row_per_value(sweep):
    table = result_table(sweep)
    labels = [row.label for row in table.rows]
    assert labels[:2] == ["DNN with DLA, η = 0", "DNN with DLA, η = 0.5"]
    assert len(labels) == 15
    assert not any(cell.best for row in table.rows for cell in row.cells)


def test_markdown_survives_hostile_names(make):
    results = make(ndcg={"dla": 0.7, "a|b\n<script>": 0.6})
    lines = result_table(results).markdown().splitlines()
    assert lines[3].startswith(r"| a\|b &lt;script&gt; | ")


def test_a_column_where_low_is_good_has_its_best_at_the_bottom():
    rows = [Row("a", (Cell(2.0), Cell(2.0))), Row("b", (Cell(1.0), Cell(1.0)))]
    best = [[cell.best for cell in row.cells] for row in with_best(rows, lowest=[1])]
    assert best == [[True, False], [False, True]]


def test_what_is_not_a_number_is_never_the_best():
    rows = with_best([Row("a", (Cell(float("nan")),)), Row("b", (Cell(1.0),))])
    assert [row.cells[0].best for row in rows] == [False, True]
    assert "| a | – |" in Table(("x",), rows).markdown()


def test_columns_of_words_stand_at_the_left_and_wrap():
    row = Row("log", (Cell(0.5), "much is said of this log " * 4))
    table = Table(("nDCG@10", "said"), (row,), corner="log", words=("log", "said"))
    assert table.markdown().splitlines()[1] == "|---|---:|---|"
    assert '<th scope="col" class="words">said</th>' in table.html()
    lines = rendered(table, 40).splitlines()
    assert max(map(len, lines)) <= 40
    assert " ".join(lines).count("much") == 4


def test_hostile_text_is_only_text():
    table = Table(("<b>",), (Row("[red]x", ("<script>",)),), corner="|")
    assert "<script>" not in table.html()
    assert "<b>" not in table.html().replace("&lt;b&gt;", "")
    assert "[red]x" in rendered(table, 80)
    assert table.markdown().startswith("| \\| | &lt;b&gt; |")


def test_a_table_without_rows_still_prints():
    table = Table(("x",), ())
    assert table.markdown() == "|  | x |\n|---|---:|\n"
    assert "x" in rendered(table, 20)
