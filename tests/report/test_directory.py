from __future__ import annotations

import pytest

from dualrank.report.directory import write_experiment
from dualrank.report.results import Results
from dualrank.report.sheet import Sheet


def test_everything_is_written_and_named_with_the_same_bytes_every_time(results, tmp_path):
    target = tmp_path / "new" / "experiment"
    paths = write_experiment(results, target)
    assert [path.name for path in paths] == [
        "results.json",
        "table.md",
        "figure-propensity.svg",
        "figure-propensity.png",
        "figure-methods.svg",
        "figure-learning-curve.svg",
        "report.html",
    ]
    assert sorted(target.iterdir()) == sorted(paths)
    assert Results.read(target / "results.json") == results
    first = [path.read_bytes() for path in paths]
    assert first == [path.read_bytes() for path in write_experiment(results, target)]


def test_missing_pieces_are_left_out(make, tmp_path):
    results = make(seeds=1)
    for run in results.runs:
        run.propensity = None
        run.__pydantic_extra__.clear()
    names = [path.name for path in write_experiment(results, tmp_path)]
    assert names == ["results.json", "table.md", "figure-methods.svg", "report.html"]


def test_a_sweep_writes_its_own_figures(sweep, tmp_path):
    names = {path.name for path in write_experiment(sweep, tmp_path)}
    assert {"figure-eta-ndcg10.svg", "figure-eta-err10.svg", "figure-eta-mse.svg"} <= names
    assert "figure-propensity.svg" not in names


def test_a_failed_writing_leaves_the_old_file(tmp_path, monkeypatch):
    results = Results(experiment="demo", settings={}, runs=[])
    write_experiment(results, tmp_path)
    before = (tmp_path / "report.html").read_bytes()

    def fail(*_: object) -> str:
        raise RuntimeError

    monkeypatch.setattr(Sheet, "_page", fail)
    with pytest.raises(RuntimeError):
        write_experiment(results, tmp_path)
    assert (tmp_path / "report.html").read_bytes() == before
    assert not list(tmp_path.glob(".*"))
