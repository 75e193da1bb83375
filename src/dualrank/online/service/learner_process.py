"""The learner as a child of a server: started again when it ends, and gone when the server is.

`python -m dualrank.online.service.learner_process PARENT WORDS…` is `dualrank WORDS…` in a process
that lets others go first, logs as the server does, and ends with its parent.
"""

from __future__ import annotations

import logging
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from dualrank.online.service.structured_log import LoggedLines, log_as_json

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
LONG_LIFE = 60.0
"""A learner that lived so many seconds is started again after the first pause."""
PATIENCE = 5.0
"""Seconds for a learner to end by itself."""
LOOK_EVERY = 0.5

log = logging.getLogger(__name__)


class LearnerProcess:
    """A child process that runs until it is stopped, however often that takes."""

    def __init__(
        self,
        words: Sequence[str],
        started: Callable[[], None] = lambda: None,
        pause: float = FIRST_PAUSE,
        output: Path | None = None,
    ) -> None:
        self._command = [sys.executable, "-m", __name__, str(os.getpid()), *words]
        self._started, self._pause = started, pause
        self._output = output
        self._stop = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._asked: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._supervise, name="learner", daemon=True)

    @property
    def pid(self) -> int | None:
        """The process that learns, if one does."""
        child = self._child
        return None if child is None or child.poll() is not None else child.pid

    def start(self) -> None:
        """Start it, and look after it."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Let it end; whoever calls does not wait."""
        self._stop.set()
        if self._child is not None:
            self._ask(self._child)

    def stop(self) -> None:
        """End it, if need be by force."""
        self.ask_to_stop()
        self._thread.join(PATIENCE + 1)

    def _supervise(self) -> None:
        pause = self._pause
        # One thread for each process: the other core is the server's.
        surroundings = {"OMP_NUM_THREADS": "1", **os.environ}
        while not self._stop.is_set():
            began = time.monotonic()
            self._child = self._begin(surroundings)
            self._started()
            log.info("the learner is process %d", self._child.pid)
            code = self._wait(self._child)
            if self._stop.is_set():
                return
            pause = self._pause if time.monotonic() - began > LONG_LIFE else pause
            log.error("the learner ended with %d; it is started again in %g s", code, pause)
            self._stop.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _ask(self, child: subprocess.Popen[bytes]) -> None:
        """Ask a child to end, once: a second signal would interrupt its end."""
        if child is not self._asked and child.poll() is None:
            self._asked = child
            child.terminate()

    def _begin(self, surroundings: dict[str, str]) -> subprocess.Popen[bytes]:
        """Start it; its log goes where the server's goes, or to the end of a file.

        What it answers at its end is nobody's: stdout is the server's.
        """
        with ExitStack() as held:
            file = None if self._output is None else held.enter_context(self._output.open("ab"))
            nothing = subprocess.DEVNULL
            return subprocess.Popen(
                self._command, stdin=nothing, stdout=nothing, stderr=file, env=surroundings
            )

    def _wait(self, child: subprocess.Popen[bytes]) -> int:
        while child.poll() is None and not self._stop.wait(LOOK_EVERY):
            pass
        if child.poll() is None:
            self._ask(child)
            try:
                child.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                log.error("the learner does not end, and is killed")
                child.kill()
        return child.wait()


def _end_with(parent: int) -> None:
    """Ask this process to end when its parent has gone, however that went."""

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_EVERY)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=look, name="parent", daemon=True).start()


if __name__ == "__main__":
    log_as_json()
    sys.stderr = LoggedLines()
    _end_with(int(sys.argv[1]))
    if hasattr(os, "nice"):
        os.nice(5)
    sys.argv = ["dualrank", *sys.argv[2:]]
    runpy.run_module("dualrank", run_name="__main__")
