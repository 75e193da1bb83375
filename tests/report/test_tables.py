from __future__ import annotations

import numpy as np
import pytest
from rich.console import Console

from dualrank.report.result_table import BETTER, WORSE, ResultTable


def rendered(table: ResultTable, width: int) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(table.rich(width))
    return capture.get()


def test_rows_stand_in_the_order_of_the_paper(results):
    table = ResultTable.from_results(results)
    assert [row.label for row in table.rows] == [
        "DNN with DLA",
        "Ranking SVM, NoCorrect",
        "Ranking SVM, RandList",
        "DNN, NoCorrect",
        "DNN, RandList",
        "Initial Ranker",
        "Oracle DNN",
    ]
    assert table.metrics == (
        "map",
        *("ndcg@1", "err@1", "ndcg@3", "err@3", "ndcg@5", "err@5", "ndcg@10", "err@10"),
    )


def test_cells_hold_mean_and_sample_deviation_over_seeds(results):
    table = ResultTable.from_results(results)
    values = [run.metrics["ndcg@10"] for run in results.of("dla")]
    cell = table.rows[0].cells[table.metrics.index("ndcg@10")]
    assert cell.mean == pytest.approx(0.722)
    assert cell.spread == pytest.approx(np.std(values, ddof=1))


def test_marks_follow_significance_and_sign(results):
    results.significance["p_values"]["naive"]["map"] = 0.0501
    results.significance["p_values"]["initial"]["map"] = 0.05
    table = ResultTable.from_results(results)
    marks = {row.method: [cell.mark for cell in row.cells] for row in table.rows}
    assert set(marks["dla"]) == {""}
    assert set(marks["randlist"]) == {""}
    assert set(marks["oracle"]) == {BETTER}
    assert marks["naive"] == ["", *[WORSE] * 8]
    assert set(marks["initial"]) == {WORSE}


def test_best_leaves_the_oracle_aside_and_is_shared_by_means_that_print_alike(make):
    results = make(ndcg={"dla": 0.7221, "randlist": 0.7219, "naive": 0.7, "oracle": 0.74})
    table = ResultTable.from_results(results)
    best = {row.method: {cell.best for cell in row.cells} for row in table.rows}
    assert best == {"dla": {True}, "randlist": {True}, "naive": {False}, "oracle": {False}}


def test_one_seed_has_no_spread(make):
    table = ResultTable.from_results(make(seeds=1))
    assert all(cell.spread is None for row in table.rows for cell in row.cells)
    assert "±" not in table.markdown() + table.html() + rendered(table, 200)


def test_markdown_shows_values_marks_and_best(results):
    lines = ResultTable.from_results(results).markdown().splitlines()
    assert lines[0].startswith("| | MAP | nDCG@1 | ERR@1 |")
    assert all(line.count("|") == 11 for line in lines[:9])
    assert "0.722 ± 0.003 |" in lines[2]
    assert "| 0.686 ± 0.003⁻ |" in lines[5]
    assert "| **0.724 ± 0.002** |" in lines[6]
    assert "| 0.738 ± 0.003⁺ |" in lines[8]
    assert "significantly better and worse than DNN with DLA (p ≤ 0.05)" in lines[-1]


def test_a_missing_metric_leaves_its_cell_empty(results):
    for run in results.of("initial"):
        del run.metrics["map"]
    table = ResultTable.from_results(results)
    assert table.rows[5].cells[0] is None
    assert "| Initial Ranker |  | 0.599" in table.markdown()
    assert "<td></td>" in table.html()
    assert "Initial Ranker" in rendered(table, 80)


def test_without_significance_nothing_is_marked_or_explained(results):
    results.significance = {}
    table = ResultTable.from_results(results)
    assert "significant" not in table.note
    assert not any(sign in table.markdown() for sign in "⁺⁻")


@pytest.mark.parametrize("width", [60, 80, 120, 250])
def test_terminal_table_never_wraps_and_keeps_the_main_metric(results, width):
    text = rendered(ResultTable.from_results(results), width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert "nDCG@10" in lines[0]
    assert [line for line in lines if line.startswith("DNN, RandList")]
    assert "…" not in text
    assert ("ERR@1 " in lines[0]) == (width == 250)


def test_numbers_stand_under_each_other_with_and_without_marks(results):
    lines = rendered(ResultTable.from_results(results), 60).splitlines()
    assert len({line.index("±") for line in lines if "±" in line}) == 1


def test_a_swept_setting_gives_a_row_per_value(sweep):
    table = ResultTable.from_results(sweep)
    labels = [row.label for row in table.rows]
    assert labels[:2] == ["DNN with DLA, η = 0", "DNN with DLA, η = 0.5"]
    assert len(labels) == 15
    assert not any(cell.best for row in table.rows for cell in row.cells)


def test_markdown_survives_hostile_names(make):
    results = make(ndcg={"dla": 0.7, "a|b\n<script>": 0.6})
    lines = ResultTable.from_results(results).markdown().splitlines()
    assert lines[3].startswith(r"| a\|b &lt;script&gt; | ")
