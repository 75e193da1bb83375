"""What a page shows of a service: one JSON object, and a stream of its parts that changed."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from typing import Any

from pydantic_core import to_json

from dualrank.errors import DualrankError
from dualrank.online.learner_record import NAME, LearnerRecord
from dualrank.online.service.live_model import LiveModel
from dualrank.sentences import reason_of

MOST_ROUNDS, MOST_HAPPENINGS, MOST_VERSIONS = 300, 200, 200
EVERY = 1.0
"""Seconds between two messages of a stream."""
SILENCE = 15.0
"""After so many seconds without news a stream says that it is still there."""
FRESH = 0.5
"""Seconds for which a state is good enough for everybody who asks."""

log = logging.getLogger(__name__)


class StatusBoard:
    """The state of a service, gathered when somebody asks and no more often than needed."""

    def __init__(
        self,
        live: LiveModel,
        counts: Callable[[], dict[str, Any]],
        demo: Callable[[], dict[str, Any] | None] = lambda: None,
    ) -> None:
        self._live, self._counts, self._demo = live, counts, demo
        self._record = LearnerRecord()
        self._record_seen: tuple[int, int, int] | None = None
        self._texts: dict[str, str] = {}
        self._gathered = -math.inf

    def record(self) -> LearnerRecord:
        """What the learner wrote last."""
        folder = self._live.versions.folder
        try:
            found = os.stat(folder / NAME)
            seen = (found.st_ino, found.st_mtime_ns, found.st_size)
            if seen != self._record_seen:
                self._record_seen = seen
                self._record = LearnerRecord.read(folder)
        except FileNotFoundError:
            self._record = LearnerRecord()
        except (DualrankError, OSError) as error:
            log.warning("what the learner wrote cannot be read: %s", reason_of(error))
        return self._record

    def parts(self) -> dict[str, Any]:
        """Every part of the state, as plain values."""
        note, record = self._live.note, self.record()
        versions = list(note.versions.values())[-MOST_VERSIONS:]
        return {
            "live": asdict(note.versions[note.live]),
            "answers": self._live.current.number,
            "versions": [asdict(each) for each in versions],
            "happened": [asdict(each) for each in note.happened[-MOST_HAPPENINGS:]],
            "rounds": [_short(asdict(each)) for each in record.rounds[-MOST_ROUNDS:]],
            "alarms": [asdict(each) for each in record.alarms],
            "counts": self._counts(),
            "demo": self._demo(),
        }

    def texts(self) -> dict[str, str]:
        """The parts as JSON; a part that has not changed is the same text as before."""
        now = time.monotonic()
        if now - self._gathered < FRESH:
            return self._texts
        # What no JSON has, nan, is null: a page cannot read it else.
        texts = {
            name: to_json(value, inf_nan_mode="null").decode()
            for name, value in self.parts().items()
        }
        self._texts = {
            name: before if (before := self._texts.get(name)) == text else text
            for name, text in texts.items()
        }
        self._gathered = now
        return self._texts

    async def whole(self) -> bytes:
        """The state as one JSON object."""
        return _joined(await asyncio.to_thread(self.texts)).encode()

    async def stream(self, stopping: asyncio.Event) -> AsyncIterator[bytes]:
        """Server-sent events: everything first, then what changed, until the service stops."""
        sent: dict[str, str] = {}
        spoke = time.monotonic()
        yield b"retry: 2000\n\n"
        while not stopping.is_set():
            texts = await asyncio.to_thread(self.texts)
            news = {name: text for name, text in texts.items() if sent.get(name) != text}
            if news:
                sent = texts
                spoke = time.monotonic()
                yield f"data: {_joined(news)}\n\n".encode()
            elif time.monotonic() - spoke > SILENCE:
                spoke = time.monotonic()
                yield b": still here\n\n"
            try:
                async with asyncio.timeout(EVERY):
                    await stopping.wait()
            except TimeoutError:
                continue


def _joined(texts: dict[str, str]) -> str:
    parts = [f'"{name}":{text}' for name, text in texts.items()]
    return "{" + ",".join([f'"time":{time.time():.3f}', *parts]) + "}"


def _short(values: dict[str, Any]) -> dict[str, Any]:
    """Curves with as many digits as a figure can show."""
    return {
        name: [float(f"{each:.5g}") for each in value] if isinstance(value, list) else value
        for name, value in values.items()
    }
