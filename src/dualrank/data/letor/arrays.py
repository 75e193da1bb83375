"""The arrays of a data set as .npy files: written before their size is known, then mapped."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dualrank.data.dataset import Dataset

HEADER_BYTES = 128
PIECE_BYTES = 1 << 22
ARRAYS = ("features.npy", "grades.npy", "offsets.npy", "query_ids.npy", "doc_ids.npy")
"""All files of a parsed text; the last only where documents have names."""


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


class IdColumn:
    """Ids in blocks of bytes; the four bytes per character of numpy's str come only on disk."""

    def __init__(self) -> None:
        self._blocks: list[NDArray[np.bytes_]] = []
        self._characters = 0

    def append(self, letters: NDArray[np.uint8]) -> int | None:
        """Add one id per row, filled up with 0; if one is not UTF-8, return its row instead."""
        block = letters.view(f"S{letters.shape[1]}").ravel()
        highest = letters.max(initial=0)
        longest = letters.shape[1] if highest else 0
        if highest >= 128:
            try:
                longest = _decoded(block).dtype.itemsize // 4
            except UnicodeDecodeError:
                return next(row for row, name in enumerate(block) if not _is_utf8(name))
        self._blocks.append(block)
        self._characters = max(self._characters, longest)
        return None

    @property
    def all_empty(self) -> bool:
        """Whether no id has a single letter."""
        return self._characters == 0

    def first_repetition(self) -> tuple[int, str] | None:
        """The first id that occurred before: its number and name."""
        names = np.concatenate(self._blocks)
        unique, first, inverse = np.unique(names, return_index=True, return_inverse=True)
        if len(unique) == len(names):
            return None
        number = int(np.flatnonzero(first[inverse] != np.arange(len(names)))[0])
        return number, names[number].decode()

    def save(self, path: Path) -> None:
        """Write the ids as an .npy file of str, block by block."""
        dtype = np.dtype(f"<U{max(1, self._characters)}")
        with path.open("wb") as file:
            file.write(npy_header((sum(map(len, self._blocks)),), dtype))
            for block in self._blocks:
                names = _decoded(block).astype(dtype)
                file.write(names.view(np.uint32).data)


def _decoded(block: NDArray[np.bytes_]) -> NDArray[np.str_]:
    try:
        return block.astype(np.str_)
    except UnicodeDecodeError:
        return np.char.decode(block, "utf-8")


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def open_arrays(directory: Path, max_grade: float | None) -> Dataset:
    """Map the parsed arrays in a directory into memory; ValueError if they do not fit."""

    def array(name: str) -> Any:
        return np.load(directory / name, mmap_mode="r", allow_pickle=False).view(np.ndarray)

    features, grades, offsets = array("features.npy"), array("grades.npy"), array("offsets.npy")
    query_ids = array("query_ids.npy")
    doc_ids = array("doc_ids.npy") if (directory / "doc_ids.npy").exists() else None
    count = len(features)
    if (
        features.ndim != 2
        or features.dtype != np.float32
        or (grades.shape, grades.dtype) != ((count,), np.float32)
        or not (np.isfinite(grades) & (grades >= 0)).all()
        or (offsets.shape, offsets.dtype) != ((len(query_ids) + 1,), np.int64)
        or (offsets[0], offsets[-1]) != (0, count)
        or (np.diff(offsets) < 1).any()
        or not _is_text(query_ids)
        or (doc_ids is not None and not (doc_ids.shape == (count,) and _is_text(doc_ids)))
    ):
        raise ValueError(f"the arrays in {directory} do not belong together")
    highest = float(grades.max()) if max_grade is None else float(max_grade)
    return Dataset(features, offsets, query_ids, grades, doc_ids, highest)


def _is_text(ids: NDArray[Any]) -> bool:
    """Whether an array holds text: Python stops at a character that there is not."""
    if ids.dtype.kind != "U":
        return False
    return not ids.size or bool(ids.view(np.uint32).max() <= sys.maxunicode)
