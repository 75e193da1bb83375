"""Start processes as forks of a server that has imported dualrank: 20 ms instead of 2 s each.

Forks of the test process itself would not be safe: other tests have left threads in it.
"""

from __future__ import annotations

import json
import multiprocessing
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from .waiting import wait_until

DUALRANK = "from dualrank.cli.process import run\nrun()"
"""The program of the command `dualrank`."""
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["dualrank.cli.app", "dualrank.online.learner.learner", "dualrank.online.service.serving",
     "dualrank.online.events.redis_stream", "pyarrow.parquet", "redis", "uvicorn", "uvloop"]
)  # fmt: skip
_STARTED: list[BaseProcess] = []
_IN_THE_FORK = """
import os, sys
for number, path in ((1, output), (2, errors)):
    os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
sys.argv = words
exec(compile(program, words[0], "exec"), {"__name__": "__main__"})
"""


def start_fork(program: str, *words: object, output: Path, errors: Path) -> BaseProcess:
    """Start a Python program with these arguments, in a fork that `end_forks` kills.

    What it writes to stdout and stderr is appended to the files `output` and `errors`.
    """
    given = {"program": program, "words": ["dualrank", *map(str, words)]}
    given |= {"output": str(output), "errors": str(errors)}
    process = FORKS.Process(target=exec, args=(_IN_THE_FORK, given), daemon=True)
    process.start()
    _STARTED.append(process)
    return process


def wait_for_answer(process: BaseProcess, output: Path, errors: Path) -> Any:
    """Return the JSON object that a command prints when it is ready."""
    is_complete = lambda: output.exists() and output.read_text().endswith("}\n")  # noqa: E731
    wait_until(lambda: is_complete() or not process.is_alive(), errors.read_text)
    assert process.is_alive(), errors.read_text()
    return json.loads(output.read_text())


def end_forks() -> None:
    """Kill all forks that still run."""
    while _STARTED:
        process = _STARTED.pop()
        process.kill()
        process.join()
