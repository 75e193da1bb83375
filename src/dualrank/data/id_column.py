"""Ids of queries or documents, collected from text and stored as an array."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dualrank.data.matrix_file import npy_header


class IdColumn:
    """Ids in blocks of bytes; the four bytes per character of numpy's str come only on disk."""

    def __init__(self) -> None:
        self._blocks: list[NDArray[np.bytes_]] = []
        self._characters = 0

    def append(self, text: NDArray[np.uint8], spans: NDArray[np.int64]) -> int | None:
        """Add the ids at these spans; if one is not UTF-8, add nothing and return its row."""
        longest = int((spans[:, 1] - spans[:, 0]).max(initial=0))
        letters = np.zeros((len(spans), max(1, longest)), np.uint8)
        _copy_spans(text, spans, letters)
        block = letters.view(f"S{letters.shape[1]}").ravel()
        if letters.max(initial=0) >= 128:
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


@njit(cache=True)
def _copy_spans(text, spans, out):  # type: ignore[no-untyped-def]
    """Copy `text[spans[i, 0]:spans[i, 1]]` to the start of row i of `out`."""
    for row in range(len(spans)):
        start = spans[row, 0]
        for column in range(spans[row, 1] - start):
            out[row, column] = text[start + column]
