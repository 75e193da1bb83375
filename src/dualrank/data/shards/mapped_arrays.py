"""Arrays in files, mapped into memory: the page cache holds what is used of them.

Plain `.npy` files, which every numpy reads. A file that is mapped begins as dualrank would have
written it, and is exactly as long, so that no access can end beyond it. It is not held open: a map
needs no open file, of which a process may have no more than some hundred, and is given back when
the last array over it goes.
"""

from __future__ import annotations

import errno
import io
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from dualrank.errors import DataError
from dualrank.sentences import reason_of
from dualrank.storage import atomic_file

_LIMITS = tuple(os.strerror(code) for code in (errno.EMFILE, errno.ENFILE, errno.ENOMEM))
"""What the system says against one file more; Arrow does not always pass on the number."""


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array, row by row."""
    with atomic_file(path) as file:
        file.write(_header(array.dtype, array.shape))
        file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def map_array(path: Path, dtype: DTypeLike, shape: Sequence[int]) -> NDArray[Any]:
    """Map an array that must be of this kind and shape."""
    kind, count = np.dtype(dtype), math.prod(shape)
    header = _header(kind, shape)
    length = len(header) + count * kind.itemsize
    try:
        # Arrow keeps what it has mapped when the file is closed; Python's mmap keeps the file open.
        with pa.memory_map(os.fsencode(path)) as file:
            there = file.size()
            if there != length or file.read(len(header)) != header:
                raise ValueError(f"in {there:,} bytes, it does not hold {kind} {list(shape)}")
            if count == 0:
                return np.empty(tuple(shape), dtype=kind)
            file.seek(0)
            mapped = file.read_buffer(length)
    except (OSError, ValueError, OverflowError) as error:
        if any(limit in str(error) for limit in _LIMITS):
            raise DataError(
                f"{path}: cannot be mapped beside all others ({reason_of(error)}); raise the limit "
                "(ulimit -n, or vm.max_map_count), start more workers, or reduce the log into "
                "fewer shards"
            ) from error
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
