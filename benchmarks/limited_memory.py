"""Commands that get so much memory and no more, page cache included, and what they took.

Linux limits a group of processes (a cgroup, of either version) where this user may make one, as
root mostly may. Elsewhere a command runs without a limit, and that is said.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

GIBIBYTE = 2**30
_EVERY = 0.1
_GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Run:
    """How a command went: seconds, the most memory of its own (no page cache), and its output."""

    seconds: float
    peak: int
    returncode: int
    output: str
    is_limited: bool


def run_limited(
    command: Sequence[str],
    limit: int | None = None,
    *,
    environment: Mapping[str, str] | None = None,
) -> Run:
    """Run a command within a limit of so many bytes."""
    began = time.perf_counter()
    with _group(limit) as group:

        def enter() -> None:
            if group is not None:
                (group / "cgroup.procs").write_text(str(os.getpid()))

        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=enter,
            env={**os.environ, **(environment or {})},
        ) as process:
            peak = 0
            while True:
                try:
                    output, _ = process.communicate(timeout=_EVERY)
                    break
                except subprocess.TimeoutExpired:
                    peak = max(peak, _own_memory(group, process.pid))
    seconds = time.perf_counter() - began
    return Run(seconds, peak, process.returncode, output, group is not None)


@contextlib.contextmanager
def _group(limit: int | None) -> Iterator[Path | None]:
    """A group of processes with this limit; None where there can be none."""
    if limit is None:
        yield None
        return
    old = _GROUPS / "memory"
    parent, file = (old, "memory.limit_in_bytes") if old.is_dir() else (_GROUPS, "memory.max")
    group = parent / f"dualrank-{os.getpid()}-{time.monotonic_ns()}"
    try:
        group.mkdir()
        (group / file).write_text(str(limit))
    except OSError:
        with contextlib.suppress(OSError):
            group.rmdir()
        yield None
        return
    try:
        yield group
    finally:
        for _ in range(50):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.1)


def _own_memory(group: Path | None, pid: int) -> int:
    """Bytes that are not the page cache's, of a group or of one process."""
    try:
        if group is not None:
            lines = (group / "memory.stat").read_text().split()
            stat = dict(zip(lines[::2], lines[1::2], strict=True))
            return int(stat.get("total_rss") or stat.get("anon") or 0)
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))
    except (OSError, StopIteration, ValueError):
        return 0
