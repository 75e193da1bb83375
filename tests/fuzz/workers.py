"""Processes in which mutated files are read: small, short-lived, and replaced when they die."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import resource
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path

from .attack import Verdict, attack
from .formats import FORMATS

SECONDS = 20
"""What a reading may take."""
STARTING_SECONDS = 300
"""What the first, whole reading may take: kernels may have to be compiled."""
MEMORY = 4 << 30
"""Bytes of address space beyond those that a worker begins with."""

_fork = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Settings:
    """Where whole files lie, where mutated ones go, and the seed of all chance."""

    seeds: Path
    scratch: Path
    seed: int
    seconds: float = SECONDS


class Worker:
    """A process that reads mutated files of one format, one after the other."""

    def __init__(self, name: str, settings: Settings, place: int) -> None:
        self.name, self.settings = name, settings
        self.folder = settings.scratch / f"{place}" / name
        self.errors = settings.scratch / f"{place}.stderr"
        settings.scratch.mkdir(parents=True, exist_ok=True)
        self.connection, theirs = _fork.Pipe()
        self.process = _fork.Process(
            target=_work, args=(name, settings, self.folder, self.errors, theirs), daemon=True
        )
        self.process.start()
        theirs.close()
        self.number: int | None = None
        self.deadline = time.monotonic() + STARTING_SECONDS

    def send(self, number: int) -> None:
        """Let it read the mutation of this number."""
        self.number = number
        self.deadline = time.monotonic() + self.settings.seconds
        self.connection.send(number)

    def receive(self) -> Verdict | None:
        """What it found, None when it is ready; or what its silence or its death means."""
        try:
            if self.connection.poll():
                found: Verdict | None = self.connection.recv()
                return found
        except (EOFError, ConnectionError):
            self.process.join()
            return Verdict("death", self._last_words(), f"exit code {self.process.exitcode}")
        if time.monotonic() < self.deadline:
            raise TimeoutError
        os.kill(self.process.pid or 0, signal.SIGABRT)  # it shows where it was
        self.process.join(5)
        return Verdict("hang", self._last_words(), f"more than {self.settings.seconds:g} s")

    def end(self) -> None:
        """Leave no process behind."""
        self.connection.close()
        self.process.kill()
        self.process.join()

    def _last_words(self) -> str:
        """The innermost line of dualrank's own that the process was seen at."""
        lines = self.errors.read_text(errors="replace").splitlines()
        places = [line for line in lines if "/dualrank/" in line and "File" in line]
        shown = places[0].rpartition("/dualrank/")[2] if places else " ".join(lines[-1:])
        return shown.replace('", line ', ":")[:200]


def _work(
    name: str, settings: Settings, folder: Path, errors: Path, connection: Connection
) -> None:
    """Read the whole file, then mutated ones, until the other side is gone."""
    with errors.open("w") as file:
        os.dup2(file.fileno(), 2)
        os.dup2(file.fileno(), 1)
    faulthandler.enable()
    with open("/proc/self/statm") as pages:
        begun = int(pages.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (begun + MEMORY, begun + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(settings.seeds / name, folder)
    format = FORMATS[name]
    before = repr(format.read(folder))
    if format.seal is not None:  # which must fit, or only refusals would be tried
        format.seal(folder)
        if repr(format.read(folder)) != before:
            raise ValueError("mending the digest of a whole file changes it")
    connection.send(None)
    while True:
        try:
            number = connection.recv()
        except EOFError:
            return
        connection.send(attack(name, settings.seeds, folder, before, settings.seed, number))


def read_all(
    tasks: Iterator[tuple[str, int]], settings: Settings, processes: int
) -> Iterator[tuple[str, int, Verdict, Path]]:
    """Format, number, verdict and the folder with the file, as they come."""
    places = {place: next(tasks, None) for place in range(processes)}
    workers: dict[int, Worker] = {}
    try:
        while any(task is not None for task in places.values()):
            for place, task in places.items():
                if task is None or place in workers:
                    continue
                workers[place] = Worker(task[0], settings, place)
            wait([worker.connection for worker in workers.values()], timeout=0.5)
            for place, worker in list(workers.items()):
                task = places[place]
                if task is None:
                    continue
                try:
                    verdict = worker.receive()
                except TimeoutError:
                    continue
                if verdict is None:
                    worker.send(task[1])
                    continue
                if worker.number is None:
                    raise SystemExit(f"{worker.name}: the whole file cannot be read: {verdict}")
                yield *task, verdict, worker.folder
                places[place] = task = next(tasks, None)
                gone = verdict.outcome in ("hang", "death")
                if gone or task is None or task[0] != worker.name:
                    workers.pop(place).end()
                else:
                    worker.send(task[1])
    finally:
        for worker in workers.values():
            worker.end()
