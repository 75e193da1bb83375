"""`Segments`: the closed files of a folder of events, as anybody may read them.

    EVENTS/clicks/000001.parquet      the documented click log, one row per displayed document
    EVENTS/_features/000001.parquet   features of what was displayed, where requests brought them

A segment is never changed once it is there. Names that begin with `_` are read by nobody who reads
the folder as a log.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from dualrank.online.events.event_tables import NAME, mendable, open_to_read

CLICKS = "clicks"
FEATURES = "_features"
ENDING = ".parquet"


class Segments:
    """The segments of a folder of events; a learner in another process may follow them."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def closed(self) -> list[int]:
        """The numbers of all segments that are whole, in their order."""
        wrong = set(self._unfinished())
        return sorted(number for number in self.files() if number not in wrong)

    def clicks(self, number: int) -> Path:
        """The click log of a segment."""
        return self.folder / CLICKS / f"{number:06}{ENDING}"

    def features(self, number: int) -> Path | None:
        """The features of what a segment displayed; None where requests brought none."""
        path = self.features_place(number)
        return path if path.exists() else None

    def features_place(self, number: int) -> Path:
        """Where the features of a segment lie, if there are any."""
        return self.folder / FEATURES / f"{number:06}{ENDING}"

    def files(self) -> list[int]:
        """The numbers of all files of clicks, whole or not."""
        found = (self.folder / CLICKS).glob(f"*{ENDING}")
        return [int(path.stem) for path in found if path.stem.isdecimal()]

    def _unfinished(self) -> Iterator[int]:
        """Segments that are to be written, or whose files are not what was written."""
        tables = open_to_read(self.folder)
        if tables is None:
            return
        with closing(tables), mendable(self.folder / NAME):
            rows = tables.execute(
                "SELECT number, written IS NOT NULL, clicks_bytes, features_bytes FROM segments "
                "WHERE NOT forgotten"
            ).fetchall()
        for number, written, clicks, features in rows:
            there = written and _bytes(self.clicks(number)) == clicks
            if features is not None:
                there = there and _bytes(self.features_place(number)) == features
            if not there:
                yield number


def _bytes(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
