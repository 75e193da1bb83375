"""Shards as files: each a reduced log of its own, its arrays, and the features of its documents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dualrank.data.catalogue import Catalogue
from dualrank.data.click_log import ClickLog
from dualrank.data.lists import PADDING
from dualrank.data.log.reading_report import ReadingReport
from dualrank.data.log.saved import write_log
from dualrank.data.shards.mapped_arrays import write_array
from dualrank.data.shards.shard import (
    CUMULATIVE,
    FEATURES,
    LOG,
    NAMES,
    OFFSETS,
    PAIR_COUNTS,
    STARTS,
)
from dualrank.data.shards.sharded_log import FORMAT, MANIFEST, ShardedLog, digest_of, shard_name
from dualrank.storage import sha256_of_file, write_text

NAMES_AT_ONCE = 1 << 16

Floats = NDArray[np.float32]


class ShardWriter:
    """Writes the shards of one log into an empty folder, and then the manifest."""

    def __init__(
        self,
        folder: Path,
        depth: int,
        *,
        feature_count: int | None = None,
        feature_names: tuple[str, ...] | None = None,
    ) -> None:
        self._folder, self._depth = folder, depth
        self._count, self._names = feature_count, feature_names
        self._shards: list[dict[str, Any]] = []
        self._columns: dict[str, list[str]] = {}
        self._events: list[str] = []

    def add(self, log: ClickLog, features: Floats | None = None) -> None:
        """Write the next shard.

        The catalogue of the log names all documents of the shard, sorted by query and document,
        whether its lists show them or not; `features` are their rows.
        """
        folder = self._folder / shard_name(len(self._shards))
        folder.mkdir()
        catalogue = log.catalogue
        assert catalogue is not None
        self._columns = {name: list(column.names) for name, column in log.columns.items()}
        self._events = list(log.events)
        write_log(log, folder / LOG)
        _write_names(folder / NAMES, catalogue)
        for name, array in _arrays(log, catalogue, self._depth).items():
            write_array(folder / name, array)
        pair_counts = pair_counts_of(log)
        write_array(folder / PAIR_COUNTS, pair_counts)
        if features is not None:
            write_array(folder / FEATURES, features.astype(np.float32, copy=False))
        self._shards.append(
            {
                "sessions": log.sessions,
                "lists": len(log.lists),
                "patterns": len(log.counts),
                "documents": len(catalogue.doc_ids),
                "queries": len(catalogue.query_ids),
                "pairs_at_places": len(pair_counts),
                "files": {
                    path.name: {"bytes": path.stat().st_size, "sha256": sha256_of_file(path)}
                    for path in sorted(folder.iterdir())
                },
            }
        )

    def finish(self, reading: ReadingReport) -> ShardedLog:
        """Write what vouches for all of it."""
        has_features = self._count is not None
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "depth": self._depth,
            "columns": self._columns,
            "events": self._events,
            "features": {"count": self._count, "names": self._names} if has_features else None,
            "reading": reading.to_dict(),
            "shards": self._shards,
        }
        manifest = json.loads(json.dumps(manifest))
        manifest["digest"] = digest_of(manifest)
        write_text(self._folder / MANIFEST, json.dumps(manifest, indent=1) + "\n")
        return ShardedLog.open(self._folder)


def _arrays(log: ClickLog, catalogue: Catalogue, depth: int) -> Mapping[str, NDArray[Any]]:
    """The arrays of a log, its rows in the order of lists, each list as deep as the whole log's."""
    lists = len(log.lists)
    assert (np.diff(log.list_of) >= 0).all(), "rows of a list stand together"
    starts = np.searchsorted(log.list_of, np.arange(lists + 1))
    lengths = np.bincount(catalogue.query_of_document, minlength=len(catalogue.query_ids))
    arrays: dict[str, NDArray[Any]] = {
        "documents.npy": _deepened(log.lists.documents, depth, PADDING).astype(np.int32),
        "queries.npy": log.lists.queries.astype(np.int32),
        "list_of.npy": log.list_of.astype(np.int32),
        "clicks.npy": _deepened(log.clicks, depth, False),
        "counts.npy": log.counts.astype(np.int64),
        STARTS: starts.astype(np.int64),
        CUMULATIVE: np.cumsum(log.sessions_per_list).astype(np.int64),
        OFFSETS: np.append(0, np.cumsum(lengths)).astype(np.int64),
    }
    for number, column in enumerate(log.columns.values()):
        arrays[f"column_{number}.npy"] = column.codes.astype(np.int32)
    for number, amounts in enumerate(log.events.values()):
        arrays[f"event_{number}.npy"] = _deepened(amounts, depth, 0.0).astype(np.float64)
    return arrays


def _deepened(values: NDArray[Any], depth: int, nothing: Any) -> NDArray[Any]:
    missing = depth - values.shape[1]
    if missing == 0:
        return values
    return np.pad(values, ((0, 0), (0, missing)), constant_values=nothing)


def _write_names(path: Path, catalogue: Catalogue) -> None:
    schema = pa.schema([("query_id", pa.large_string()), ("doc_id", pa.large_string())])
    count = len(catalogue.doc_ids)
    with path.open("xb") as file, pa.ipc.new_file(file, schema) as writer:
        for start in range(0, count, NAMES_AT_ONCE):
            rows = slice(start, start + NAMES_AT_ONCE)
            queries = catalogue.query_ids[catalogue.query_of_document[rows]]
            names = [
                pa.array(each, pa.large_string()) for each in (queries, catalogue.doc_ids[rows])
            ]
            writer.write_batch(pa.record_batch(names, schema=schema))


def pair_counts_of(log: ClickLog) -> NDArray[np.int64]:
    """Of every document and place from 1, in this order: its sessions and clicks."""
    mask = log.lists.mask
    key = log.lists.documents.astype(np.int64) * (log.lists.depth + 1) + np.arange(
        1, log.lists.depth + 1
    )
    found, place_of = np.unique(key[mask], return_inverse=True)
    sessions = np.broadcast_to(log.sessions_per_list[:, None], mask.shape)[mask]
    sums = [
        np.bincount(place_of.reshape(-1), each, len(found)).astype(np.int64)
        for each in (sessions, log.clicks_per_list[mask])
    ]
    return np.stack([*np.divmod(found, log.lists.depth + 1), *sums], axis=1)
