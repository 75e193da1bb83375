"""A small slice of the attack on every file that dualrank reads; `make fuzz` is all of it."""

import subprocess
import sys
from pathlib import Path

from .formats import FORMATS

MUTATIONS = 5
SECONDS = 120
"""Limit of one reading, which takes some tenths of a second."""


def test_mutated_files_are_read_or_refused_by_a_sentence(tmp_path):
    limits = {"--mutations": MUTATIONS, "--processes": 1, "--seconds": SECONDS, "--out": tmp_path}
    options = [str(word) for option in limits.items() for word in option]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *options],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"| {name} | {MUTATIONS} |" in done.stdout for name in FORMATS)
