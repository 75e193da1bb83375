"""The text file that is read: its bytes, whether plain, gzip or zstd, and whether it changed."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from dualrank.errors import DataError
from dualrank.sentences import absent

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZSTD_SKIPPABLE = [bytes([0x50 + low, 0x2A, 0x4D, 0x18]) for low in range(16)]
COMPRESSED_PIECE = 1 << 15
COARSEST_CLOCK_NS = 2_000_000_000
"""File systems keep times in ticks; the longest, of FAT, is two seconds."""
UNPACKED_UNASKED = 1 << 28
MOST_UNPACKED = 200
"""How many times its size a file may unpack to, once it is more than `UNPACKED_UNASKED` bytes.

Text shrinks to a tenth, very regular text to a fiftieth; a file made to fill a disk to a thousandth
and far less.
"""


@dataclass(frozen=True)
class SourceState:
    """Size and times, which tell cheaply whether a file is still the same.

    `mtime_ns` is what a program may set to any moment, as those do that unpack or copy files;
    `ctime_ns` is set by the system alone, whenever the file or what is known of it changes. They
    tell it only of a file that had `settled`. One that was changed just now could change again
    within the same tick of the file system's clock and keep its size and times.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    settled: bool = field(compare=False)

    @classmethod
    def of(cls, stat: os.stat_result) -> SourceState:
        """The state of a file whose `stat` was taken now."""
        changed = max(stat.st_mtime_ns, stat.st_ctime_ns)
        settled = changed + COARSEST_CLOCK_NS < time.time_ns()
        return cls(stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, settled)


class SourceFile(io.RawIOBase):
    """A file that is read once from front to back, decompressed on the way.

    The compression is recognised by the first bytes, so a wrong suffix does no harm. `digest`
    collects the sha256 of the bytes as they lie on disk; `bytes_read` counts those bytes, so
    that progress can be told as a share of the file's size. `state` is that of the file before
    anything was read. A small file that unpacks to a huge one is refused on the way.
    """

    _file: io.FileIO | None = None

    def __init__(self, path: Path, *, digest: bool = False) -> None:
        self.path = path
        try:
            self._file = file = path.open("rb", buffering=0)
            self.state = SourceState.of(os.fstat(file.fileno()))
            start = file.read(4)
        except FileNotFoundError:
            raise DataError(absent(path)) from None
        except IsADirectoryError:
            raise DataError(f"{path}: this is a folder; expected a file") from None
        except OSError as error:
            raise DataError(f"{path}: the file cannot be opened ({error.strerror})") from None
        self._raw = _Raw(file, start, digest)
        self._unpacked = 0
        self._kind = "plain"
        self._stream: io.RawIOBase | gzip.GzipFile | pa.NativeFile = self._raw
        if start[:2] == GZIP_MAGIC:
            self._kind = "gzip"
            self._stream = gzip.GzipFile(fileobj=cast(BinaryIO, self._raw), mode="rb")
        elif start == ZSTD_MAGIC or start in ZSTD_SKIPPABLE:
            self._kind = "zstd"
            self._stream = pa.CompressedInputStream(pa.PythonFile(self._raw, mode="r"), "zstd")

    def close(self) -> None:
        """Close the file, if it could be opened."""
        if self._file is not None:
            self._file.close()
        super().close()

    def readable(self) -> bool:
        """Python's own streams ask before they read."""
        return True

    @property
    def bytes_read(self) -> int:
        """How many of the bytes on disk have been read."""
        return self._raw.bytes_read

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        """Fill `target` from its start with text; 0 means the end of the file."""
        try:
            count = self._stream.readinto(target) or 0
        except (EOFError, zlib.error, OSError) as error:
            # What the operating system reports has a number; damaged data have none.
            if isinstance(error, OSError) and error.errno is not None:
                raise DataError(f"{self.path}: reading failed ({error.strerror})") from None
            raise DataError(
                f"{self.path}: the {self._kind} data are damaged or end too early; "
                "expected a whole file"
            ) from None
        self._unpacked += count
        if self._unpacked > max(UNPACKED_UNASKED, MOST_UNPACKED * self.bytes_read):
            raise DataError(
                f"{self.path}: the {self._kind} data unpack to more than {MOST_UNPACKED} times "
                "their size, which no text does; if this is meant, unpack the file first"
            )
        return count

    def sha256(self) -> str:
        """The sha256 of all bytes on disk, as hexadecimal digits; call it at the end."""
        if self._raw.sha256 is None:
            raise ValueError("the file was opened without digest=True")
        while self._raw.read(COMPRESSED_PIECE):
            pass
        return self._raw.sha256.hexdigest()


class _Raw(io.RawIOBase):
    """The bytes as they lie on disk, counted and hashed on the way."""

    def __init__(self, file: io.FileIO, start: bytes, digest: bool) -> None:
        self._file = file
        self._start = start
        self.bytes_read = 0
        self.sha256 = hashlib.sha256() if digest else None

    def readable(self) -> bool:
        return True

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        # The start was read before, to recognise the compression; a pipe cannot go back to it.
        if self._start:
            count = min(len(self._start), len(target))
            target[:count], self._start = self._start[:count], self._start[count:]
        else:
            count = self._file.readinto(target) or 0
        self.bytes_read += count
        if self.sha256 is not None:
            self.sha256.update(target[:count])
        return count
