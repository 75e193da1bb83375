"""A matrix that is written to disk row by row, before its size is known."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

HEADER_BYTES = 128
PIECE_BYTES = 1 << 22


def npy_header(shape: tuple[int, ...], dtype: np.dtype) -> bytes:
    """The header of an .npy file (format 1.0), always of the same length.

    Numpy's own header may grow with the shape, which is known only at the end.
    """
    text = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': {shape}, }}"
    size = HEADER_BYTES - 10
    return b"\x93NUMPY\x01\x00" + size.to_bytes(2, "little") + text.ljust(size - 1).encode() + b"\n"


class MatrixFile:
    """A float32 .npy file that takes blocks of rows and may become wider on the way.

    Only blocks pass through memory, however large the matrix becomes.
    """

    def __init__(self, path: Path, width: int) -> None:
        self._file: BinaryIO = path.open("w+b")
        self._file.write(bytes(HEADER_BYTES))
        self.width = width
        self.rows = 0

    def append(self, rows: NDArray[np.float32]) -> None:
        """Write these rows after those that are there."""
        if rows.size:
            self._file.write(rows.data)
        self.rows += len(rows)

    def relayout(self, width: int) -> None:
        """Give all rows this width: new columns are 0, columns beyond it are dropped.

        In place: when rows become longer the last goes first, so that none is overwritten
        before it has moved.
        """
        old, self.width = self.width, width
        step = max(1, PIECE_BYTES // (4 * max(old, width)))
        starts = range(0, self.rows, step)
        for start in reversed(starts) if width > old else starts:
            count = min(step, self.rows - start)
            block = np.zeros((count, width), np.float32)
            if old:
                self._file.seek(HEADER_BYTES + 4 * start * old)
                rows = np.frombuffer(self._file.read(4 * count * old), np.float32)
                shared = min(old, width)
                block[:, :shared] = rows.reshape(count, old)[:, :shared]
            self._file.seek(HEADER_BYTES + 4 * start * width)
            self._file.write(block.data)
        self._file.seek(HEADER_BYTES + 4 * self.rows * width)
        self._file.truncate()

    def __enter__(self) -> MatrixFile:
        return self

    def __exit__(self, *_: object) -> None:
        with self._file:
            self._file.seek(0)
            self._file.write(npy_header((self.rows, self.width), np.dtype("<f4")))
