"""Shards as files: each a reduced log of its own, its arrays, and the features of its documents."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dualrank.data.catalogue import Catalogue
from dualrank.data.click_log import ClickLog
from dualrank.data.lists import PADDING, RankedLists
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
from dualrank.data.shards.sharded_log import (
    FORMAT,
    MANIFEST,
    digest_of,
    shard_name,
)
from dualrank.errors import SettingsError
from dualrank.storage import atomic_file, sha256_of_file, write_text, writing_alone

NAMES_AT_ONCE = 1 << 16
_FILE = re.compile(
    r"log\.parquet|names\.arrow|(features|offsets|documents|queries|list_of|clicks|counts|starts|"
    r"cumulative|pair_counts|column_\d+|event_\d+)\.npy"
)
"""What a file of a shard is called."""
UNFINISHED = ".dualrank-unfinished"

Floats = NDArray[np.float32]


@contextmanager
def new_shards(out: Path, shards: int) -> Iterator[Path]:
    """A folder to write so many shards into, which then take the place of those in `out`.

    Nobody else writes there meanwhile. What else lies in `out` stays, and is never taken for a
    shard; what a killed writer left goes. Whatever fails, the earlier log stands again; only who is
    killed between the first rename and the last leaves none: the manifest goes first, and the new
    one comes last.
    """
    with writing_alone(out):
        _refuse_others(out, shards)
        new = out / UNFINISHED
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        try:
            yield new
            _exchange(out, new, shards)
        finally:
            shutil.rmtree(new, ignore_errors=True)


def _exchange(out: Path, new: Path, shards: int) -> None:
    """Move the old log aside, which takes no time, and the new one in; all of it or nothing."""
    aside = new / "replaced"
    aside.mkdir()
    names = [shard_name(number) for number in range(shards)]
    old = filter(_is_shard, out.glob("[0-9]" * len(shard_name(0))))
    leaving = [*filter(os.path.lexists, [out / MANIFEST]), *old]
    moves = [
        *((path, aside / path.name) for path in leaving),
        *((new / name, out / name) for name in (*names, MANIFEST)),
    ]
    begun = list[tuple[Path, Path]]()
    try:
        for move in moves:
            begun.append(move)
            os.rename(*move)
    except BaseException:
        for before, after in reversed(begun):
            with suppress(FileNotFoundError):  # an interrupt comes before a rename, or after it
                os.rename(after, before)
        raise


def _refuse_others(out: Path, shards: int) -> None:
    """Refuse a folder in which something else stands where a shard would be written."""
    for number in range(shards):
        folder = out / shard_name(number)
        if os.path.lexists(folder) and not _is_shard(folder):
            raise SettingsError(
                f"{folder}: stands where a shard would be written, and is none; move it, or give "
                "another folder"
            )


def _is_shard(folder: Path) -> bool:
    """Whether a folder holds what shards hold, and nothing else."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    names = [path.name for path in folder.iterdir()]
    return LOG in names and all(_FILE.fullmatch(name) for name in names)


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
        log = replace(_deepened(log, self._depth), reading=_account(log, folder.name))
        self._columns = {name: list(column.names) for name, column in log.columns.items()}
        self._events = list(log.events)
        write_log(log, folder / LOG)
        _write_names(folder / NAMES, catalogue)
        for name, array in _arrays(log, catalogue).items():
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

    def finish(self, reading: ReadingReport) -> None:
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


def _arrays(log: ClickLog, catalogue: Catalogue) -> Mapping[str, NDArray[Any]]:
    """The arrays of a log, its rows in the order of lists."""
    lists = len(log.lists)
    assert (np.diff(log.list_of) >= 0).all(), "rows of a list stand together"
    starts = np.searchsorted(log.list_of, np.arange(lists + 1))
    lengths = np.bincount(catalogue.query_of_document, minlength=len(catalogue.query_ids))
    arrays: dict[str, NDArray[Any]] = {
        "documents.npy": log.lists.documents.astype(np.int32),
        "queries.npy": log.lists.queries.astype(np.int32),
        "list_of.npy": log.list_of.astype(np.int32),
        "clicks.npy": log.clicks,
        "counts.npy": log.counts.astype(np.int64),
        STARTS: starts.astype(np.int64),
        CUMULATIVE: np.cumsum(log.sessions_per_list).astype(np.int64),
        OFFSETS: np.append(0, np.cumsum(lengths)).astype(np.int64),
    }
    for number, column in enumerate(log.columns.values()):
        arrays[f"column_{number}.npy"] = column.codes.astype(np.int32)
    for number, amounts in enumerate(log.events.values()):
        arrays[f"event_{number}.npy"] = amounts.astype(np.float64)
    return arrays


def _deepened(log: ClickLog, depth: int) -> ClickLog:
    """The log with lists as deep as those of the other shards."""
    missing = ((0, 0), (0, depth - log.lists.depth))
    return replace(
        log,
        lists=RankedLists(
            np.pad(log.lists.documents, missing, constant_values=PADDING), log.lists.queries
        ),
        clicks=np.pad(log.clicks, missing),
        events={kind: np.pad(amounts, missing) for kind, amounts in log.events.items()},
    )


def _account(log: ClickLog, name: str) -> ReadingReport:
    """Of a shard that is read alone: what it holds; that of the whole log is in the manifest."""
    shown = log.lists.mask.sum(axis=1)[log.list_of]
    clicks = log.clicks.sum(axis=1)
    return ReadingReport(
        source=f"shard {name}",
        rows=int((log.counts * shown).sum()),
        sessions=log.sessions,
        kept=log.sessions,
        clicks=int((log.counts * clicks).sum()),
        clicked=int(log.counts[clicks > 0].sum()),
    )


def _write_names(path: Path, catalogue: Catalogue) -> None:
    schema = pa.schema([("query_id", pa.large_string()), ("doc_id", pa.large_string())])
    count = len(catalogue.doc_ids)
    with atomic_file(path) as file, pa.ipc.new_file(file, schema) as writer:
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
