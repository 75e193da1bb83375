"""`python -m tests.fuzz`: mutate every kind of file that dualrank reads, and read it.

Whatever a file holds, it is read as what it says or refused by a sentence: no traceback, no hang,
no dead process, no memory without bounds. An attack that was interrupted goes on; after a change
of the sources it begins anew. Exit code 1 tells of faults.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import shutil
import sys
import time
from pathlib import Path

import numba

from .account import Account
from .attack import attack
from .formats import FORMATS
from .seeds import build
from .workers import SECONDS, Settings, read_all

LATE_IMPORTS = (
    *("duckdb", "lightgbm", "numba", "pandas", "pyarrow.acero", "pyarrow.dataset"),
    *("pyarrow.json", "selectolax.lexbor", "tantivy"),
    *("warcio.archiveiterator", "dualrank.data.letor.parser", "dualrank.data.log.read_log"),
    *("dualrank.data.features", "dualrank.engines.targets", "dualrank.learning.fit"),
)
"""What readers import when they first need it, and every worker would again."""


def main() -> int:
    """Attack, and say what held."""
    asked = _asked()
    out: Path = asked.out
    names = asked.formats or list(FORMATS)
    unknown = [name for name in names if name not in FORMATS]
    if unknown:
        print(f"there is no format {unknown[0]!r}; there are {', '.join(FORMATS)}")
        return 2
    settings = Settings(out / "seeds", out / "scratch", asked.seed, asked.seconds)
    if asked.only is not None:
        return _once(asked.only, settings)
    account = Account(out)
    if asked.table:
        print(account.table() + "\n" + account.places(), end="")
        return int(account.faults > 0)
    if account.begin(asked.seed):
        shutil.rmtree(settings.seeds, ignore_errors=True)
    for module in LATE_IMPORTS:
        importlib.import_module(module)
    # Half a second, which every worker would take again: the first kernel sets up the compiler.
    numba.njit(lambda number: number)(0)
    _build(settings.seeds)
    missing = [
        (name, number)
        for name in names
        for number in range(asked.mutations)
        if (name, number) not in account.rows
    ]
    started = time.monotonic()
    for done, (name, number, verdict, folder) in enumerate(
        read_all(iter(missing), settings, asked.processes), 1
    ):
        account.add(name, number, verdict, folder)
        if sys.stderr.isatty() and (done % 100 == 0 or done == len(missing)):
            seconds = time.monotonic() - started
            shown = (
                f"{done:,} of {len(missing):,}, {seconds:.0f} s, {account.faults} faults, {name}"
            )
            print(f"\r{shown:<78}", end="", file=sys.stderr, flush=True)
    shutil.rmtree(settings.scratch, ignore_errors=True)
    print(account.table() + "\n" + account.places(), end="")
    return int(account.faults > 0)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the seed of all mutations")
    parser.add_argument("--mutations", type=int, default=1_000, help="of each format")
    parser.add_argument("--formats", nargs="*", help="only these")
    parser.add_argument("--out", type=Path, default=Path("runs/fuzz"), help="where files go")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="at a time")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="that a reading may take")
    parser.add_argument("--only", metavar="FORMAT:NUMBER", help="one mutation, in this process")
    parser.add_argument("--table", action="store_true", help="print what was found, and leave")
    return parser.parse_args()


def _once(only: str, settings: Settings) -> int:
    """One mutation again, with its file left to be looked at."""
    name, _, number = only.partition(":")
    _build(settings.seeds)
    folder = settings.scratch / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(settings.seeds / name, folder)
    before = repr(FORMATS[name].read(folder))
    print(
        folder, attack(name, settings.seeds, folder, before, settings.seed, int(number)), sep="\n"
    )
    return 0


def _build(seeds: Path) -> None:
    """In a process of its own: workers are forked from one that has started no threads."""
    if seeds.exists():
        return
    unfinished = seeds.with_name("unfinished-seeds")
    shutil.rmtree(unfinished, ignore_errors=True)
    process = multiprocessing.get_context("fork").Process(target=build, args=(unfinished,))
    process.start()
    process.join()
    if process.exitcode != 0:
        raise SystemExit("the whole files could not be written")
    unfinished.rename(seeds)


if __name__ == "__main__":
    sys.exit(main())
