"""What a learner has seen and done, round by round: one JSON file that servers and pages read.

It lies beside the versions, so that every server of a shared folder shows the same. It is replaced
as a whole, and holds the last rounds only.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dualrank.errors import DataError
from dualrank.online.plain_records import record_of
from dualrank.sentences import reason_of
from dualrank.storage import read_json, write_text

NAME = "learner.json"
MOST_ROUNDS = 1_000
MOST_ALARMS = 200


@dataclass(frozen=True)
class Round:
    """One round of learning: what came in, what is believed about position, how rankings did."""

    time: float
    """When it ended, in seconds since 1970."""
    sessions: int
    """All sessions that were learned from or held out, this round's included."""
    clicks: int
    """Their clicks."""
    delay: float
    """Seconds from the latest impression of the round to its end."""
    version: int
    """What was live when the round ended."""
    examination: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    """The curve as it is believed, the first position being 1, with a 95% interval."""
    worth: float | None = None
    worth_low: float | None = None
    worth_high: float | None = None
    """Corrected click-through of this round's lists, with a 95% interval: clicks a session, each
    weighted by the inverse examination of its position."""


@dataclass(frozen=True)
class Alarm:
    """What a person should know: the curve moved, traffic looks wrong, a feature is gone."""

    time: float
    kind: str
    """One word: `curve`, `clicks`, `client`, `feature`, `version`, `learner`, `events`."""
    said: str
    """One sentence, that names what was found."""


@dataclass(frozen=True)
class LearnerRecord:
    """The last rounds and alarms, the latest at the end."""

    rounds: list[Round] = field(default_factory=list)
    alarms: list[Alarm] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        """Replace what is in the folder."""
        kept = {
            "rounds": [asdict(each) for each in self.rounds[-MOST_ROUNDS:]],
            "alarms": [asdict(each) for each in self.alarms[-MOST_ALARMS:]],
        }
        write_text(folder / NAME, json.dumps(kept) + "\n")

    @classmethod
    def read(cls, folder: Path) -> LearnerRecord:
        """What was written last; nothing where no learner has been."""
        path = folder / NAME
        if not path.exists():
            return cls()
        found: Any = read_json(path)
        try:
            return cls(
                [record_of(Round, each) for each in found["rounds"]],
                [record_of(Alarm, each) for each in found["alarms"]],
            )
        except (TypeError, LookupError, ValueError) as error:
            raise DataError(f"{path}: damaged: {reason_of(error)}; remove it") from error
