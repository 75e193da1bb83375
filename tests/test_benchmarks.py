"""Benchmarks are run rarely: that they still start is tested often."""

import importlib
from pathlib import Path

import pytest

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
