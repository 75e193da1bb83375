"""Times of calls."""

import time
from collections.abc import Callable


def seconds(task: Callable[[], object]) -> float:
    """The time that one call takes."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start
