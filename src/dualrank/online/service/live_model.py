"""The model in front of users: one reference, exchanged when another version has been loaded.

A thread looks at the note of versions. A version that goes live is read and tried beside the one
that answers, and takes its place when it can answer: a request, which takes the reference once,
is answered by one version from start to end. One that cannot be read is said and counted, and the
old one goes on.
"""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass
from time import monotonic

import numpy as np

from dualrank.errors import DualrankError
from dualrank.learning.model import Model
from dualrank.online.versions import NOTE, Note, Versions
from dualrank.sentences import reason_of

LOOK_EVERY = 0.25
"""Seconds between looks at the note."""
TRY_AGAIN = 10.0
"""Seconds until a version that could not be loaded is tried again."""
WARM_ROWS = (1, 100)

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class LiveVersion:
    """A version that can answer."""

    number: int
    model: Model

    @property
    def inputs(self) -> int:
        """How many features it knows."""
        return self.model.scaler.input_count


class LiveModel:
    """Follows the live version of a folder.

    `current` is the version that answers; `failures` counts versions that could not be loaded.
    """

    def __init__(self, versions: Versions) -> None:
        self.versions = versions
        self.failures = 0
        # The stamp first: what is published between the two is then seen at the next look.
        self._seen = self._stamp()
        self._note = versions.note()
        self._failed: tuple[int, float] = (0, 0.0)
        self._changing = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.current = self._load(self._note.live)

    def start(self) -> None:
        """Follow the folder from now on."""
        self._thread = threading.Thread(target=self._follow, name="versions", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Follow it no more."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    @property
    def note(self) -> Note:
        """What the folder said last."""
        return self._note

    def look(self) -> None:
        """Take the live version, if it is another one by now."""
        with self._changing:
            stamp = self._stamp()
            failed, when = self._failed
            retry = bool(failed) and monotonic() - when > TRY_AGAIN
            if stamp == self._seen and not retry:
                return
            try:
                self._note = self.versions.note()
            except (DualrankError, OSError) as error:
                log.error("the note of versions cannot be read: %s", reason_of(error))
                self._seen = stamp
                self._failed = (-1, monotonic())
                return
            self._seen = stamp
            number = self._note.live
            if number == self.current.number:
                self._failed = (0, 0.0)
                return
            if failed == number and not retry:
                return
            try:
                loaded = self._load(number)
            except (DualrankError, OSError, MemoryError) as error:
                if failed != number:
                    self.failures += 1
                self._failed = (number, monotonic())
                log.error(
                    "version %d cannot be loaded, %d goes on: %s",
                    *(number, self.current.number, reason_of(error)),
                )
                return
            self._failed = (0, 0.0)
            self.current = loaded
            log.info("version %d answers from now on", number)

    def _load(self, number: int) -> LiveVersion:
        """A version, tried on lists of zeros: the first answer takes as long as the others."""
        loaded = LiveVersion(number, self.versions.load(number))
        if not loaded.model.ranker.by_list:
            for rows in WARM_ROWS:
                loaded.model.predict(np.zeros((rows, loaded.inputs), np.float32))
        return loaded

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self.versions.folder / NOTE)
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _follow(self) -> None:
        while not self._stop.wait(LOOK_EVERY):
            try:
                self.look()
            except Exception:  # whatever it is, the version that answers goes on
                log.exception("the versions cannot be followed")
