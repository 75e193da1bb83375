"""`StreamCopying`: a thread that copies a stream into a store, for as long as it is held."""

from __future__ import annotations

import logging
import threading

from dualrank.errors import DualrankError
from dualrank.online.events.event_store import EventStore
from dualrank.online.events.redis_stream import RedisStream

_PAUSE = 0.5
_log = logging.getLogger(__name__)


class StreamCopying:
    """Copies until it is closed; where Redis is gone, or the disk is full, it tries again."""

    def __init__(self, stream: RedisStream, store: EventStore) -> None:
        self._stream = stream
        self._store = store
        self._stop = threading.Event()
        self.problem: str | None = None
        """Why nothing can be copied just now; None where all is well."""
        # Nothing is forgotten before it is known that nothing of it comes again.
        store.may_forget = False
        self._thread = threading.Thread(target=self._run, name="dualrank copying", daemon=True)

    def __enter__(self) -> StreamCopying:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the thread, when what it has read is copied."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._stream.copy_into(self._store, wait=0.5)
                if self.problem is not None:
                    _log.warning("events are copied again")
                self.problem = None
            except DualrankError as error:
                if self.problem is None:
                    _log.warning("events are not copied: %s", error)
                self.problem = str(error)
                self._stop.wait(_PAUSE)
            except Exception as error:
                _log.exception("events are not copied")
                self.problem = repr(error)
                self._stop.wait(_PAUSE)
