"""What a service hands on: what was displayed, and what users did there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

CLICK = "click"


@dataclass(frozen=True)
class Impression:
    """One list that was displayed, to one user, by one version of the model."""

    impression_id: str
    time: float
    """When, in seconds since 1970, by the clock of the server."""
    query_id: str
    doc_ids: tuple[str, ...]
    """In the order in which they were displayed: those that a user could see, and no others."""
    version: int
    swapped: int = 0
    """The position that exploration exchanged with the first; 0 where nothing was exchanged."""
    client: str = ""
    """Who asked, as far as that is known; clicks of one client that looks wrong can be left out."""
    features: bytes = b""
    """Rows of float32 for `doc_ids`, where the request brought them; a table has them else."""


@dataclass(frozen=True)
class Event:
    """Something that a user did with a document of an impression."""

    event_id: str
    """Given by the client: the same event sent twice has the same one, and counts once."""
    impression_id: str
    doc_id: str
    kind: str = CLICK
    amount: float = 1.0
    time: float = 0.0
    """When it arrived, in seconds since 1970, by the clock of the server."""


Outcome = Literal["new", "again", "late", "unknown impression", "not displayed", "unknown kind"]
"""What became of an event. `new` and `late` are on disk; `late` ones came after their impression
was written into a segment, and are in no click log. A kind is unknown where it cannot be a column
of the log, or where there are too many kinds already (`event_kinds.py`)."""


class Transport(Protocol):
    """Where a server puts what happened: a store on its own disk, or a stream that others read."""

    def show(self, impression: Impression) -> None:
        """Hand an impression over; it is on disk before any event of it is acknowledged."""

    async def record(self, events: Sequence[Event]) -> list[Outcome]:
        """Put events on disk, and say what became of each; what returns has been acknowledged.

        A `StorageError` says that nothing could be written; then none of them counts.
        """

    def close(self) -> None:
        """Write what was handed over, and let go."""
