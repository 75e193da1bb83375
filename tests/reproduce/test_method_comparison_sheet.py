"""What the report of a comparison says, and that it says so because of the numbers."""

import pytest

from dualrank.report import Results, Run
from dualrank.reproduce.method_comparison import Methods
from dualrank.reproduce.method_comparison_sheet import (
    choice_table,
    error_table,
    log_rows,
    value_table,
    verdict,
)

FIT, SWAPS = "fit for joint learning", "collect some swaps first"
METHODS = ["initial", "naive", "truth", "dla", "auto"]


def results(*scenarios, significance=None, **further) -> Results:
    """Two seeds of each (name, gain of dual learning, gain of auto, verdict)."""
    runs = []
    for name, dla, auto, said in scenarios:
        for seed in (0, 1):
            base = 0.7 + 0.01 * seed
            choice = {"chosen": "dla" if auto else "naive", "verdict": said}
            for method, gain, more in (
                ("initial", -0.1, {}),
                ("naive", 0, {}),
                ("truth", 0.05, {"curve_error": 0.0}),
                ("dla", dla, {"curve_error": 0.1 + 0.1 * seed}),
                ("auto", auto, choice),
                *further.get("more", ()),
            ):
                shown = {"ndcg@10": base + gain / 2}
                run = Run(
                    method=method,
                    seed=seed,
                    metrics={"ndcg@10": base + gain},
                    seconds=1,
                    scenario=name,
                    shown=shown,
                    **more,
                )
                runs.append(run)
    settings = {
        "data": "generated",
        "seeds": [0, 1],
        "version": "1",
        "command": "dualrank x",
        "methods": METHODS,
    }
    return Results(
        experiment="methods", settings=settings, runs=runs, significance=significance or {}
    )


GOOD = ("initial-ranker", 0.02, 0.02, FIT)
LOST = ("cascade", -0.03, 0.0, SWAPS)


def table(found, part="metrics"):
    return value_table(log_rows(found), METHODS, found.significance, 2, part).markdown()


def test_the_table_has_a_row_for_each_log_and_a_column_for_each_method():
    lines = table(results(GOOD, LOST)).splitlines()
    assert lines[0] == "| log | logging ranker | naive | IPW, truth | DLA | auto |"
    assert lines[3].startswith("| cascade clicks | 0.605 ± 0.007 | **0.705 ± 0.007** |")


def test_the_best_of_a_log_is_bold_the_truth_aside():
    row = table(results(GOOD)).splitlines()[2]
    assert "| 0.755 ± 0.007 | **0.725 ± 0.007** | **0.725 ± 0.007** |" in row


def test_shown_documents_have_their_own_numbers():
    assert "| 0.715 ± 0.007 |" in table(results(GOOD), "shown").replace("**", "")


def test_marks_say_what_was_tested_against_naive_and_against_dla():
    def tested(metric, method, difference, p):
        return {"p_values": {method: {metric: p}}, "difference": {method: {metric: difference}}}

    found = results(
        GOOD,
        significance={
            "initial-ranker": {
                "naive": tested("ndcg@10", "dla", 0.02, 0.01),
                "dla": tested("ndcg@10", "initial", -0.1, 0.02),
            }
        },
    )
    text = table(found)
    assert "**0.725 ± 0.007**⁺ |" in text
    assert "| 0.605 ± 0.007↓ |" in text
    assert "⁺ and ⁻: significantly better and worse than naive (p ≤ 0.05)." in text
    assert "↑ and ↓: significantly better and worse than DLA (p ≤ 0.05)." in text
    assert not set("⁺⁻↑↓") & set(table(found, "shown"))


def test_methods_with_the_context_have_a_row_of_their_own():
    found = results(("devices", 0.01, 0.0, FIT), more=[("dla by device", 0.03, {})])
    rows = log_rows(found)
    assert [row.title for row in rows] == [
        "two devices, a ranker for each",
        "two devices, a ranker for each, by device",
    ]
    assert rows[1].gains("dla") == pytest.approx([0.03, 0.03])
    assert rows[0].gains("dla") == pytest.approx([0.01, 0.01])


def test_public_collections_are_named():
    found = results(GOOD, LOST)
    for run in found.runs:
        run.data = "mq2008"
    assert [row.title for row in log_rows(found)] == ["mq2008", "mq2008: cascade clicks"]


def test_errors_of_curves_are_those_of_methods_that_learn_one():
    text = error_table(log_rows(results(GOOD)), METHODS).markdown()
    assert "| log | DLA |" in text
    assert "| 0.15 (0.1 to 0.2) |" in text


def test_choices_are_counted():
    text = choice_table(log_rows(results(GOOD, LOST))).markdown()
    assert "| +0.0000 | +0.0000 | naive | collect some swaps first |" in text


def test_the_verdict_is_that_of_the_numbers():
    said = " ".join(verdict(log_rows(results(GOOD, LOST))))
    assert "Auto ends +0.0000 nDCG@10 against naive training where it ends worst (cascade" in said
    assert "below the best of them in 0 of 1 logs." in said
    assert "loses by more than 0.005 in 1 of 2 logs: cascade clicks." in said
    assert "Diagnose warns wherever DLA loses so much." in said
    assert "finds every log on which DLA gains fit" in said


@pytest.mark.parametrize(
    ("scenario", "sentence"),
    [
        (
            ("cascade", -0.03, -0.03, FIT),
            "Diagnose does not warn, though DLA loses so much, of cascade clicks.",
        ),
        (("trust-bias", 0.02, 0.0, SWAPS), "though DLA gains, of trust bias."),
        (("trust-bias", 0.02, 0.0, SWAPS), "best of them in 1 of 2 logs: trust bias."),
        (("trust-bias", 0.02, -0.01, FIT), "Auto ends −0.0100 nDCG@10 against naive"),
    ],
)
def test_failures_are_named(scenario, sentence):
    assert sentence in " ".join(verdict(log_rows(results(GOOD, scenario))))


def test_nothing_is_said_of_methods_that_did_not_run():
    found = results(GOOD)
    found.runs = [run for run in found.runs if run.method in ("naive", "truth")]
    rows = log_rows(found)
    assert verdict(rows) == []
    assert choice_table(rows) is None


def test_the_directory_is_that_of_every_experiment(tmp_path):
    sheet = Methods().sheet({"results": results(GOOD, LOST)})
    names = [path.name for path in sheet.write(tmp_path)]
    tables = ["table.md", "shown.md", "curves.md", "auto.md"]
    assert names == [*tables, "figure-gains.svg", "report.html"]
    page = (tmp_path / "report.html").read_text()
    assert page.count("<tr>") == 3 * len(tables)
    assert "dualrank x" in page
    assert "</svg>" in (tmp_path / "figure-gains.svg").read_text()
