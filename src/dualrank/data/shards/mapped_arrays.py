"""Arrays in files, mapped into memory: the page cache holds what is used of them.

Plain `.npy` files, which every numpy reads. A file that is mapped is exactly as long as its header
says, so that no access can end beyond it.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from dualrank.errors import DataError
from dualrank.sentences import reason_of

LONGEST_HEADER = 10_000
"""Bytes; those of dualrank have some hundred."""


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array, row by row."""
    with path.open("xb") as file:
        header = {
            "descr": npy.dtype_to_descr(array.dtype),
            "fortran_order": False,
            "shape": array.shape,
        }
        npy.write_array_header_1_0(file, header)
        np.ascontiguousarray(array).tofile(file)


def map_array(
    path: Path, dtype: DTypeLike, shape: Sequence[int], *, at_random: bool = False
) -> NDArray[Any]:
    """Map an array that must be of this kind and shape.

    `at_random` says that rows are taken here and there: the system then reads no neighbours.
    """
    wanted, size = np.dtype(dtype), math.prod(shape)
    try:
        with path.open("rb") as file:
            found = _shape_and_kind(file)
            start = file.tell()
            there = path.stat().st_size
            if found != (tuple(shape), wanted) or there != start + size * wanted.itemsize:
                raise ValueError(
                    f"it holds {found[1]} {list(found[0])} in {there:,} bytes, and should hold "
                    f"{wanted} {list(shape)}"
                )
            if size == 0:
                return np.empty(tuple(shape), dtype=wanted)
            mapped = mmap.mmap(file.fileno(), there, access=mmap.ACCESS_READ)
    except (OSError, ValueError, SyntaxError, TypeError, MemoryError) as error:
        raise DataError(f"{path}: not the array that was written ({reason_of(error)})") from error
    if at_random and hasattr(mmap, "MADV_RANDOM"):
        mapped.madvise(mmap.MADV_RANDOM)
    return np.frombuffer(mapped, dtype=wanted, count=size, offset=start).reshape(tuple(shape))


def _shape_and_kind(file: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    if npy.read_magic(file) != (1, 0):
        raise ValueError("it is of another version of the format")
    shape, by_column, kind = npy.read_array_header_1_0(file, max_header_size=LONGEST_HEADER)
    if by_column or kind.hasobject:
        raise ValueError("it is not laid out row by row")
    return shape, kind
