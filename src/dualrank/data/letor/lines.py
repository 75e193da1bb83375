"""A text in blocks of whole lines, read into one buffer that is used again and again."""

from __future__ import annotations

from collections.abc import Iterator

from dualrank.data.letor.source import SourceFile
from dualrank.errors import DataError

BLOCK_BYTES = 1 << 20
LONGEST_LINE = 1 << 26
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class LineBlocks:
    """Iterating yields spans of `buffer` that hold whole lines, each ending in a newline.

    Before the next block is read, `keep` is copied to the start of the buffer, so that a reader
    can carry a few bytes over; `line` is for the reader to count. A byte order mark at the start
    of the file is skipped, and a newline that is missing at its end is added.
    """

    def __init__(self, source: SourceFile, block_bytes: int = BLOCK_BYTES) -> None:
        self.source = source
        self.buffer = bytearray(block_bytes)
        self.keep = b""
        self.line = 1

    def __iter__(self) -> Iterator[tuple[int, int]]:
        start = filled = 0
        first = True
        while True:
            if filled > len(self.buffer) // 2:
                self._enlarge(filled - start)
            count = self.source.readinto(memoryview(self.buffer)[filled:])
            filled += count
            if count == 0:
                if start == filled:
                    return
                self.buffer[filled] = ord("\n")
                filled += 1
            stop = self.buffer.rfind(b"\n", start, filled) + 1
            if stop == 0:
                continue
            if first and self.buffer.startswith(BYTE_ORDER_MARK):
                start = len(BYTE_ORDER_MARK)
            first = False
            yield start, stop
            kept = self.keep + self.buffer[stop:filled]
            if len(kept) > len(self.buffer):
                self.buffer = bytearray(2 * len(kept))
            self.buffer[: len(kept)] = kept
            start, filled = len(self.keep), len(kept)

    def _enlarge(self, line_bytes: int) -> None:
        if line_bytes > LONGEST_LINE:
            raise DataError(
                f"{self.source.path}:{self.line}: the line is longer than {LONGEST_LINE} bytes; "
                "expected text with line ends"
            )
        self.buffer = self.buffer + bytes(len(self.buffer))
