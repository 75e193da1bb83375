"""A short slice of the attack on every file that dualrank reads; `make fuzz` is all of it."""

import subprocess
import sys
from pathlib import Path

import pytest

from .formats import FORMATS

# Logs are read by a database, which takes some tenths of a second to begin.
SLOW = [name for name in FORMATS if name.startswith(("log", "ubi", "interleaved"))]
QUICK = [name for name in FORMATS if name not in SLOW]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Where whole files lie: they are written once for both halves."""
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize(("names", "mutations"), [(SLOW, 2), (QUICK, 12)], ids=["logs", "others"])
def test_mutated_files_are_read_or_refused_by_a_sentence(names, mutations, out):
    limits = ["--mutations", mutations, "--processes", 1, "--seconds", 60]
    asked = [*limits, "--out", out, "--formats", *names]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *map(str, asked)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"| {name} | {mutations} |" in done.stdout for name in names)
