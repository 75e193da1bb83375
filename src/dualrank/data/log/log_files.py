"""Where a log lies: files of one format, given by name, folder or pattern."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from dualrank.data.log.formats import FORMATS, by_suffix
from dualrank.data.log.log_format import LogFormat, Source
from dualrank.errors import DataError

COMPRESSED = (".gz", ".zst")


def find_source(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Source:
    """Files by name, folder (with all below it) or pattern such as `logs/2024-*.parquet`."""
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not paths:
        raise DataError("the log is an empty list of files")
    name = os.fspath(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
    files = [file for part in paths for file in _files(os.fspath(part))]
    formats = {_format(file) for file in files}
    if len(formats) > 1:
        titles = ", ".join(sorted(format.title for format in formats))
        advice = "give a pattern such as 'clicks/*.parquet'"
        raise DataError(f"{name}: files of several formats ({titles}); {advice}")
    return Source(name, tuple(dict.fromkeys(files)), formats.pop())


def _files(path: str) -> list[str]:
    if os.path.isdir(path):
        found = sorted(
            str(file)
            for file in Path(path).rglob("*")
            if file.is_file() and suffix_of(file.name) in by_suffix() and not _hidden(file, path)
        )
        if not found:
            known = ", ".join(by_suffix())
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


def _format(file: str) -> LogFormat:
    """The format that a file begins like, or else that its name says."""
    marked = [(format, format.begins) for format in FORMATS if format.begins is not None]
    try:
        with open(file, "rb") as opened:
            start = opened.read(max(len(mark) for _, mark in marked))
    except OSError as error:
        raise DataError(f"{file}: the file cannot be opened ({error.strerror})") from None
    for format, mark in marked:
        if start.startswith(mark):
            return format
    known = by_suffix().get(suffix_of(file))
    if known is None:
        raise DataError(
            f"{file}: a log is a {', '.join(by_suffix())} file (or compressed text ending in "
            f"{' or '.join(COMPRESSED)})"
        )
    if known.begins is not None:
        raise DataError(
            f"{file}: not a readable {known.title} file: it does not begin with "
            f"{known.begins.decode()}"
        )
    return known
