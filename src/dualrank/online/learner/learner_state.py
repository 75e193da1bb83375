"""What a learner must know to go on after it was killed: one JSON file beside the versions.

It is replaced as a whole once the model that it names is on disk as a version. Which segments were
learned and the model that learned them are therefore always of one moment: a round that was killed
is done again from the version before it, and none is learned twice or skipped.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dualrank.errors import CheckpointError
from dualrank.online.plain_records import record_of
from dualrank.sentences import reason_of
from dualrank.storage import read_json, write_text

NAME = "learner-state.json"
FORMAT = 1
MOST_ROUNDS = 1_000


@dataclass(frozen=True)
class LearnerState:
    """How far a learner has come."""

    model: int
    """The version that it goes on from: the latest candidate, live or not."""
    live: int
    """What was live when this was written: another one now was put there by somebody else."""
    learned: int = 0
    """All segments up to this number were learned, or left out for good."""
    decided: bool = True
    """Whether it is settled what becomes of `model`."""
    rounds: tuple[tuple[int, int, int], ...] = ()
    """The first and last segment of each of the last rounds, in which clicks are read again, and
    the version that scored them before they were learned."""
    changed_at: int = 0
    """The first segment of today's habits."""
    changed_version: int = 0
    """The first version that knows of today's habits."""
    believed: tuple[float, ...] = ()
    """The curve that was believed when today's habits began; none where users had just changed."""
    curve: tuple[float, ...] = ()
    """What the clicks of the last rounds say about position, by the scores of versions from before
    they were learned: versions are compared by it. None where that is not known."""
    suspect: bool = False
    """Whether the last round raised an alarm about the curve, and so mixes two habits."""
    sessions: int = 0
    clicks: int = 0
    rates: tuple[float, ...] = field(default=())
    """Clicks a session of the last rounds."""
    starts: int = 0
    """How often a learner was started since one came to the end of a look."""

    def write(self, folder: Path) -> None:
        """Replace what is in the folder."""
        write_text(folder / NAME, json.dumps({"format": FORMAT, **asdict(self)}) + "\n")

    @classmethod
    def read(cls, folder: Path) -> LearnerState | None:
        """What was written last, if a learner has been there."""
        path = folder / NAME
        if not path.exists():
            return None
        found: Any = read_json(path, CheckpointError)
        try:
            if found.pop("format") != FORMAT:
                raise ValueError("another version of dualrank wrote it")
            return record_of(cls, found)
        except (AttributeError, TypeError, LookupError, ValueError) as error:
            raise CheckpointError(
                f"{path}: damaged: {reason_of(error)}; remove it, and the learner goes on from the "
                "live version with the segments that come then"
            ) from error
