"""Independent pieces of work over several processes, with progress from all of them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing.managers import SyncManager
from typing import Any, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
Report = Callable[[int, int, int], None]
"""Called with the index of a task, how much of it is done and how much there is."""

_reports: Any = None


def _start_worker(reports: Any, threads: int) -> None:
    import torch

    global _reports
    _reports = reports
    torch.set_num_threads(threads)
    _end_with_parent()


def _end_with_parent() -> None:
    """Leave Ctrl-C to the parent, which ends its children; and go when it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _call(work: Callable[[Any, Any], Any], index: int, task: Any) -> Any:
    return work(task, lambda done, total: _reports.put((index, done, total)))


def map_tasks(
    work: Callable[[Task, Callable[[int, int], None]], Result],
    tasks: Sequence[Task],
    *,
    jobs: int = 1,
    report: Report | None = None,
) -> Iterator[tuple[int, Result]]:
    """Yield `(index, work(task, progress))` as the tasks finish, one thread each.

    Every task carries its own seed, so the results do not depend on how many jobs there are.
    `work` must be importable (a module-level function).
    """
    if jobs <= 1 or len(tasks) <= 1:
        yield from _in_this_process(work, tasks, report)
        return
    # Waiting OpenMP threads of the workers must sleep, not spin: the cores are all in use.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    context = multiprocessing.get_context("spawn")
    manager = SyncManager(ctx=context)
    manager.start(_end_with_parent)
    with manager:
        reports = manager.Queue()
        with ProcessPoolExecutor(
            min(jobs, len(tasks)), context, _start_worker, (reports, 1)
        ) as pool:
            running: dict[Future[Result], int] = {
                pool.submit(_call, work, index, task): index for index, task in enumerate(tasks)
            }
            try:
                while running:
                    finished, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
                    while report and not reports.empty():
                        report(*reports.get())
                    for future in finished:
                        yield running.pop(future), future.result()
            except BaseException:
                # Leave at once: the work of a task that is half done is lost in any case.
                pool.shutdown(wait=False, cancel_futures=True)
                for worker in multiprocessing.active_children():
                    worker.terminate()
                raise


def _in_this_process(
    work: Callable[[Task, Callable[[int, int], None]], Result],
    tasks: Sequence[Task],
    report: Report | None,
) -> Iterator[tuple[int, Result]]:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for index, task in enumerate(tasks):

            def progress(done: int, total: int, index: int = index) -> None:
                if report:
                    report(index, done, total)

            yield index, work(task, progress)
    finally:
        torch.set_num_threads(threads)
