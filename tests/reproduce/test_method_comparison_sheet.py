"""What the report of the scenarios says, and that it says so because of the numbers."""

import pytest

from dualrank.report import Results, Run
from dualrank.reproduce.scenarios import Scenarios, scenario_rows, scenario_table, verdict

FIT, SWAPS = "fit for joint learning", "collect some swaps first"


def results(*scenarios) -> Results:
    """Two seeds of each (name, gain of dual learning, gain of auto, verdict)."""
    runs = []
    for name, dla, auto, said in scenarios:
        for seed in (0, 1):
            base = 0.7 + 0.01 * seed
            for method, gain, more in (
                ("naive", 0, {}),
                ("truth", 0.01, {}),
                ("dla", dla, {"lead": 3.0}),
                ("auto", auto, {"chosen": "dla" if auto else "naive", "verdict": said}),
            ):
                metrics = {"ndcg@10": base + gain}
                runs.append(
                    Run(method=method, seed=seed, metrics=metrics, seconds=1, scenario=name, **more)
                )
    settings = {"data": "generated", "seeds": [0, 1], "version": "1", "command": "dualrank x"}
    return Results(experiment="scenarios", settings=settings, runs=runs)


GOOD = ("initial-ranker", 0.02, 0.02, FIT)
LOST = ("cascade", -0.03, 0.0, SWAPS)


def test_the_table_has_a_row_for_each():
    table = scenario_table(scenario_rows(results(GOOD, LOST)), seeds=2).markdown()
    assert "| cascade clicks | 0.7050 ± 0.0071 |" in table
    assert "−0.0300" in table
    assert "| naive | collect some swaps first |" in table


def test_the_verdict_is_that_of_the_numbers():
    said = " ".join(verdict(scenario_rows(results(GOOD, LOST))))
    assert "Auto ends +0.0000 nDCG@10 against naive training where it ends worst (cascade" in said
    assert "loses by more than 0.005 in 1 of 2 scenarios: cascade clicks." in said
    assert "Diagnose warns of each of them." in said
    assert "finds every log on which dual learning gains fit" in said


@pytest.mark.parametrize(
    ("scenario", "sentence"),
    [
        (("cascade", -0.03, -0.03, FIT), "Diagnose does not warn of cascade clicks."),
        (("trust-bias", 0.02, 0.0, SWAPS), "though dual learning gains, of trust bias."),
        (("trust-bias", 0.02, -0.01, FIT), "Auto ends −0.0100 nDCG@10 against naive"),
    ],
)
def test_failures_are_named(scenario, sentence):
    assert sentence in " ".join(verdict(scenario_rows(results(GOOD, scenario))))


def test_the_directory_is_that_of_every_experiment(tmp_path):
    sheet = Scenarios().sheet({"results": results(GOOD, LOST)})
    names = [path.name for path in sheet.write(tmp_path)]
    assert names == ["table.md", "figure-scenarios.svg", "report.html"]
    page = (tmp_path / "report.html").read_text()
    assert page.count("<tr>") == 3
    assert "dualrank x" in page
    assert "</svg>" in (tmp_path / "figure-scenarios.svg").read_text()
