"""One shard: all that happened on its queries, with the features of their documents, on disk."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dualrank.data.catalogue import Catalogue
from dualrank.data.click_log import ClickLog, Column
from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists
from dualrank.data.shards.mapped_arrays import map_array
from dualrank.data.shards.shard_checks import require_sound
from dualrank.errors import DataError
from dualrank.sentences import reason_of
from dualrank.storage import sha256_of_file

LOG = "log.parquet"
NAMES = "names.arrow"
FEATURES = "features.npy"
OFFSETS = "offsets.npy"
PAIR_COUNTS = "pair_counts.npy"
STARTS, CUMULATIVE = "starts.npy", "cumulative.npy"


@dataclass(frozen=True)
class WrittenFile:
    """What a file was when it was written."""

    bytes: int
    sha256: str


@dataclass(frozen=True, eq=False)
class Shard:
    """A part of a sharded log. Arrays are mapped when they are first asked for.

    `log` and `dataset` are those of the shard's own queries and documents, without their names,
    which `catalogue` reads. The rows of list `l` of the log are `starts[l]:starts[l + 1]`, and
    `cumulative` is the running sum of the sessions of lists. `pair_counts` says of every document
    and place (from 1) in how many sessions it stood there, and was clicked.
    """

    folder: Path
    number: int
    depth: int
    columns: Mapping[str, tuple[str, ...]]
    events: tuple[str, ...]
    feature_names: tuple[str, ...] | None
    feature_count: int | None
    sessions: int
    lists: int
    patterns: int
    documents: int
    queries: int
    pairs_at_places: int
    files: Mapping[str, WrittenFile]

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    def require_files(self) -> None:
        """Refuse a shard that is not there, or of which a file is missing or cut off."""
        if not self.folder.is_dir():
            raise DataError(
                f"{self.folder}: this shard is missing; copy it here, or reduce the log again"
            )
        for name, written in self.files.items():
            path = self.folder / name
            try:
                found = path.stat().st_size
            except OSError as error:
                raise DataError(
                    f"{path}: cannot be read ({error.strerror}); copy the whole shard, or reduce "
                    "the log again"
                ) from error
            if found != written.bytes:
                raise DataError(
                    f"{path}: has {found:,} bytes, and had {written.bytes:,} when it was written: "
                    "cut off, or a shard of another log; copy it again, or reduce the log again"
                )

    def verify(self) -> None:
        """Refuse a shard with any other byte than was written, or numbers that cannot be."""
        self.require_files()
        for name in self.files:
            self.require_digest(name)
        require_sound(self)

    def require_digest(self, name: str) -> None:
        """Refuse a file with any other byte than was written."""
        path = self.folder / name
        if sha256_of_file(path) != self.files[name].sha256:
            raise DataError(
                f"{path}: damaged, or a shard of another log: its digest differs from that of "
                "what was written; copy it again, or reduce the log again"
            )

    def require_features(self) -> None:
        """Refuse a shard of a log that was reduced without features."""
        if self.feature_count is None:
            raise DataError(
                f"{self.folder.parent}: these shards have no features; reduce the log again with "
                "the features of its documents (`dualrank reduce LOG --features FILE --shards N`)"
            )

    @cached_property
    def log(self) -> ClickLog:
        """What happened, on lists of the shard's own documents."""
        lists, patterns, depth = self.lists, self.patterns, self.depth
        return ClickLog(
            RankedLists(
                self._map("documents.npy", np.int32, (lists, depth)),
                self._map("queries.npy", np.int32, (lists,)),
            ),
            self._map("list_of.npy", np.int32, (patterns,)),
            self._map("clicks.npy", np.bool_, (patterns, depth)),
            self._map("counts.npy", np.int64, (patterns,)),
            {
                name: Column(values, self._map(f"column_{number}.npy", np.int32, (patterns,)))
                for number, (name, values) in enumerate(self.columns.items())
            },
            events={
                kind: self._map(f"event_{number}.npy", np.float64, (patterns, depth))
                for number, kind in enumerate(self.events)
            },
        )

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where the rows of each list begin, and where the last ones end."""
        return self._map(STARTS, np.int64, (self.lists + 1,))

    @cached_property
    def cumulative(self) -> NDArray[np.int64]:
        """How many sessions there are up to each list, with it."""
        return self._map(CUMULATIVE, np.int64, (self.lists,))

    @cached_property
    def pair_counts(self) -> NDArray[np.int64]:
        """Rows of document, place, sessions and clicks, in the order of the first two."""
        return self._map(PAIR_COUNTS, np.int64, (self.pairs_at_places, 4))

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """The documents of query `q` are `offsets[q]:offsets[q + 1]`."""
        return self._map(OFFSETS, np.int64, (self.queries + 1,))

    @cached_property
    def dataset(self) -> Dataset:
        """The documents with their features, without their names."""
        self.require_features()
        shape = (self.documents, self.feature_count or 0)
        return Dataset(
            features=self._map(FEATURES, np.float32, shape),
            offsets=self.offsets,
            query_ids=np.broadcast_to(np.str_(""), self.queries),
            feature_names=self.feature_names,
            source=str(self.folder),
        )

    def catalogue(self) -> Catalogue:
        """The names of its queries and documents, in memory."""
        queries, documents, before = list[Any](), list[Any](), 0
        for batch in self.names():
            # A query is named by the first of its documents.
            first, last = np.searchsorted(self.offsets[:-1], (before, before + len(batch)))
            rows = pa.array(self.offsets[first:last] - before)
            queries += batch.column("query_id").take(rows).to_pylist()
            documents += batch.column("doc_id").to_pylist()
            before += len(batch)
        return Catalogue(
            np.array(queries, dtype=object),
            np.array(documents, dtype=object),
            np.repeat(np.arange(self.queries), np.diff(self.offsets)),
        )

    def names(self) -> Iterator[pa.RecordBatch]:
        """`query_id` and `doc_id` of every document, in the order of the features."""
        path, rows = self.folder / NAMES, 0
        try:
            with pa.memory_map(os.fsencode(path)) as file, pa.ipc.open_file(file) as reader:
                for number in range(reader.num_record_batches):
                    batch = reader.get_batch(number)
                    batch.validate(full=True)
                    rows += batch.num_rows
                    yield batch
            if rows != self.documents:
                raise ValueError(f"it names {rows} documents of {self.documents}")
        except (OSError, ValueError, LookupError, pa.ArrowException) as error:
            raise DataError(f"{path}: damaged ({reason_of(error)}); reduce again") from error

    def _map(self, name: str, dtype: Any, shape: Sequence[int]) -> NDArray[Any]:
        return map_array(self.folder / name, dtype, shape)
