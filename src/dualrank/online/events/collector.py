"""`Collector`: a thread that makes segments of what a store holds, and forgets what is old."""

from __future__ import annotations

import logging
import threading

from dualrank.errors import DualrankError
from dualrank.online.events.event_store import EventStore
from dualrank.online.events.event_tables import open_to_read
from dualrank.online.events.segment_assignments import (
    Assigned,
    assigned,
    close_segment,
    forget,
    mark_written,
)
from dualrank.online.events.segment_files import are_there, write_segment
from dualrank.online.events.segments import Segments

EVERY = 10.0
MOST = 20_000
KEPT = 86_400.0
_LOOKS = 0.5
"""Seconds between two looks at the store, at most."""
_log = logging.getLogger(__name__)


class Collector:
    """Closes a segment `every` so many seconds, or when `most` impressions are ready for it.

    An impression is ready when it has waited for its events as long as the store says. Rows of the
    store are `kept` so many seconds after their segment was written: until then an event that comes
    twice is known, and one that comes late is counted; afterwards its impression is unknown.

    What an earlier process closed and did not write, or what is no longer as it was written, is
    written first.
    """

    def __init__(
        self,
        store: EventStore,
        segments: Segments,
        every: float = EVERY,
        *,
        most: int = MOST,
        kept: float = KEPT,
    ) -> None:
        self._store = store
        self._segments = segments
        self._every = every
        self._most = most
        self._kept = kept
        self._last = store.now()
        self._stop = threading.Event()
        self.problem: str | None = None
        """Why no segment can be written just now; None where all is well."""
        self._mended = False
        self._files = 0
        """The highest number of a file that was there at the start."""
        self._thread = threading.Thread(target=self._run, name="dualrank segments", daemon=True)

    def start(self) -> Collector:
        """Begin."""
        self._thread.start()
        return self

    def close(self) -> None:
        """End the thread, when the segment that it is writing is written."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def __enter__(self) -> Collector:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def collect(self) -> list[int]:
        """Close and write what is due, and forget what is old; the numbers that were written."""
        written = [] if self._mended else self._mend()
        for segment in assigned(self._store, unwritten=True):
            self._write(segment)
            written.append(segment.number)
        while not self._stop.is_set():
            # A full segment is closed at once, any other when it is time.
            due = self._store.now() - self._last >= self._every
            closed = close_segment(
                self._store,
                least=1 if due else self._most,
                most=self._most,
                after=self._files,
            )
            if due:
                self._last = self._store.now()
            if closed is None:
                break
            self._write(closed)
            written.append(closed.number)
        while not self._stop.is_set() and forget(self._store, self._kept):
            pass
        return written

    def _run(self) -> None:
        while not self._stop.wait(min(_LOOKS, self._every)):
            try:
                self.collect()
                if self.problem is not None:
                    _log.warning("segments are written again")
                self.problem = None
            except DualrankError as error:
                if self.problem is None:
                    _log.warning("no segment can be written: %s", error)
                self.problem = str(error)
            except Exception as error:
                _log.exception("no segment can be written")
                self.problem = repr(error)

    def _mend(self) -> list[int]:
        """Write again what is not as it was written; of the last one the contents are compared.

        Whoever was killed was writing the last one: those before were found whole when it began.
        """
        there = [segment for segment in assigned(self._store) if segment.files is not None]
        torn = [
            segment
            for segment in there
            if not are_there(self._segments, segment, contents=segment is there[-1])
        ]
        for segment in torn:
            _log.warning("segment %d is not as it was written; it is written again", segment.number)
            self._write(segment)
        # Once, and not in the thread that commits: a folder may have very many files.
        self._files = max(self._segments.files(), default=0)
        self._mended = True
        return [segment.number for segment in torn]

    def _write(self, segment: Assigned) -> None:
        tables = open_to_read(self._store.folder)
        assert tables is not None
        try:
            files = write_segment(tables, self._segments, segment)
        finally:
            tables.close()
        mark_written(self._store, segment.number, files)
