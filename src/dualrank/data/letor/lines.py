"""A text in blocks of whole lines."""

from __future__ import annotations

import io
from collections.abc import Iterator

from dualrank.data.letor.source import SourceFile
from dualrank.errors import DataError

BLOCK_BYTES = 1 << 18
LONGEST_LINE = 1 << 26
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def line_blocks(source: SourceFile, block_bytes: int = BLOCK_BYTES) -> Iterator[tuple[int, bytes]]:
    """Blocks of lines that each end in a newline, with the number of the first of them.

    A byte order mark at the start of the file is skipped, and a newline that is missing at its
    end is added.
    """
    stream = io.BufferedReader(source, block_bytes)
    line = 1
    while block := stream.read(block_bytes):
        block += stream.readline(LONGEST_LINE)
        if line == 1:
            block = block.removeprefix(BYTE_ORDER_MARK)
        after = line + block.count(b"\n")
        if not block.endswith(b"\n"):
            if stream.peek(1):
                raise DataError(
                    f"{source.path}:{after}: the line is longer than {LONGEST_LINE} bytes; "
                    "expected text with line ends"
                )
            block += b"\n"
        yield line, block
        line = after
    stream.detach()  # A stream that is dropped closes its source.
