"""`results.json` keeps everything, also what a later experiment adds."""

import json

from dualrank.report.results import PropensityResult, Results, Run


def example():
    runs = [
        Run(method="naive", seed=1, metrics={"map": 0.5}, seconds=1.5, eta=0.5),
        Run(method="dla", seed=1, metrics={"map": 0.7}, seconds=2.0),
        Run(
            method="dla",
            seed=0,
            metrics={"map": 0.1 + 0.2},
            seconds=2.0,
            propensity=PropensityResult(examination=[1.0, 0.4], mse=0.01, low=[1.0, 0.3]),
        ),
    ]
    return Results(experiment="x", settings={"eta": [0.5, 1.0]}, runs=runs)


def test_everything_survives_the_file(tmp_path):
    example().write(tmp_path / "deep" / "results.json")
    found = Results.read(tmp_path / "deep" / "results.json")
    assert found == example()
    assert found.runs[0].eta == 0.5
    assert found.runs[2].propensity.low == [1.0, 0.3]
    assert found.runs[2].metrics["map"] == 0.1 + 0.2


def test_the_file_has_the_keys_of_the_contract(tmp_path):
    example().write(tmp_path / "results.json")
    content = json.loads((tmp_path / "results.json").read_text())
    assert content.keys() == {"experiment", "settings", "runs", "significance"}
    assert content["runs"][0].keys() == {
        "method", "seed", "metrics", "propensity", "seconds", "eta",
    }  # fmt: skip
    assert content["runs"][0]["propensity"] is None


def test_runs_of_a_method_are_ordered_by_seed_and_methods_by_appearance():
    assert [run.seed for run in example().of("dla")] == [0, 1]
    assert example().methods == ["naive", "dla"]
    assert example().of("nobody") == []
