"""A log of thirty days, reduced day by day: what a day costs to add, and what their sum to read.

Run as `python -m benchmarks.days_of_log [SHARE]`: thirty days, which together are SHARE (0.3 unless
given) of the log of `benchmarks.log_reduction`. Every day is reduced and added by a process of its
own, as `dualrank reduce --append` does it, with its processor time and the peak of its memory; so
are all days at once. Reading is compared with that of one reduced log, and what is read is equal.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.log_reduction import paper_log
from dualrank.data.click_log import ClickLog
from dualrank.data.log.long import long_tables
from dualrank.data.log.read_log import read_log

DAYS, SHARE = 30, 0.3
REPETITIONS = 5
MEASURED = """
import sys, time
from benchmarks.letor_reading import memory
{work}
print(time.process_time() - before, memory("VmHWM") / 2**20)
"""
COMMAND = """
import dualrank.data.log.days, dualrank.data.log.read_log
from dualrank.cli.app import app
before = time.process_time()
app(sys.argv[1:] + ["--json"], standalone_mode=False)
"""
READING = """
from dualrank.data.log.read_log import read_log
before = time.process_time()
read_log(sys.argv[1], periods=int(sys.argv[2]))
"""


def measured(work: str, *words: object) -> tuple[float, float]:
    """Processor seconds of this work in a new process, and the mebibytes at its peak."""
    command = [sys.executable, "-c", MEASURED.format(work=work), *map(str, words)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, mebibytes = done.stdout.splitlines()[-1].split()
    return float(seconds), float(mebibytes)


def write_days(folder: Path, share: float) -> list[Path]:
    """The log of each day as Parquet; a session is of one day."""
    data, log = paper_log(share)
    rng = np.random.default_rng(0)
    files, before, left = [], 0, log.counts.copy()
    for day in range(DAYS):
        rest = DAYS - day
        counts = rng.binomial(left, 1 / rest)
        left -= counts
        rows = np.flatnonzero(counts)
        part = log.take_rows(rows)
        part = ClickLog(part.lists, part.list_of, part.clicks, counts[rows])
        files.append(folder / f"2026-10-{day + 1:02}.parquet")
        table = pa.concat_tables(long_tables(part, data.catalogue, rng))
        sessions = pc.add(table["session_id"], before)
        pq.write_table(table.set_column(0, "session_id", sessions), files[-1], compression="zstd")
        before += part.sessions
    return files


def row(
    name: str, values: Sequence[tuple[float, float]], unit: Sequence[tuple[float, float]]
) -> str:
    """A line of the table: medians, and how often they hold those of something else."""
    seconds, mebibytes = np.median(np.array(values), axis=0)
    base = np.median(np.array(unit), axis=0)
    return (
        f"| {name} | {seconds:.2f} s | {mebibytes:.0f} MiB | {seconds / base[0]:.2f} × | "
        f"{mebibytes / base[1]:.2f} × |"
    )


def equal(one: ClickLog, other: ClickLog) -> bool:
    """Whether two logs are the same, row by row."""
    names = ("list_of", "clicks", "counts")
    same = [np.array_equal(getattr(one, name), getattr(other, name)) for name in names]
    same.append(np.array_equal(one.lists.documents, other.lists.documents))
    assert one.catalogue is not None
    assert other.catalogue is not None
    same.append(np.array_equal(one.catalogue.doc_ids, other.catalogue.doc_ids))
    return all(same)


def main() -> None:
    """Print what was measured; exit with 1 if the sum is another log than the whole."""
    share = float(sys.argv[1]) if len(sys.argv) > 1 else SHARE
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "clicks").mkdir()
        files, log, whole = (
            write_days(folder / "clicks", share),
            folder / "log",
            folder / "w.parquet",
        )
        added = [measured(COMMAND, "reduce", file, "--append", log) for file in files]
        at_once = [
            measured(COMMAND, "reduce", folder / "clicks", "--periods", 0, "--out", whole)
            for _ in range(REPETITIONS)
        ]
        sums = [measured(READING, log, 0) for _ in range(REPETITIONS)]
        cut = [measured(READING, log, 4) for _ in range(REPETITIONS)]
        single = [measured(READING, whole, 4) for _ in range(REPETITIONS)]
        days, one = read_log(log, periods=0), read_log(whole)
        same = equal(days, one)
        sizes = sum(file.stat().st_size for file in log.glob("*.parquet")), whole.stat().st_size
    print(
        f"{days.sessions:,} sessions of {DAYS} days, {len(days.lists):,} lists, "
        f"{len(days.counts):,} patterns; the sum of days {'equals' if same else 'DIFFERS FROM'} "
        f"the whole; files of {sizes[0] / 1e6:.1f} and {sizes[1] / 1e6:.1f} MB"
    )
    print("| | processor | memory | ratio | ratio |\n|---|---|---|---|---|")
    print(row("adding days 1 to 5", added[:5], added[:5]))
    print(row("adding days 26 to 30, against days 1 to 5", added[-5:], added[:5]))
    print(row("reducing 30 days at once, against days 26 to 30", at_once, added[-5:]))
    print(row("reading one reduced log", single, single))
    print(row("reading the folder of 30 days, against one", sums, single))
    print(row("reading it cut into 4 periods, against one", cut, single))
    sys.exit(not same)


if __name__ == "__main__":
    main()
