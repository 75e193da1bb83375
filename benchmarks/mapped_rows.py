"""Rows taken from a mapped matrix: a plain .npy file, an Arrow file, and an array in memory.

Run as `python -m benchmarks.mapped_rows FOLDER [--rows 10_000_000]`: the files are written first,
unless they are there, and are kept. Timed is what a step of training takes, 2,560 rows of 33
features: those of 256 queries, which lie together by ten, and rows that lie anywhere.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from benchmarks.timing import seconds

FEATURES, QUERIES, TOGETHER = 33, 256, 10
BLOCK = 1 << 16
TIMES = 100


def write(folder: Path, rows: int) -> None:
    """The same random matrix in both formats."""
    folder.mkdir(parents=True, exist_ok=True)

    def blocks() -> Iterator[NDArray[np.float32]]:
        rng = np.random.default_rng(0)
        sizes = [min(BLOCK, rows - start) for start in range(0, rows, BLOCK)]
        return (rng.standard_normal((size, FEATURES), dtype=np.float32) for size in sizes)

    path = folder / "rows.npy"
    if not path.exists():
        written = np.lib.format.open_memmap(path, "w+", np.float32, (rows, FEATURES))
        for number, block in enumerate(blocks()):
            written[number * BLOCK : number * BLOCK + len(block)] = block
    path = folder / "rows.arrow"
    if not path.exists():
        schema = pa.schema([("x", pa.list_(pa.float32(), FEATURES))])
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
            for block in blocks():
                flat = pa.array(block.reshape(-1))
                column = pa.FixedSizeListArray.from_arrays(flat, FEATURES)
                writer.write_batch(pa.record_batch([column], schema=schema))


@numba.njit(nogil=True)
def copy(values: NDArray[np.float32], rows: NDArray[np.int64], out: NDArray[np.float32]) -> None:
    """Row after row, as `learning/sharded/own_shards.py` does."""
    for i in range(len(rows)):
        for k in range(values.shape[1]):
            out[i, k] = values[rows[i], k]


def main() -> None:
    """Print microseconds of every way."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    asked = parser.parse_args()
    write(asked.folder, asked.rows)
    torch.set_num_threads(1)
    mapped = np.asarray(np.load(asked.folder / "rows.npy", mmap_mode="r"))
    memory = torch.from_numpy(np.array(mapped))
    column = pa.ipc.open_file(pa.memory_map(str(asked.folder / "rows.arrow"))).read_all()["x"]
    out = np.empty((QUERIES * TOGETHER, FEATURES), np.float32)
    ways: dict[str, tuple[Callable[[NDArray[np.int64]], object], int]] = {
        ".npy, copied by numba": (lambda rows: copy(mapped, rows, out), TIMES),
        ".npy, numpy.take": (lambda rows: np.take(mapped, rows, axis=0, out=out), TIMES),
        "Arrow file, take": (lambda rows: column.take(pa.array(rows)), TIMES // 10),
        "in memory, torch.index_select": (
            lambda rows: torch.index_select(memory, 0, torch.from_numpy(rows)),
            TIMES,
        ),
    }
    rng = np.random.default_rng(1)
    print(f"{'microseconds':<32}{'together':>12}{'anywhere':>12}")
    for name, (way, times) in ways.items():
        medians = []
        for together in (True, False):
            first = rng.integers(asked.rows // TOGETHER, size=(times, QUERIES, 1)) * TOGETHER
            drawn = (first + np.arange(TOGETHER)).reshape(times, -1)
            if not together:
                drawn = rng.integers(asked.rows, size=drawn.shape)
            way(drawn[0])
            medians.append(np.median([seconds(partial(way, rows)) for rows in drawn]))
        print(f"{name:<32}" + "".join(f"{1e6 * each:12,.0f}" for each in medians))


if __name__ == "__main__":
    main()
