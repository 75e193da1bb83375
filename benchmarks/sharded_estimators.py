"""What estimating costs on a log in shards, by sessions and by distinct pairs.

Run as `python -m benchmarks.sharded_estimators [--sessions 1 3 10] [--queries 20 60 200]`, in
millions and in thousands: first more and more sessions on the lists of the same queries, then more
and more queries with sessions in proportion. Every query has twenty documents and three rankings of
ten, clicks are those of a dynamic Bayesian network, and logs are cut into 16 shards. Each task runs
in a process of its own, with one thread, which says how many seconds of a processor it took without
its start, and how much memory of its own (no page cache) beyond that. Printed are

- `propensity`: harvesting by all pairs, and pbm, with 400 resamples;
- `clicks fit`: what counting takes once, and one iteration of EM, of pbm and of dbn;
- `diagnose`, with features, where half of the shards fit: what they were planned to take in memory,
  and what they took.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dualrank.clicks.models.em import EM
from dualrank.clicks.models.registry import click_model
from dualrank.data.catalogue import Catalogue
from dualrank.data.click_log import ClickLog
from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists
from dualrank.data.log.reading_report import ReadingReport
from dualrank.data.log_parts import LogParts
from dualrank.data.shards.sharded_log import ShardedLog
from dualrank.data.shards.splitting import write_shards
from dualrank.data.shards.whole_shards import bytes_of
from dualrank.diagnostics.diagnosis import diagnose
from dualrank.propensity.estimators import estimate
from dualrank.propensity.grouped_parts import grouped_clicks

CANDIDATES, RANKINGS, DEPTH, SHARDS = 20, 3, 10, 16
AT_ONCE = 500_000
ITERATIONS = 10


def logged(queries: int, sessions: int) -> ClickLog:
    """Sessions of users who read from the top, on three rankings of every query."""
    rng = np.random.default_rng(0)
    order = np.argsort(rng.random((queries * RANKINGS, CANDIDATES)), axis=1)[:, :DEPTH]
    query = np.repeat(np.arange(queries), RANKINGS)
    shown = (order + CANDIDATES * query[:, None]).astype(np.int32)
    lists = RankedLists(shown, query.astype(np.int32))
    attraction = rng.beta(1, 6, queries * CANDIDATES).astype(np.float32)
    names = np.array([f"d{n}" for n in range(queries * CANDIDATES)], dtype=object)
    catalogue = Catalogue(
        np.array([f"q{n}" for n in range(queries)], dtype=object),
        names,
        np.repeat(np.arange(queries), CANDIDATES),
    )
    whole = ClickLog.from_clicks(lists, np.arange(len(query)), np.zeros((len(query), DEPTH), bool))
    for start in range(len(query), sessions, AT_ONCE):
        size = min(AT_ONCE, sessions - start)
        list_of = rng.integers(len(query), size=size)
        clicks = rng.random((size, DEPTH), dtype=np.float32) < attraction[shown[list_of]]
        stays = rng.random((size, DEPTH), dtype=np.float32) < np.where(clicks, 0.5, 0.9)
        clicks[:, 1:] &= np.logical_and.accumulate(stays, axis=1)[:, :-1]
        whole = ClickLog.from_clicks(
            lists,
            np.append(whole.list_of, list_of),
            np.concatenate([whole.clicks, clicks]),
            np.append(whole.counts, np.ones(size, dtype=np.int64)),
        )
    clicked = int(whole.clicks_per_list.sum())
    reading = ReadingReport("made up", sessions * DEPTH, sessions, sessions, clicked)
    return ClickLog(lists, whole.list_of, whole.clicks, whole.counts, {}, catalogue, reading)


def featured(queries: int) -> Dataset:
    """33 features of all documents, which tell nothing."""
    documents = queries * CANDIDATES
    features = np.random.default_rng(1).normal(size=(documents, 33)).astype(np.float32)
    return Dataset.from_arrays(features, np.repeat(np.arange(queries), CANDIDATES))


@contextmanager
def measured() -> Iterator[dict[str, float]]:
    """Seconds of a processor that a block takes, and megabytes of its own at most."""
    found: dict[str, float] = {}
    before, peak, ended = own_memory(), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not ended.wait(0.02):
            peak = max(peak, own_memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    # Of this thread: other work on the machine does not count.
    began = time.thread_time()
    try:
        yield found
    finally:
        found["seconds"] = time.thread_time() - began
        ended.set()
        watcher.join()
        found["megabytes"] = max(peak - before, 0) / 1e6


def own_memory() -> int:
    """Bytes of this process that are not the page cache's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def estimated(method: str) -> Callable[[LogParts], dict[str, float]]:
    """The task of one estimator."""

    def task(parts: LogParts) -> dict[str, float]:
        with measured() as found:
            estimate(grouped_clicks(parts), method)
        return found

    return task


def iterated(model: str) -> Callable[[LogParts], dict[str, float]]:
    """The task of one click model: seconds of an iteration, and of all that is done once."""

    def fit(parts: LogParts, iterations: int) -> dict[str, float]:
        with measured() as found:
            click_model(model, em=EM(iterations, 0.0, accelerated=False)).fit(parts)
        return found

    def task(parts: LogParts) -> dict[str, float]:
        few, many = fit(parts, 2), fit(parts, 2 + ITERATIONS)
        one = (many["seconds"] - few["seconds"]) / ITERATIONS
        return {"seconds": one, "once": few["seconds"] - 2 * one, "megabytes": many["megabytes"]}

    return task


def diagnosed(parts: LogParts) -> dict[str, float]:
    """The task of a diagnosis that looks at half of the shards."""
    assert parts.sharded is not None
    shards = parts.sharded.shards
    room = sum(map(bytes_of, shards[: len(shards) // 2]))
    with measured() as found:
        diagnose(parts, budget=room)
    return {**found, "planned": room / 1e6}


TASKS = {
    "harvesting": estimated("harvest-all-pairs"),
    "pbm": estimated("pbm"),
    "pbm model": iterated("pbm"),
    "dbn model": iterated("dbn"),
}
WITH_FEATURES = {"diagnosis": diagnosed}


def run(folder: Path, tasks: Iterable[str]) -> dict[str, dict[str, float]]:
    """Some tasks on a log, each in a process of its own."""
    found = {}
    for task in tasks:
        command = [sys.executable, "-m", "benchmarks.sharded_estimators", "--task", task]
        done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=True)
        found[task] = json.loads(done.stdout)
    return found


def table(sizes: list[tuple[int, int]]) -> None:
    """A row for every log of so many queries and sessions."""
    print(
        f"{'sessions':>11} {'lists':>9} {'patterns':>10} {'pairs':>10} {'at places':>10}"
        f" {'harvest':>9} {'MB':>5} {'pbm':>8} {'MB':>5}"
        f" {'pbm it.':>8} {'once':>7} {'MB':>5} {'dbn it.':>8} {'once':>7} {'MB':>5}"
    )
    for queries, sessions in sizes:
        with tempfile.TemporaryDirectory() as scratch:
            sharded = write_shards(logged(queries, sessions), Path(scratch) / "log", SHARDS)
            found = run(sharded.folder, TASKS)
            shards = sharded.shards
            pairs = sum(len(np.unique(shard.pair_counts[:, 0])) for shard in shards)
            places = sum(shard.pairs_at_places for shard in shards)
            patterns = sum(shard.patterns for shard in shards)
        harvest, pbm, product, chain = (found[task] for task in TASKS)
        print(
            f"{sessions:>11,} {queries * RANKINGS:>9,} {patterns:>10,} {pairs:>10,} {places:>10,}"
            f" {harvest['seconds']:>7.2f} s {harvest['megabytes']:>5.0f}"
            f" {pbm['seconds']:>6.2f} s {pbm['megabytes']:>5.0f}"
            f" {1e3 * product['seconds']:>5.0f} ms {product['once']:>5.2f} s"
            f" {product['megabytes']:>5.0f}"
            f" {1e3 * chain['seconds']:>5.0f} ms {chain['once']:>5.2f} s"
            f" {chain['megabytes']:>5.0f}",
            flush=True,
        )


def diagnosis_table(sizes: list[tuple[int, int]]) -> None:
    """A row for every log of so many queries and sessions, with features."""
    print(f"{'sessions':>11} {'documents':>10} {'seconds':>9} {'planned MB':>11} {'taken MB':>9}")
    for queries, sessions in sizes:
        with tempfile.TemporaryDirectory() as scratch:
            features = featured(queries)
            log = logged(queries, sessions)
            sharded = write_shards(log, Path(scratch) / "log", SHARDS, features)
            found = run(sharded.folder, WITH_FEATURES)["diagnosis"]
        print(
            f"{sessions:>11,} {features.document_count:>10,} {found['seconds']:>7.1f} s"
            f" {found['planned']:>11.0f} {found['megabytes']:>9.0f}",
            flush=True,
        )


def main(arguments: Any = None) -> None:
    """Print both tables, or run one task and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sessions", type=float, nargs="+", default=[1, 3, 10])
    parser.add_argument("--queries", type=float, nargs="+", default=[20, 60, 200])
    parser.add_argument("--task", choices=[*TASKS, *WITH_FEATURES])
    parser.add_argument("folder", nargs="?")
    chosen = parser.parse_args(arguments)
    if chosen.task is not None:
        task = (TASKS | WITH_FEATURES)[chosen.task]
        with tempfile.TemporaryDirectory() as scratch:  # compiles
            small = write_shards(logged(50, 5_000), Path(scratch) / "log", 2, featured(50))
            task(LogParts.of(small))
        print(json.dumps(task(LogParts.of(ShardedLog.open(chosen.folder)))))
        return
    first = int(1_000 * chosen.queries[0])
    print(f"the lists of {first:,} queries")
    table([(first, int(1e6 * size)) for size in chosen.sessions])
    print("\nmore queries, with 50 sessions each")
    sizes = [(int(1_000 * size), int(50_000 * size)) for size in chosen.queries]
    table(sizes)
    print("\ndiagnose, on half of the shards, with 33 features")
    diagnosis_table(sizes[:2])


if __name__ == "__main__":
    main()
