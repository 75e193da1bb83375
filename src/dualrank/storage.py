"""Files that are either whole or not there, written by one process at a time, and read with care.

What dualrank reads of its own may have been cut, changed, or made up by somebody else: names that a
file gives are not followed out of its folder, and JSON brings no number that arrays cannot hold.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from dualrank.errors import DataError, DualrankError, SettingsError
from dualrank.sentences import reason_of, shortened

if TYPE_CHECKING:
    import pyarrow as pa

LOCK = ".dualrank.lock"
"""In a directory that somebody is writing: who that is."""
MOST_JSON = 1 << 26
"""Bytes of JSON that are read where nothing else is said."""
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


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A folder to write into that appears under its name only when all of it is written.

    What stood there before is replaced by all of it; if anything fails, it still stands. All is
    made in a hidden folder beside it, which one process holds at a time: what a killed one left
    goes with the next, and is put back first if it was killed while it replaced.
    """
    path = path.absolute()
    beside = path.with_name(f".{path.name}.unfinished")
    new, old = beside / "new", beside / "old"

    def clean() -> None:
        if os.path.lexists(old) and not os.path.lexists(path):
            os.rename(old, path)
        for left in (new, old):
            shutil.rmtree(left, ignore_errors=True)

    try:
        with writing_alone(beside, called=path):
            clean()
            new.mkdir()
            try:
                yield new
                if os.path.lexists(path):
                    os.rename(path, old)
                os.rename(new, path)
            finally:
                clean()
    finally:
        with suppress(OSError):  # where a killed one had made it
            beside.rmdir()


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
    """Write an Arrow table atomically, as .parquet or .csv."""
    write_tables(path, iter([table]), what)


def write_tables(path: Path, tables: Iterator[pa.Table], what: str = "a table") -> int:
    """Write Arrow tables one below the other, atomically, as .parquet or .csv; says how many rows.

    One of them is in memory at a time, and there is one at least.

    CSV holds ids as they are, also those that a spreadsheet takes for a formula because they begin
    with `=`, `+`, `-` or `@`: programs read these files, and a sign put in front would be part of
    the id.
    """
    import pyarrow.csv
    import pyarrow.parquet

    require_suffix(path, what, ".parquet", ".csv")
    rows, first = 0, next(tables)
    schema = marked(first.schema, what)
    with atomic_file(path) as file:
        if path.suffix == ".csv":
            writer = pyarrow.csv.CSVWriter(file, schema)
        else:
            writer = pyarrow.parquet.ParquetWriter(file, schema, compression="zstd")
        with writer:
            for table in chain([first], tables):
                rows += table.num_rows
                writer.write_table(table.replace_schema_metadata(schema.metadata))
    return rows


def require_suffix(path: Path, what: str, *suffixes: str) -> None:
    """Refuse a file that is not called as what is to be written."""
    if path.suffix not in suffixes:
        known = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}" if suffixes[1:] else suffixes[0]
        raise SettingsError(f"{path}: {what} is written as {known}")


def sha256_of_file(path: Path) -> str:
    """The sha256 of a file's bytes, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_file(path: Path, most: int, *, within: Path | None = None) -> bytes:
    """The bytes of a regular file of at most `most` of them; an OSError that says what it is else.

    Devices and pipes may never end. With `within`, a file that lies outside of that folder is
    refused: it may be a link, or its name may lead there.
    """
    if within is not None and not path.resolve().is_relative_to(within.resolve()):
        raise OSError(errno.EPERM, f"it leads out of {within}", str(path))
    # Opening a pipe would wait for somebody to write into it.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    opened = os.open(path, flags)
    try:
        found = os.fstat(opened)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        if found.st_size > most:
            what = f"it has {found.st_size:,} bytes, more than the {most:,} of such a file"
            raise OSError(errno.EFBIG, what, str(path))
        with os.fdopen(opened, "rb", closefd=False) as file:
            return file.read(found.st_size)
    finally:
        os.close(opened)


def read_json(
    path: Path,
    error: type[DualrankError] = DataError,
    *,
    most: int = MOST_JSON,
    within: Path | None = None,
    constants: bool = False,
) -> Any:
    """What a JSON file holds; `error` in one sentence where it cannot be read or is none."""
    try:
        text = read_file(path, most, within=within)
    except OSError as problem:
        raise error(f"{path}: cannot be read: {problem.strerror or problem}") from problem
    try:
        return parse_json(text, constants=constants)
    except ValueError as problem:
        raise error(f"{path}: not JSON: {reason_of(problem)}") from problem


def parse_json(text: str | bytes, *, bits: int = 64, constants: bool = False) -> Any:
    """What JSON says, with numbers that arrays can hold; a ValueError with the reason else.

    No name stands twice in an object. Whole numbers have at most `bits` bits, others are finite;
    `constants` lets NaN and Infinity pass, which are no JSON, and which earlier versions wrote.
    """

    def whole(digits: str) -> int:
        # Numbers of thousands of digits take long to read, and Python refuses the longest.
        if len(digits) > bits or (number := int(digits)).bit_length() > bits:
            raise ValueError(f"the number {_start(digits)} has more than {bits} bits")
        return number

    def real(digits: str) -> float:
        number = float(digits)
        if not math.isfinite(number):
            raise ValueError(f"the number {_start(digits)} is larger than any float")
        return number

    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} is no number in JSON")

    try:
        return json.loads(
            text if isinstance(text, str) else text.decode("utf-8"),
            parse_int=whole,
            parse_float=real,
            parse_constant=float if constants else refuse,
            object_pairs_hook=_distinct,
        )
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"it names {shortened(name)} twice")
        found[name] = value
    return found


def _start(digits: str) -> str:
    return digits if len(digits) <= 24 else f"{digits[:20]}…"


@contextmanager
def writing_alone(folder: Path, *, called: Path | None = None) -> Iterator[None]:
    """Hold a directory that nobody else may write meanwhile, made if it is not there.

    Where users know it by another name, it is `called` that. The system lets go of it when the
    process ends, however that is. What was made for nothing, because the work was refused or failed
    before it wrote something, is removed again.
    """
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    held = _lock(folder, called or folder)
    try:
        yield
    finally:
        if held is not None:
            # Removed while it is held: who waits in between would lock a file without a name.
            with suppress(OSError):
                (folder / LOCK).unlink()
            os.close(held)
        with suppress(OSError):
            for each in made:
                each.rmdir()


def _lock(folder: Path, called: Path) -> int | None:
    """The lock of a directory; None where the system has none."""
    try:
        import fcntl
    except ImportError:
        return None
    path = folder / LOCK
    while True:
        held = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            who = os.read(held, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(held)
            raise SettingsError(
                f"{called}: process {who} is writing here; wait for its end, or choose another "
                "directory"
            ) from error
        except OSError:  # Some network file systems have no locks.
            os.close(held)
            return None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(held), os.stat(path)):
                break
        os.close(held)  # The one before has just removed it.
    os.ftruncate(held, 0)
    os.write(held, f"{os.getpid()}\n".encode())
    return held
