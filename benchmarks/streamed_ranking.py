"""Ranking features larger than memory: peak memory and time, from one to ten million documents.

    python -m benchmarks.streamed_ranking [FOLDER] [--documents 1,3,10] [--shuffled] [--spark]

Documents have 33 features and stand by their hundreds, query by query, or in no order. The run is
then evaluated on a thousand judged queries. Every run is a process of its own: `dualrank rank` with
a linear ranker and with the default network of random weights. `at once` is what took all documents
into memory (`read_features`, `predict`, `write_run`), and is measured up to one million
(`--at-once`). Files are written to FOLDER and kept.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

import dualrank as dr
from benchmarks.limited_memory import run_limited
from dualrank.data.scaling import Scaler
from dualrank.learning.model import Model

FEATURES, BLOCK, OF_A_QUERY, JUDGED = 33, 250_000, 100, 1_000
NAMES = tuple(f"f{number}" for number in range(FEATURES))
AT_ONCE = """
import sys
from pathlib import Path
from dualrank.data.features import read_features
from dualrank.data.runs import write_run
from dualrank.learning.model import Model
model = Model.load(sys.argv[1])
data = read_features(sys.argv[2], count=model.scaler.input_count, names=model.feature_names)
write_run(Path(sys.argv[3]), data, model.predict(data))
"""


def make_features(path: Path, documents: int, *, shuffled: bool) -> None:
    """Write features where there are none of this name."""
    if path.exists():
        return
    rng = np.random.default_rng(0)
    queries = documents // OF_A_QUERY
    unfinished = path.with_suffix(".unfinished")
    writer = None
    for start in range(0, documents, BLOCK):
        rows = np.arange(start, min(start + BLOCK, documents))
        query = rng.integers(0, queries, len(rows)) if shuffled else rows // OF_A_QUERY
        matrix = rng.normal(size=(len(rows), FEATURES)).astype(np.float32)
        ids = {"query_id": pa.array(query).cast(pa.string())}
        ids["doc_id"] = pa.array(rows).cast(pa.string())
        table = pa.table({**ids, **dict(zip(NAMES, matrix.T, strict=True))})
        writer = writer or pq.ParquetWriter(unfinished, table.schema, compression="zstd")
        writer.write_table(table)
    assert writer is not None
    writer.close()
    unfinished.rename(path)


def make_judged(path: Path, features: Path) -> None:
    """The first thousand queries, with grades."""
    with pq.ParquetFile(features) as file:
        rows = next(file.iter_batches(JUDGED * OF_A_QUERY))
    grades = np.random.default_rng(2).integers(0, 3, len(rows)).astype(np.float32)
    pq.write_table(pa.Table.from_batches([rows]).append_column("grade", [grades]), path)


def make_model(path: Path, settings: dr.Linear | dr.DNN) -> None:
    """A ranker of random weights."""
    sample = np.random.default_rng(1).normal(size=(2_000, FEATURES)).astype(np.float32)
    ranker = settings.build(FEATURES, seed=0)
    for weight in ranker.weights:
        weight.normal_(0, 0.1, generator=torch.Generator().manual_seed(0))
    model = Model(ranker, Scaler.fit(sample), feature_names=NAMES, kind=settings.kind)
    model.save(path)


def measured(what: str, documents: int, command: list[str]) -> None:
    """Run a command and print a line about it."""
    before = _processor_seconds()
    found = run_limited(command)
    if found.returncode:
        sys.exit(found.output)
    busy = _processor_seconds() - before
    print(
        f"{documents / 1e6:4g} million  {what:26} {found.seconds:7.1f} s"
        f"  {busy:7.1f} s of processor  {documents / busy / 1e3:5.0f} thousand/s of it"
        f"  {found.peak / 2**20:6.0f} MiB",
        flush=True,
    )


def _processor_seconds() -> float:
    """Of all processes that have ended: on a shared machine they tell more than the clock."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--documents", default="1,3,10", help="Millions, separated by commas.")
    parser.add_argument("--at-once", type=float, default=1.0, help="Up to so many million.")
    parser.add_argument("--shuffled", action="store_true", help="Rows in no order too.")
    parser.add_argument("--spark", action="store_true", help="Spark too, on two cores.")
    asked = parser.parse_args()
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="streamed-ranking-"))
    folder.mkdir(parents=True, exist_ok=True)
    for kind, settings in (("linear", dr.Linear()), ("network", dr.DNN())):
        make_model(folder / kind, settings)
    for millions in map(float, asked.documents.split(",")):
        documents = int(millions * 1e6)
        for order in ("sorted", "shuffled") if asked.shuffled else ("sorted",):
            path = folder / f"{order}-{millions:g}.parquet"
            make_features(path, documents, shuffled=order == "shuffled")
            for kind in ("linear", "network") if order == "sorted" else ("linear",):
                words = [str(folder / kind), str(path)]
                out = folder / "scores.parquet"
                rank = [sys.executable, "-m", "dualrank", "rank", *words, "--force", "--out"]
                if millions <= asked.at_once:
                    once = [sys.executable, "-c", AT_ONCE, *words, str(out)]
                    measured(f"{kind}, {order}, at once", documents, once)
                measured(f"{kind}, {order}", documents, [*rank, str(out)])
                print(f"{'':14}{out.stat().st_size / documents:.1f} bytes a document")
                if order == "sorted" and kind == "linear":
                    make_judged(folder / "judged.parquet", path)
                    command = [sys.executable, "-m", "dualrank", "evaluate", str(out)]
                    judged = [*command, str(folder / "judged.parquet"), "--metrics", "ndcg@10"]
                    measured("evaluate on 1,000 queries", documents, judged)
                if asked.spark and order == "sorted":
                    began = time.perf_counter()
                    spark = [
                        *rank,
                        str(folder / "run"),
                        "--engine",
                        "spark",
                        "--master",
                        "local[2]",
                    ]
                    subprocess.run(spark, check=True, capture_output=True)
                    print(f"{'':18}{kind}, on Spark, {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
