"""Where a log lies: files of one format, given by name, folder or pattern."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator, Sequence

from dualrank.data.log.formats import FORMATS, by_suffix
from dualrank.data.log.log_format import LogFormat, Source
from dualrank.errors import DataError
from dualrank.sentences import URL, absent

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
        found = sorted(_below(path))
        if not found:
            known = ", ".join(by_suffix())
            raise DataError(f"{path}: no log in this folder; its files would end in {known}")
        return found
    if os.path.exists(path):
        return [path]
    if os.path.islink(path):
        raise DataError(f"{path}: a link to {os.readlink(path)}, which is not there")
    if glob.has_magic(path) and not URL.match(path):
        pattern = _pattern(path)
        found = sorted(file for file in glob.glob(pattern, recursive=True) if os.path.isfile(file))
        if not found:
            raise DataError(f"{path}: no file fits this pattern")
        return found
    raise DataError(absent(path))


def _pattern(path: str) -> str:
    """The pattern, in which the name of a folder that is there stands for this folder alone."""
    known, rest = path, ""
    while known and not os.path.isdir(known):
        known, name = os.path.split(known.rstrip("/"))
        rest = os.path.join(name, rest) if rest else name
    return os.path.join(glob.escape(known), rest)


def _below(folder: str) -> Iterator[str]:
    """The log's files in a folder and all below it, behind links too, each once."""
    seen = {os.path.realpath(folder)}
    for place, folders, files in os.walk(folder, followlinks=True, onerror=_unreadable):
        # A link may lead back up, or to a folder that is here anyway.
        folders[:] = [
            name
            for name in sorted(folders)
            if not _hidden(name) and _new(os.path.join(place, name), seen)
        ]
        for name in sorted(files):
            file = os.path.join(place, name)
            if _hidden(name) or suffix_of(name) not in by_suffix():
                continue
            if not os.path.exists(file):
                raise DataError(
                    f"{file}: a link to {os.readlink(file)}, which is not there; mend or remove it"
                )
            if os.path.isfile(file) and _new(file, seen):
                yield file


def _new(path: str, seen: set[str]) -> bool:
    """Whether this file or folder, by whatever name, was not seen before; now it is."""
    real = os.path.realpath(path)
    new = real not in seen
    seen.add(real)
    return new


def _unreadable(error: OSError) -> None:
    raise DataError(f"{error.filename}: the folder cannot be read ({error.strerror})") from error


def _hidden(name: str) -> bool:
    """Spark and others leave notes such as `_SUCCESS` and `.crc` files beside the data."""
    return name.startswith((".", "_"))


def suffix_of(name: str) -> str:
    """What a name ends in, before the ending of a compressed file."""
    stem, suffix = os.path.splitext(name.lower())
    return os.path.splitext(stem)[1] if suffix in COMPRESSED else suffix


def _format(file: str) -> LogFormat:
    """The format that a file begins like, or else that its name says."""
    marked = [(format, format.begins) for format in FORMATS if format.begins is not None]
    try:
        # To open a pipe would wait for whoever writes to it; a device may have no end.
        if not stat.S_ISREG(os.stat(file).st_mode):
            raise DataError(f"{file}: a log is a file, and this is none that ends; write it to one")
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
