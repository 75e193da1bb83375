"""Files that are either whole or not there."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from dualrank.errors import SettingsError

if TYPE_CHECKING:
    import pyarrow as pa

_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


@contextmanager
def atomic_file(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name only when all of it is written.

    The bytes go to a temporary file beside `path`, which replaces it at the end; if anything
    fails, what stood there before still stands. `durable` waits until the disk has the bytes.
    Errors name `path`, or what is no directory above it: nobody knows the temporary file.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        reason = os.strerror(errno.ENOTDIR)
        raise NotADirectoryError(errno.ENOTDIR, reason, str(path.parent)) from error
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and (
            str(error.filename) == str(temporary)
            # A full disk comes without a name, when bytes are written to what is open already.
            or (error.filename is None and error.errno in _FULL)
        ):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def remove_unfinished(path: Path) -> None:
    """Remove what a killed writer of `path` left behind; nobody else may be writing it."""
    for left in path.parent.glob(f".{path.name}.*"):
        left.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write text atomically."""
    with atomic_file(path) as file:
        file.write(text.encode())


MARK = b"dualrank.kind"
"""Under this key the schema of a Parquet file says what dualrank wrote."""


def marked(schema: pa.Schema, what: str) -> pa.Schema:
    """A schema that says what is in the file, so that it is known to be dualrank's."""
    return schema.with_metadata({**(schema.metadata or {}), MARK: what.encode()})


def write_table(path: Path, table: pa.Table, what: str = "a table") -> None:
    """Write an Arrow table atomically, as .parquet or .csv.

    CSV holds ids as they are, also those that a spreadsheet takes for a formula because they begin
    with `=`, `+`, `-` or `@`: programs read these files, and a sign put in front would be part of
    the id.
    """
    import pyarrow.csv
    import pyarrow.parquet

    require_suffix(path, what, ".parquet", ".csv")
    with atomic_file(path) as file:
        if path.suffix == ".csv":
            pyarrow.csv.write_csv(table, file)
        else:
            table = table.replace_schema_metadata(marked(table.schema, what).metadata)
            pyarrow.parquet.write_table(table, file, compression="zstd")


def require_suffix(path: Path, what: str, *suffixes: str) -> None:
    """Refuse a file that is not called as what is to be written."""
    if path.suffix not in suffixes:
        known = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}" if suffixes[1:] else suffixes[0]
        raise SettingsError(f"{path}: {what} is written as {known}")


def sha256_of_file(path: Path) -> str:
    """The sha256 of a file's bytes, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
