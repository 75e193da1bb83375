"""Bytes of a text file, whether it is plain, gzip or zstd."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from dualrank.errors import DataError

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZSTD_SKIPPABLE = [bytes([0x50 + low, 0x2A, 0x4D, 0x18]) for low in range(16)]
COMPRESSED_PIECE = 1 << 15


class SourceFile:
    """A file that is read once from front to back, decompressed on the way.

    The compression is recognised by the first bytes, so a wrong suffix does no harm. `digest`
    collects the sha256 of the bytes as they lie on disk; `bytes_read` counts those bytes, so
    that progress can be told as a share of `size`.
    """

    def __init__(self, path: Path, *, digest: bool = False) -> None:
        self.path = path
        self.bytes_read = 0
        self._sha256 = hashlib.sha256() if digest else None
        try:
            self._file = path.open("rb", buffering=0)
            self.size = os.fstat(self._file.fileno()).st_size
            start = self._file.read(4) or b""
            self._file.seek(0)
        except FileNotFoundError:
            raise DataError(f"{path}: there is no such file") from None
        except IsADirectoryError:
            raise DataError(f"{path}: this is a folder; expected a file") from None
        except OSError as error:
            raise DataError(f"{path}: the file cannot be opened ({error.strerror})") from None
        self._kind = "plain"
        self._stream: io.RawIOBase | gzip.GzipFile = _Raw(self)
        if start[:2] == GZIP_MAGIC:
            self._kind = "gzip"
            self._stream = gzip.GzipFile(fileobj=cast(BinaryIO, _Raw(self)), mode="rb")
        elif start == ZSTD_MAGIC or start in ZSTD_SKIPPABLE:
            self._kind = "zstd"
            self._stream = _Zstd(self.read_raw)

    def __enter__(self) -> SourceFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read_raw(self, size: int) -> bytes:
        """The next bytes as they lie on disk; empty at the end."""
        piece = self._file.read(size) or b""
        self.bytes_read += len(piece)
        if self._sha256 is not None:
            self._sha256.update(piece)
        return piece

    def read_raw_into(self, target: memoryview) -> int:
        """Like `read_raw`, without a copy."""
        count = self._file.readinto(target) or 0
        self.bytes_read += count
        if self._sha256 is not None:
            self._sha256.update(target[:count])
        return count

    def readinto(self, target: memoryview) -> int:
        """Fill `target` from its start with text; 0 means the end of the file."""
        try:
            return self._stream.readinto(target) or 0
        except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError):
            raise DataError(
                f"{self.path}: the {self._kind} data are damaged or end too early; "
                "expected a whole file"
            ) from None
        except OSError as error:
            raise DataError(f"{self.path}: reading failed ({error.strerror})") from None

    def sha256(self) -> str:
        """The sha256 of all bytes on disk, as hexadecimal digits; call it at the end."""
        if self._sha256 is None:
            raise ValueError("the file was opened without digest=True")
        while self.read_raw(COMPRESSED_PIECE):
            pass
        return self._sha256.hexdigest()


class _Raw(io.RawIOBase):
    """The bytes on disk as a stream that `gzip` can read from."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        return self._source.read_raw_into(target)


class _Zstd(io.RawIOBase):
    """Decompressed zstd frames, one after the other.

    `ZstdDecompressor.stream_reader` ends silently where a file was cut; this notices.
    """

    def __init__(self, read_raw: Callable[[int], bytes]) -> None:
        self._read_raw = read_raw
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._inside_frame = False
        self._input = b""
        self._output = memoryview(b"")

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        while not self._output:
            piece = self._input or self._read_raw(COMPRESSED_PIECE)
            if not piece:
                if self._inside_frame:
                    raise EOFError
                return 0
            self._output = memoryview(self._frame.decompress(piece))
            self._input = b""
            self._inside_frame = not self._frame.eof
            if self._frame.eof:
                self._input = self._frame.unused_data
                self._frame = zstandard.ZstdDecompressor().decompressobj()
        count = min(len(target), len(self._output))
        target[:count] = self._output[:count]
        self._output = self._output[count:]
        return count
