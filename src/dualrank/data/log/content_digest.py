"""A digest of what a table holds, however it is cut into pieces and whatever file it lies in."""

from __future__ import annotations

import hashlib
from collections import defaultdict

import numpy as np
import pyarrow as pa


class ContentDigest:
    """The sha256 of the values of tables without nulls, added piece by piece."""

    def __init__(self) -> None:
        self._parts = defaultdict[str, "hashlib._Hash"](hashlib.sha256)

    def add(self, piece: pa.Table) -> None:
        """Go on with these rows."""
        for name in piece.column_names:
            for chunk in piece[name].chunks:
                self._add(name, chunk)

    def result(self, note: str) -> str:
        """The digest of all that was added, and of a note beside it."""
        whole = hashlib.sha256(note.encode())
        for name in sorted(self._parts):
            whole.update(f"{len(name)} {name}".encode() + self._parts[name].digest())
        return whole.hexdigest()

    def _add(self, name: str, values: pa.Array) -> None:
        """Every leaf, and the lengths above it, has a digest of its own: pieces leave no trace."""
        kind = values.type
        if pa.types.is_struct(kind):
            for field, inner in zip(kind, values.flatten(), strict=True):
                self._add(f"{name}.{field.name}", inner)
        elif pa.types.is_list(kind):
            self._update(f"{name}[]", values.value_lengths().to_numpy().astype("<i8"))
            self._add(f"{name}[*]", values.flatten())
        elif pa.types.is_large_string(kind):
            starts = np.frombuffer(values.buffers()[1] or b"", dtype="<i8")
            starts = starts[values.offset : values.offset + len(values) + 1]
            self._update(f"{name}[]", np.diff(starts))
            if len(starts) and values.buffers()[2] is not None:
                text = memoryview(values.buffers()[2])[starts[0] : starts[-1]]
                self._parts[name].update(text)
        else:
            self._update(name, values.to_numpy())

    def _update(self, name: str, values: np.ndarray) -> None:
        little = values.astype(values.dtype.newbyteorder("<"), copy=False)
        self._parts[name].update(np.ascontiguousarray(little).view(np.uint8).data)
