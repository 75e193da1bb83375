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

import pyarrow as pa

from dualrank.errors import DataError

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZSTD_SKIPPABLE = [bytes([0x50 + low, 0x2A, 0x4D, 0x18]) for low in range(16)]
COARSEST_CLOCK_NS = 2_000_000_000
"""File systems keep times in ticks; the longest, of FAT, is two seconds."""


@dataclass(frozen=True)
class SourceState:
    """Size and time, which tell cheaply whether a file is still the same.

    They tell it only of a file that had `settled`. One that was changed just now could change
    again within the same tick of the file system's clock and keep its size and time.
    """

    size: int
    mtime_ns: int
    settled: bool = field(compare=False)

    @classmethod
    def of(cls, stat: os.stat_result) -> SourceState:
        """The state of a file whose `stat` was taken now."""
        settled = stat.st_mtime_ns + COARSEST_CLOCK_NS < time.time_ns()
        return cls(stat.st_size, stat.st_mtime_ns, settled)


class SourceFile(io.RawIOBase):
    """A file that is read once from front to back, decompressed on the way.

    The compression is recognised by the first bytes, so a wrong suffix does no harm. `bytes_read`
    counts the bytes as they lie on disk, so that progress can be told as a share of the file's
    size. `state` is that of the file before anything was read; with `digest`, `sha256` is that of
    its bytes, taken first: should they change before they are read again, it will not fit them.
    """

    _file: io.FileIO | None = None

    def __init__(self, path: Path, *, digest: bool = False) -> None:
        self.path = path
        try:
            self._file = file = path.open("rb", buffering=0)
            self.state = SourceState.of(os.fstat(file.fileno()))
            start = file.read(4)
            file.seek(0)
            self.sha256 = hashlib.file_digest(file, "sha256").hexdigest() if digest else None
            file.seek(0)
        except FileNotFoundError:
            raise DataError(f"{path}: there is no such file") from None
        except IsADirectoryError:
            raise DataError(f"{path}: this is a folder; expected a file") from None
        except OSError as error:
            raise DataError(f"{path}: the file cannot be opened ({error.strerror})") from None
        self._kind = "plain"
        self._stream: io.FileIO | gzip.GzipFile | pa.NativeFile = file
        if start[:2] == GZIP_MAGIC:
            self._kind = "gzip"
            self._stream = gzip.GzipFile(fileobj=file, mode="rb")
        elif start == ZSTD_MAGIC or start in ZSTD_SKIPPABLE:
            self._kind = "zstd"
            self._stream = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")

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
        return 0 if self._file is None else self._file.tell()

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        """Fill `target` from its start with text; 0 means the end of the file."""
        try:
            return self._stream.readinto(target) or 0
        except (EOFError, zlib.error, OSError) as error:
            # What the operating system reports has a number; damaged data have none.
            if isinstance(error, OSError) and error.errno is not None:
                raise DataError(f"{self.path}: reading failed ({error.strerror})") from None
            raise DataError(
                f"{self.path}: the {self._kind} data are damaged or end too early; "
                "expected a whole file"
            ) from None
