"""Reading LETOR text against scikit-learn, from the cache against from the text, and in memory.

Run as `python -m benchmarks.letor_reading`. Every figure is a ratio of two measurements taken in
turn in the same run on one thread, and the median of such pairs. The kernels are compiled
beforehand, and the first reading includes writing the cache.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from dualrank.data.dataset import Dataset
from dualrank.data.letor.reader import read_letor
from dualrank.data.letor.writer import write_letor

DOCUMENTS_PER_QUERY = 24


def seconds(task: Callable[[], object]) -> float:
    """The time that one call takes."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def report(name: str, ratios: list[float], limit: float, *, at_least: bool) -> bool:
    """Print the median of ratios and whether it keeps to the limit."""
    ratio = float(np.median(ratios))
    holds = ratio >= limit if at_least else ratio < limit
    low, high = np.quantile(ratios, [0.25, 0.75])
    print(
        f"{name:<58}{ratio:9.4g} × (quartiles {low:.4g} to {high:.4g})   "
        f"{'at least' if at_least else 'below'} {limit:g} ×: {'holds' if holds else 'FAILS'}"
    )
    return holds


def write_text(path: Path, documents: int, features: int, *, doc_ids: bool) -> None:
    """Dense text with six decimals, as the public sets have them."""
    rng = np.random.default_rng(0)
    data = Dataset.from_arrays(
        np.round(rng.random((documents, features)), 6),
        np.arange(documents) // DOCUMENTS_PER_QUERY,
        rng.integers(0, 5, documents),
        doc_ids=[f"GX{i:03d}-86-{i:07d}" for i in range(documents)] if doc_ids else None,
    )
    write_letor(data, path)
    # A file that changed just now would be compared by content instead of by time.
    an_hour_ago = time.time() - 3600
    os.utime(path, (an_hour_ago, an_hour_ago))


def forget(path: Path) -> None:
    """Remove the cache of a file."""
    shutil.rmtree(path.with_name(path.name + ".dualrank-cache"), ignore_errors=True)


def against_scikit_learn(path: Path, name: str, repetitions: int = 5) -> bool:
    """How many times faster the first reading is, and whether the values are equal."""
    ratios = []
    for _ in range(repetitions):
        forget(path)
        ours = seconds(lambda: read_letor(path))
        ratios.append(seconds(lambda: load_svmlight_file(str(path), query_id=True)) / ours)
    matrix, grades, _ = load_svmlight_file(str(path), query_id=True)
    data = read_letor(path)
    equal = np.array_equal(data.features, matrix.toarray().astype(np.float32))
    equal &= np.array_equal(data.require_grades(), grades)
    holds = report(f"load_svmlight_file / read_letor, {name}", ratios, 10, at_least=True)
    print(f"{'':<58}values equal to float32(load_svmlight_file): {equal}")
    return holds and equal


def second_against_first(path: Path, name: str, repetitions: int = 9) -> bool:
    """The time of reading from the cache as a share of reading from the text."""
    ratios = []
    for _ in range(repetitions):
        forget(path)
        first = seconds(lambda: read_letor(path))
        ratios.append(seconds(lambda: read_letor(path)) / first)
    return report(f"second / first reading, {name}", ratios, 0.01, at_least=False)


def memory_against_matrix(path: Path, name: str, repetitions: int = 3) -> bool:
    """Peak memory of reading and then touching every value, as a share of the matrix."""
    ratios = []
    for _ in range(repetitions):
        forget(path)
        command = [sys.executable, "-m", "benchmarks.letor_reading", "--memory", str(path)]
        ratios.append(float(subprocess.run(command, check=True, capture_output=True).stdout))
    return report(f"peak memory / matrix, {name}", ratios, 1.3, at_least=False)


def measure_memory(path: Path) -> float:
    """In a process of its own: what the peak adds to what was in use before the reading."""
    with tempfile.TemporaryDirectory() as folder:
        write_text(Path(folder) / "small.txt", 100, 3, doc_ids=True)
        read_letor(Path(folder) / "small.txt", cache=False)
    before = memory("VmRSS")
    data = read_letor(path)
    data.features.max()
    return (memory("VmHWM") - before) / data.features.nbytes


def memory(kind: str) -> int:
    """Bytes in use now (VmRSS) or at the peak (VmHWM), as Linux counts them.

    `getrusage` would also count the peak of the process that started this one.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(kind))


def main() -> None:
    """Print each ratio; exit with 1 if a limit does not hold."""
    if sys.argv[1:2] == ["--memory"]:
        print(measure_memory(Path(sys.argv[2])))
        return
    with tempfile.TemporaryDirectory() as folder:
        texts = {
            "700 features": (Path(folder) / "wide.txt", 700, 4_000),
            "46 features with document ids": (Path(folder) / "narrow.txt", 46, 60_000),
        }
        holds = []
        for name, (path, features, documents) in texts.items():
            write_text(path, documents, features, doc_ids=features == 46)
            read_letor(path, cache=False)
            holds.append(against_scikit_learn(path, name))
        for name, (path, features, documents) in texts.items():
            write_text(path, documents * 6, features, doc_ids=features == 46)
            size = f"{path.stat().st_size / 1e6:.0f} MB of text"
            holds.append(second_against_first(path, f"{name}, {size}"))
            holds.append(memory_against_matrix(path, name))
    sys.exit(not all(holds))


if __name__ == "__main__":
    main()
