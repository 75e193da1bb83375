"""Log lines as JSON, one object a line, for programs that collect them."""

from __future__ import annotations

import io
import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

LONGEST_LINE = 2_000
_KNOWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}


class JsonLines(logging.Formatter):
    """A record as JSON: time, level, who says it, what, and whatever was added by `extra`.

    Everything outside of ASCII is written out, so that no id or name can end a line, or move the
    cursor of somebody who looks.

    >>> said = {"msg": "found %s", "args": ("x\\n\\x1b[31m",), "route": "/"}
    >>> record = logging.makeLogRecord(said)
    >>> found = json.loads(JsonLines().format(record))
    >>> found["message"], found["route"]
    ('found x\\n\\x1b[31m', '/')
    """

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        said: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage()[:LONGEST_LINE],
        }
        said |= {name: each for name, each in vars(record).items() if name not in _KNOWN}
        if record.exc_info and record.exc_info[1] is not None:
            said["error"] = "".join(traceback.format_exception(*record.exc_info))[-8_000:]
        return json.dumps(said, default=str)


class LoggedLines(io.TextIOBase):
    """A stderr whose lines are log messages: what a command says that knows of no log."""

    def __init__(self) -> None:
        self._begun = ""

    def write(self, text: str) -> int:
        """Log the lines that end here."""
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            if line.strip():
                logging.getLogger("dualrank").warning("%s", line.removeprefix("dualrank: "))
        return len(text)


def log_as_json(level: int = logging.INFO) -> None:
    """Write what is logged as JSON lines on stderr, from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    # What the server says of its own start and end is ours to say.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
