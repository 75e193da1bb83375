"""A click log of any size, in parts on disk, and features of its documents.

Run as `python -m benchmarks.many_rows FOLDER [--sessions 100_000_000] [--new-lists]`: a million
sessions a part, ten rows a session, about 45 MB of Parquet each. 200,000 queries have twenty
documents each, with 33 features, and five rankings, which sessions show by the popularity of their
queries; with `--new-lists` every session shows an order of its own. Users look at position k with
probability 1/k, and click what is relevant, which is linear in the features. Parts that are there
are kept, so that a log grows, and a log of its first parts is a smaller one.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

QUERIES, CANDIDATES, RANKINGS, DEPTH, FEATURES = 200_000, 20, 5, 10, 33
PART = 1_000_000
EXAMINATION = 1 / np.arange(1, DEPTH + 1)


class ManyRows:
    """The queries, their documents, and how sessions come about."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.features = rng.normal(size=(QUERIES * CANDIDATES, FEATURES)).astype(np.float32)
        weights = rng.normal(size=FEATURES) / np.sqrt(FEATURES)
        score = (self.features @ weights.astype(np.float32)).reshape(QUERIES, CANDIDATES)
        self.relevance = (1 / (1 + np.exp(1.5 - 1.5 * score))).astype(np.float32)
        noisy = score[:, None] + rng.normal(size=(QUERIES, RANKINGS, CANDIDATES))
        self.rankings = np.argsort(-noisy, axis=2)[:, :, :DEPTH].astype(np.int8)
        popularity = 1 / (100 + np.arange(QUERIES))
        self._cumulative = np.cumsum(popularity / popularity.sum())

    def part(self, number: int, *, new_lists: bool) -> pa.Table:
        """The rows of a million sessions."""
        rng = np.random.default_rng([1, number])
        query = np.searchsorted(self._cumulative, rng.random(PART)).clip(max=QUERIES - 1)
        if new_lists:
            shown = np.argsort(rng.random((PART, CANDIDATES), dtype=np.float32), axis=1)[:, :DEPTH]
        else:
            shown = self.rankings[query, rng.integers(RANKINGS, size=PART)]
        chance = self.relevance[query[:, None], shown] * EXAMINATION
        session = np.arange(PART, dtype=np.int64) + number * PART
        document = (query[:, None] * CANDIDATES + shown).astype(np.int32)
        return pa.table(
            {
                "session_id": np.repeat(session, DEPTH),
                "query_id": np.repeat(query.astype(np.int32), DEPTH),
                "doc_id": document.reshape(-1),
                "position": np.tile(np.arange(1, DEPTH + 1, dtype=np.int8), PART),
                "clicked": (rng.random(chance.shape) < chance).reshape(-1),
            }
        )

    def documents(self) -> pa.Table:
        """The features of all documents."""
        named: dict[str, NDArray[np.generic]] = {
            "query_id": np.repeat(np.arange(QUERIES, dtype=np.int32), CANDIDATES),
            "doc_id": np.arange(QUERIES * CANDIDATES, dtype=np.int32),
        }
        columns = {f"f{number}": self.features[:, number] for number in range(FEATURES)}
        return pa.table({**named, **columns})


def make(folder: Path, sessions: int, *, new_lists: bool = False) -> list[Path]:
    """The parts of a log of so many sessions, made where they are not there."""
    world, files = ManyRows(), []
    folder.mkdir(parents=True, exist_ok=True)
    features = folder / "features.parquet"
    if not features.exists():
        _write(world.documents(), features)
    for number in range(sessions // PART):
        path = folder / ("new" if new_lists else "repeated") / f"{number:04d}.parquet"
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            _write(world.part(number, new_lists=new_lists), path)
        files.append(path)
    return files


def _write(table: pa.Table, path: Path) -> None:
    temporary = path.with_suffix(".part")
    pq.write_table(table, temporary, compression="zstd")
    os.replace(temporary, path)


def main() -> None:
    """Make a log."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sessions", type=int, default=100_000_000)
    parser.add_argument("--new-lists", action="store_true")
    options = parser.parse_args()
    files = make(options.folder, options.sessions, new_lists=options.new_lists)
    size = sum(file.stat().st_size for file in files)
    print(f"{len(files)} parts, {len(files) * PART * DEPTH:,} rows, {size / 1e9:.1f} GB")


if __name__ == "__main__":
    main()
