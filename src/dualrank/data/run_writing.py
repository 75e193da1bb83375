"""Runs as files, written some rows at a time: Parquet, CSV, TREC text, or a folder of parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from dualrank.data.trec import require_words
from dualrank.errors import SettingsError
from dualrank.storage import atomic_file, marked, require_suffix, whole_folder

COLUMNS = ("query_id", "doc_id", "score", "rank")
TREC_SUFFIXES = (".run", ".trec", ".txt")
ROWS_OF_GROUP = 1 << 20
"""Of a Parquet file: as many as Arrow takes where it is given all rows at once."""
ROWS_OF_PART = 4 * ROWS_OF_GROUP
MARK = "a run"

Write = Callable[[pa.Table], None]


def is_folder_of_parts(path: Path) -> bool:
    """Whether a run of this name is written as a folder: it is one, or its name has no ending."""
    return path.is_dir() or not path.suffix


def require_run_name(path: Path) -> None:
    """Refuse a name that is none of a run, and a folder of something else: it would be replaced."""
    if not is_folder_of_parts(path):
        require_suffix(path, MARK, ".parquet", ".csv", *TREC_SUFFIXES)
    elif path.is_dir() and not _holds_a_run(path):
        raise SettingsError(
            f"{path}: this folder holds something else than a run, which would be replaced by one; "
            "give another name"
        )


def _holds_a_run(folder: Path) -> bool:
    """Whether there is a run in a folder and nothing else; Spark leaves notes beside the parts."""
    for part in folder.iterdir():
        if part.name == "_SUCCESS" or (part.name.startswith(".") and part.name.endswith(".crc")):
            continue
        try:
            if pq.read_schema(part).names != list(COLUMNS):
                return False
        except (OSError, ValueError, pa.ArrowException):
            return False
    return True


@contextmanager
def writing_run(path: Path) -> Iterator[Write]:
    """What takes the rows of a run, as tables of `COLUMNS`, query by query and best first.

    The run appears under its name when all of it is written.
    """
    require_run_name(path)
    if is_folder_of_parts(path):
        with whole_folder(path) as folder, _closed(_Parts(folder)) as run:
            yield run.write
        return
    with atomic_file(path) as file, _closed(_KINDS.get(path.suffix, _Trec)(file)) as run:
        yield run.write


class _Run(Protocol):
    """A run as a file, or several."""

    def write(self, rows: pa.Table) -> None: ...
    def finish(self) -> None:
        """Write what is still held."""

    def close(self) -> None:
        """Hold nothing open any more, finished or not."""


Run = TypeVar("Run", bound=_Run)


@contextmanager
def _closed(run: Run) -> Iterator[Run]:
    """A run that is finished if nothing fails, and closed while its file is there in any case.

    Arrow's writers would write their last bytes whenever memory is tidied up.
    """
    try:
        yield run
        run.finish()
    except BaseException:
        with suppress(OSError, ValueError, pa.ArrowException):  # said already, if the disk is full
            run.close()
        raise
    run.close()


class _Parquet:
    """Rows in groups of equally many, so that it is not seen how they came."""

    def __init__(self, file: BinaryIO | Path) -> None:
        self._file = file
        self._writer: pq.ParquetWriter | None = None
        self._held: list[pa.Table] = []

    def write(self, rows: pa.Table) -> None:
        self._held.append(rows)
        while sum(map(len, self._held)) >= ROWS_OF_GROUP:
            whole = pa.concat_tables(self._held)
            self._group(whole.slice(0, ROWS_OF_GROUP))
            self._held = [whole.slice(ROWS_OF_GROUP)]

    def finish(self) -> None:
        left = pa.concat_tables(self._held)
        if self._writer is None or len(left):
            self._group(left)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _group(self, rows: pa.Table) -> None:
        schema = marked(rows.schema, MARK)
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, schema, compression="zstd")
        self._writer.write_table(rows.combine_chunks().replace_schema_metadata(schema.metadata))


class _Parts:
    """Parquet files that are numbered, each of so many rows."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count, self._left = folder, 0, 0
        self._part: _Parquet | None = None

    def write(self, rows: pa.Table) -> None:
        while len(rows) > 0:
            if self._part is None:
                name = f"part-{self._count:05d}.parquet"
                self._part, self._left = _Parquet(self._folder / name), ROWS_OF_PART
                self._count += 1
            now = rows.slice(0, self._left)
            self._part.write(now)
            self._left -= len(now)
            rows = rows.slice(len(now))
            if self._left == 0:
                self.finish()
                self.close()

    def finish(self) -> None:
        if self._part is not None:
            self._part.finish()

    def close(self) -> None:
        if self._part is not None:
            self._part.close()
            self._part = None


class _Csv:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._writer: pyarrow.csv.CSVWriter | None = None

    def write(self, rows: pa.Table) -> None:
        if self._writer is None:
            self._writer = pyarrow.csv.CSVWriter(self._file, rows.schema)
        self._writer.write_table(rows)

    def finish(self) -> None:
        pass

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class _Trec:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, rows: pa.Table) -> None:
        require_words("query", rows["query_id"].unique().to_pylist())
        columns = [rows[name].to_pylist() for name in COLUMNS]
        require_words("document", columns[1])
        for query, document, score, rank in zip(*columns, strict=True):
            self._file.write(f"{query} Q0 {document} {rank} {score!r} dualrank\n".encode())

    def finish(self) -> None:
        pass

    def close(self) -> None:
        pass


_KINDS: dict[str, type[_Parquet] | type[_Csv]] = {".parquet": _Parquet, ".csv": _Csv}
