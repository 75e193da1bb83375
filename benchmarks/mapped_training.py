"""Steps of training on shards that are mapped, against the same lists in memory.

Run as `python -m benchmarks.mapped_training FOLDER [--lists 20_000_000] [--documents 10_000_000]
[--shards 8] [--limit 1] [--workers 2]`. No list repeats: every session shows an order of its own.
The folder is filled first, unless it is there, and is kept. It prints, each measured in a process
of its own:

- steps per second on the shards and in memory, in turn, with a warm page cache;
- the same training on the shards within `--limit` GiB: first with a warm page cache, then where
  the page cache, too, must do with that;
- the memory of each of some workers, against that of one.

The memory of a process is the most that it had of its own, and the pages of the shards that it has
mapped in the end.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from benchmarks.limited_memory import GIBIBYTE, run_limited
from dualrank.corrections import DualLearning
from dualrank.data.catalogue import Catalogue
from dualrank.data.click_log import ClickLog
from dualrank.data.lists import RankedLists
from dualrank.data.log.reading_report import ReadingReport
from dualrank.data.shards.shard_writing import ShardWriter, new_shards
from dualrank.data.shards.sharded_log import ShardedLog, is_sharded
from dualrank.learning import Labelled, Loop, workers_of_torchrun
from dualrank.learning.feedback import Feedback
from dualrank.learning.sharded.mapped_feedback import MappedClicks
from dualrank.learning.sharded.sharded_source import ShardedSource
from dualrank.rankers import DNN
from dualrank.settings import TrainingSettings

CANDIDATES, DEPTH, FEATURES = 20, 10, 33
BLOCK = 250_000
STEPS, ROUNDS = 200, 5


def make(folder: Path, lists: int, documents: int, shards: int) -> None:
    """Write a log of distinct lists in shards, a session on each."""
    folder.mkdir(parents=True, exist_ok=True)
    queries = documents // CANDIDATES // shards
    names = [f"feature {k}" for k in range(FEATURES)]
    with new_shards(folder, shards) as new:
        writer = ShardWriter(new, DEPTH, feature_count=FEATURES, feature_names=tuple(names))
        for number in range(shards):
            rng = np.random.default_rng([number, shards])
            writer.add(
                _shard(rng, lists // shards, queries, number),
                rng.standard_normal((queries * CANDIDATES, FEATURES), dtype=np.float32),
            )
            print(f"wrote shard {number + 1} of {shards}", file=sys.stderr)
        sessions = lists // shards * shards
        rows = DEPTH * sessions
        writer.finish(ReadingReport("made for this benchmark", rows, sessions, sessions, 0))


def _shard(rng: np.random.Generator, lists: int, queries: int, number: int) -> ClickLog:
    query = np.sort(rng.integers(queries, size=lists)).astype(np.int32)
    shown, clicks = np.empty((lists, DEPTH), np.int32), np.empty((lists, DEPTH), bool)
    for start in range(0, lists, BLOCK):
        rows = slice(start, start + BLOCK)
        order = rng.random((len(query[rows]), CANDIDATES), dtype=np.float32)
        top = np.argsort(order, axis=1)[:, :DEPTH]
        shown[rows] = query[rows, None] * CANDIDATES + top
        chance = 0.3 / np.arange(1, DEPTH + 1, dtype=np.float32)
        clicks[rows] = rng.random(top.shape, dtype=np.float32) < chance
    ids = np.array([f"q{number}-{q:08d}" for q in range(queries)], dtype=object)
    rows_of = np.arange(queries * CANDIDATES)
    docs = np.array([f"d{row % CANDIDATES:02d}" for row in rows_of], dtype=object)
    return ClickLog(
        RankedLists(shown, query),
        np.arange(lists, dtype=np.int32),
        clicks,
        np.ones(lists, np.int64),
        catalogue=Catalogue(ids, docs, rows_of // CANDIDATES),
    )


def loop_on(features: torch.Tensor, feedback: Feedback) -> Loop:
    """Dual learning of the default network."""
    settings = TrainingSettings()
    correction = DualLearning(DEPTH, settings)
    return Loop(DNN().build(features.shape[1]), features, feedback, correction, settings)


def on_shards(source: ShardedSource) -> Loop:
    """Steps on what is mapped."""
    scaler = source.scaler("standard")
    steps = TrainingSettings().suited().steps
    feedback = MappedClicks(source, scaler, steps, clicked_only=True)
    return loop_on(torch.empty(0, FEATURES), feedback)


def in_memory(source: ShardedSource) -> Loop:
    """Steps on arrays in memory: the same lists with their labels, and scaled features."""
    shards, scaler = source.log.shards, source.scaler("standard")
    documents = np.concatenate([shard.log.lists.documents for shard in shards])
    starts = np.repeat(
        np.append(0, np.cumsum([shard.documents for shard in shards])[:-1]),
        [shard.lists for shard in shards],
    )
    documents += starts[:, None].astype(np.int32)
    queries = np.zeros(len(documents), np.int32)
    labels = np.concatenate([shard.log.clicks for shard in shards])
    sessions = np.concatenate([shard.log.counts for shard in shards])
    features = np.empty((source.log.documents, FEATURES), np.float32)
    start = 0
    for shard in shards:
        features[start : start + shard.documents] = scaler.transform(shard.dataset.features)
        start += shard.documents
    return loop_on(
        torch.from_numpy(features), Labelled(RankedLists(documents, queries), labels, sessions)
    )


def rate(loop: Loop, steps: int = STEPS) -> float:
    """Steps per second."""
    began = time.perf_counter()
    for _ in range(steps):
        loop.step()
    return steps / (time.perf_counter() - began)


def compare(folder: Path) -> dict[str, float]:
    """Both kinds of steps in turn: the median of each, and of their ratio."""
    source = ShardedSource.of(ShardedLog.open(folder), 0.1, 0)
    mapped, memory = on_shards(source), in_memory(source)
    for each in (mapped, memory):
        rate(each, 20)
    rates = np.array([(rate(mapped), rate(memory)) for _ in range(ROUNDS)])
    low, middle, high = np.quantile(rates[:, 0] / rates[:, 1], [0.0, 0.5, 1.0])
    on, inside = np.median(rates, axis=0)
    return {"mapped": on, "memory": inside, "ratio": middle, "low": low, "high": high}


def alone(folder: Path, steps: int) -> dict[str, float]:
    """One of some workers, or one for all: how long it takes to begin, its steps, its memory."""
    began, most = time.perf_counter(), 0.0
    with workers_of_torchrun() as workers:
        source = ShardedSource.of(ShardedLog.open(folder, only=()), 0.1, 0)
        loop = on_shards(source)
        begun = time.perf_counter() - began
        most = _memory("anonymous", folder)
        found = rate(loop, steps)
        most = max(most, _memory("anonymous", folder))
        mapped = _memory("mapped", folder)
        return {
            "worker": workers.number,
            "begun": begun,
            "rate": found,
            "own": most,
            "mapped": mapped,
            "loss": float(loop._loss) / loop._drawn,
        }


def _memory(what: str, folder: Path) -> float:
    """GiB of this process: anonymous, or pages of the folder's files."""
    total, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, *words = line.split()
        if not name.endswith(":"):
            inside = str(folder) in line
        elif (what == "anonymous" and name == "Anonymous:") or (
            what == "mapped" and inside and name == "Rss:"
        ):
            total += int(words[0]) * 1024
    return total / GIBIBYTE


def run(
    folder: Path, part: str, limit: float | None = None, workers: int = 1
) -> list[dict[str, float]]:
    """A part of this benchmark in a process of its own, or several."""
    words = ["-m", "benchmarks.mapped_training", str(folder), "--part", part]
    if workers > 1:
        several = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(workers)]
        words = [*several, *words]
    size = None if limit is None else int(limit * GIBIBYTE)
    ended = run_limited([sys.executable, *words], size, environment={"OMP_NUM_THREADS": "1"})
    if ended.returncode or (limit is not None and not ended.is_limited):
        sys.exit(ended.output or "no limit of memory could be set here")
    return [json.loads(line) for line in ended.output.splitlines() if line.startswith("{")]


def warm(folder: Path, *, cold: bool = False) -> None:
    """Bring all files into the page cache, or out of it."""
    for path in sorted(folder.rglob("*.npy")):
        with path.open("rb") as file:
            if cold:
                os.sync()
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                continue
            while file.read(1 << 24):
                pass


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    for name, usual in (("lists", 20_000_000), ("documents", 10_000_000), ("shards", 8)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--limit", type=float, help="GiB")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--part", choices=("compare", "alone"))
    asked = parser.parse_args()
    parts: dict[str, Callable[[Path], dict[str, float]]] = {
        "compare": compare,
        "alone": lambda folder: alone(folder, ROUNDS * STEPS),
    }
    torch.set_num_threads(1)
    if asked.part:
        print(json.dumps(parts[asked.part](asked.folder)), flush=True)
        return
    if not is_sharded(asked.folder):
        make(asked.folder, asked.lists, asked.documents, asked.shards)
    log = ShardedLog.open(asked.folder)
    size = sum(path.stat().st_size for path in asked.folder.rglob("*.npy")) / GIBIBYTE
    print(f"{log.lists:,} lists, {log.documents:,} documents, {len(log.shards)} shards, ", end="")
    print(f"{size:.1f} GiB of arrays; load of the machine {os.getloadavg()[0]:.1f}")
    warm(asked.folder)
    (found,) = run(asked.folder, "compare")
    print(
        f"steps per second: {found['mapped']:.1f} on shards, {found['memory']:.1f} in memory, "
        f"ratio {found['ratio']:.2f} ({found['low']:.2f} to {found['high']:.2f})"
    )
    if asked.limit:
        warm(asked.folder)
        (found,) = run(asked.folder, "alone", asked.limit)
        print(f"within {asked.limit:g} GiB, warm: {_told(found)}")
        warm(asked.folder, cold=True)
        (found,) = run(asked.folder, "alone", asked.limit)
        print(f"within {asked.limit:g} GiB with the page cache: {_told(found)}")
    if asked.workers:
        warm(asked.folder)
        (one,) = run(asked.folder, "alone")
        several = run(asked.folder, "alone", workers=asked.workers)
        whole = one["own"] + one["mapped"]
        print(f"one worker: {_told(one)}")
        for each in several:
            share = (each["own"] + each["mapped"]) / whole
            print(f"worker {each['worker']} of {asked.workers}: {_told(each)}, {share:.2f} of one")


def _told(found: dict[str, float]) -> str:
    return (
        f"begins after {found['begun']:.0f} s, {found['rate']:.1f} steps per second, "
        f"{found['own']:.2f} GiB of its own and {found['mapped']:.2f} mapped"
    )


if __name__ == "__main__":
    main()
