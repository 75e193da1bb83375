"""Arrays in files, mapped into memory: the page cache holds what is used of them.

Plain `.npy` files, which every numpy reads. A file that is mapped begins as dualrank would have
written it, and is exactly as long, so that no access can end beyond it.
"""

from __future__ import annotations

import io
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
from dualrank.storage import atomic_file


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array, row by row."""
    with atomic_file(path) as file:
        file.write(_header(array.dtype, array.shape))
        file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def map_array(path: Path, dtype: DTypeLike, shape: Sequence[int]) -> NDArray[Any]:
    """Map an array that must be of this kind and shape."""
    kind, count = np.dtype(dtype), math.prod(shape)
    header = _header(kind, shape)
    try:
        with path.open("rb") as file:
            there = path.stat().st_size
            if file.read(len(header)) != header or there != len(header) + count * kind.itemsize:
                raise ValueError(f"in {there:,} bytes, it does not hold {kind} {list(shape)}")
            if count == 0:
                return np.empty(tuple(shape), dtype=kind)
            mapped = mmap.mmap(file.fileno(), there, access=mmap.ACCESS_READ)
    except (OSError, ValueError, OverflowError) as error:
        raise DataError(f"{path}: not the array that was written ({reason_of(error)})") from error
    return np.frombuffer(mapped, dtype=kind, count=count, offset=len(header)).reshape(tuple(shape))


def _header(dtype: np.dtype[Any], shape: Sequence[int]) -> bytes:
    """How the file of an array begins: nothing else is read, so that nothing is parsed."""
    file = io.BytesIO()
    described = {
        "descr": npy.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": tuple(shape),
    }
    npy.write_array_header_1_0(file, described)
    return file.getvalue()
