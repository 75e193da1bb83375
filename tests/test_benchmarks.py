"""Benchmarks are run rarely: that they still start is tested often."""

import importlib
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dualrank.showing.palette import DARK, LIGHT

ROOT = Path(__file__).parents[1]
NAMES = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if path.stem[0] != "_")
OPTIONAL = {"pyspark", "clax", "jax", "pyclick", "pyarrow"}


@pytest.mark.parametrize("name", NAMES)
def test_benchmarks_can_be_imported(name, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    try:
        importlib.import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in OPTIONAL:
            raise
        pytest.skip(f"needs {error.name}")


def test_all_that_is_run_by_default_exists(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    modules = importlib.import_module("benchmarks.__main__").MODULES
    assert set(modules) <= set(NAMES)


@pytest.fixture
def estimates(monkeypatch):
    """The benchmark of estimates, with rows that are made up in no time."""
    monkeypatch.syspath_prepend(str(ROOT))
    module = importlib.import_module("benchmarks.estimates")

    def one_seed(seed, *, sessions, pairs, **_):
        estimates = {name: [0.1 / sessions, -1.0, 1.0] for name in ("ips", "direct")}
        row = {"truth": 0.0, "seed": seed, "verdict": "cannot tell", "contradicted": False}
        return [{"new": f"{n}", "old": "", "estimates": estimates, **row} for n in range(pairs)]

    monkeypatch.setattr(module, "one_seed", one_seed)
    monkeypatch.setattr(module, "ProcessPoolExecutor", ThreadPoolExecutor)
    return module


def test_one_command_draws_error_against_sessions_with_fewer_seeds_of_long_logs(
    estimates, tmp_path, capsys
):
    figure, rows = tmp_path / "e.svg", tmp_path / "rows.json"
    counts = ["--sessions", "1e4,100000", "--seeds", "3,1", "--pairs", "4,2"]
    estimates.main([*counts, "--figure", str(figure), "--rows", str(rows)])
    said = capsys.readouterr().out
    assert "10,000 sessions" in said
    assert "3 seeds, 4 pairs" in said
    assert "1 seeds, 2 pairs" in said
    assert {n: len(each) for n, each in json.loads(rows.read_text()).items()} == {
        "10000": 12,
        "100000": 2,
    }
    drawn = figure.read_text(encoding="utf-8")
    # The whole title, and no colour but those that turn with the reader's paper.
    assert "Error in clicks per session" in drawn
    used = set(re.findall(r"#[0-9a-f]{6}\b", drawn.lower()))
    assert used <= {*LIGHT.values(), *DARK.values(), "#000000"}


def test_pairs_of_one_log_are_no_independent_tries(estimates):
    def rows(seed, high):
        values = {"ips": [0.1, -1.0, high]}
        row = {"truth": 0.0, "seed": seed, "verdict": "cannot tell", "contradicted": False}
        return [{"new": f"{n}", "old": "", "estimates": values, **row} for n in range(50)]

    # One log covers fifty times, the other never: two tries, and not a hundred.
    ((name, *_, covered, _, _, _), _) = estimates.table([*rows(0, 1.0), *rows(1, -0.5)])
    assert (name, covered) == ("ips", "50.0% ± 50.0%")


def test_a_list_of_another_length_is_refused(estimates, capsys):
    with pytest.raises(SystemExit):
        estimates.main(["--sessions", "10,20,30", "--seeds", "3,1"])
    assert "expected one number, or 3" in capsys.readouterr().err
