"""Where a log lies: files of one format, given by name, folder or pattern."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dualrank.errors import DataError

Format = Literal["parquet", "csv", "json"]

SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
COMPRESSED = (".gz", ".zst")
PARQUET_MAGIC = b"PAR1"


@dataclass(frozen=True)
class Source:
    """The files of a log, all of one format; `name` is what the user called them."""

    name: str
    files: tuple[str, ...]
    format: Format


def find_source(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Source:
    """Files by name, folder (with all below it) or pattern such as `logs/2024-*.parquet`."""
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not paths:
        raise DataError("the log is an empty list of files")
    name = os.fspath(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
    files = [file for part in paths for file in _files(os.fspath(part))]
    formats = {_format(file) for file in files}
    if len(formats) > 1:
        raise DataError(
            f"{name}: files of several formats ({', '.join(sorted(formats))}); give a pattern such "
            "as 'clicks/*.parquet'"
        )
    return Source(name, tuple(dict.fromkeys(files)), formats.pop())


def _files(path: str) -> list[str]:
    if os.path.isdir(path):
        found = sorted(
            str(file)
            for file in Path(path).rglob("*")
            if file.is_file() and suffix_of(file.name) in SUFFIXES and not _hidden(file, path)
        )
        if not found:
            known = ", ".join(SUFFIXES)
            raise DataError(f"{path}: no log in this folder; its files would end in {known}")
        return found
    if os.path.exists(path):
        return [path]
    if glob.has_magic(path):
        found = sorted(file for file in glob.glob(path, recursive=True) if os.path.isfile(file))
        if not found:
            raise DataError(f"{path}: no file fits this pattern")
        return found
    raise DataError(f"{path}: there is no such file")


def _hidden(file: Path, folder: str) -> bool:
    """Spark and others leave notes such as `_SUCCESS` and `.crc` files beside the data."""
    return any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def suffix_of(name: str) -> str:
    """What a name ends in, before the ending of a compressed file."""
    stem, suffix = os.path.splitext(name.lower())
    return os.path.splitext(stem)[1] if suffix in COMPRESSED else suffix


def _format(file: str) -> Format:
    try:
        with open(file, "rb") as opened:
            start = opened.read(len(PARQUET_MAGIC))
    except OSError as error:
        raise DataError(f"{file}: the file cannot be opened ({error.strerror})") from None
    if start == PARQUET_MAGIC:
        return "parquet"
    known = SUFFIXES.get(suffix_of(file))
    if known is None:
        raise DataError(
            f"{file}: a log is a .parquet, .csv, .tsv, .jsonl or .ndjson file (or compressed text "
            "ending in .gz or .zst)"
        )
    if known == "parquet":
        raise DataError(f"{file}: not a readable Parquet file: it does not begin with PAR1")
    return known
