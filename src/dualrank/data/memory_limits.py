"""What would not fit into memory is refused before it is read."""

from __future__ import annotations

import os

from dualrank.errors import DataError


def memory_of_machine() -> int:
    """Bytes of memory; what cannot be found out is taken for plenty."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 1 << 62


def require_memory(size: int, what: str) -> None:
    """Refuse something of this many bytes where the machine has less; `what` begins a sentence."""
    there = memory_of_machine()
    if size > there:
        raise DataError(
            f"{what} would take {size / 1e9:,.1f} GB of memory; there are {there / 1e9:,.1f} GB"
        )
