from __future__ import annotations

import pytest

from dualrank.report import Results, Sheet, results_sheet


def test_everything_is_written_and_named_with_the_same_bytes_every_time(results, tmp_path):
    target = tmp_path / "new" / "experiment"
    paths = results_sheet(results, "Methods").write(target)
    assert [path.name for path in paths] == [
        "table.md",
        "figure-propensity.svg",
        "figure-propensity.png",
        "figure-methods.svg",
        "figure-learning-curve.svg",
        "report.html",
    ]
    assert sorted(target.iterdir()) == sorted(paths)
    first = [path.read_bytes() for path in paths]
    assert first == [path.read_bytes() for path in results_sheet(results, "Methods").write(target)]


def test_missing_pieces_are_left_out(make, tmp_path):
    results = make(seeds=1)
    for run in results.runs:
        run.propensity = None
        run.__pydantic_extra__.clear()
    names = [path.name for path in results_sheet(results, "Methods").write(tmp_path)]
    assert names == ["table.md", "figure-methods.svg", "report.html"]


def test_a_sweep_writes_its_own_figures(sweep, tmp_path):
    names = {path.name for path in results_sheet(sweep, "Methods").write(tmp_path)}
    assert {"figure-eta-ndcg10.svg", "figure-eta-err10.svg", "figure-eta-mse.svg"} <= names
    assert "figure-propensity.svg" not in names


def test_a_failed_writing_leaves_the_old_file(tmp_path, monkeypatch):
    results = Results(experiment="demo", settings={}, runs=[])
    results_sheet(results, "Methods").write(tmp_path)
    before = (tmp_path / "report.html").read_bytes()

    def fail(*_: object) -> str:
        raise RuntimeError

    monkeypatch.setattr(Sheet, "_page", fail)
    with pytest.raises(RuntimeError):
        results_sheet(results, "Methods").write(tmp_path)
    assert (tmp_path / "report.html").read_bytes() == before
    assert not list(tmp_path.glob(".*"))
