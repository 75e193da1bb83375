"""Work on a stream over several processes, in order and with bounded memory."""

from __future__ import annotations

import errno
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from typing import Any, TypeVar

from dualrank.errors import DataError

Item = TypeVar("Item")
Result = TypeVar("Result")

_AHEAD = 2
"""Items per process that are sent before their results are asked for."""

_work: Callable[[Any], Any] | None = None


def _start(work: Callable[[Any], Any]) -> None:
    global _work
    _work = work


def _call(item: Any) -> Any:
    assert _work is not None
    return _work(item)


def map_stream(
    work: Callable[[Item], Result], items: Iterable[Item], *, jobs: int = 0
) -> Iterator[tuple[Item, Result]]:
    """Yield every item with `work(item)`, in order.

    `work` is sent to each process once, so it must be importable or made of importable things.
    0 jobs are one process per core; with one job, or one item, all happens in this process.
    """
    jobs = jobs or os.cpu_count() or 1
    stream = iter(items)
    beginning = list(islice(stream, 2))
    if jobs == 1 or len(beginning) < 2:
        for item in chain(beginning, stream):
            yield item, work(item)
        return
    waiting: deque[tuple[Item, Future[Result]]] = deque()
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, context, _start, (work,))
    try:
        for item in chain(beginning, stream):
            waiting.append((item, pool.submit(_call, item)))
            if len(waiting) > _AHEAD * jobs:
                done, future = waiting.popleft()
                yield done, future.result()
        for done, future in waiting:
            yield done, future.result()
    except BrokenProcessPool as error:
        raise DataError(
            "a process that read pages was killed, for want of memory perhaps; jobs=1 needs less"
        ) from error
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE, errno.EAGAIN):
            raise
        raise DataError(
            f"the processes that read pages cannot be started ({error.strerror}); jobs=1 needs none"
        ) from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
