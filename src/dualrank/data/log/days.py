"""A folder of days: a reduced log a day, which add up to the log of all of them.

Each day is a file of its own, `2026-11-02.parquet`: adding one costs what reducing it costs, and
dropping one removes a file. `added_days` adds them up when the folder is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from dualrank.data.click_log import ClickLog
from dualrank.data.log.log_options import CLICK, LogOptions
from dualrank.data.log.saved import note_of, refusing_damage, write_log
from dualrank.errors import DataError, SettingsError
from dualrank.sentences import counted, listed, shortened
from dualrank.storage import remove_unfinished, writing_alone

PREFIX = "day="
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,99}")
_DATE = re.compile(r"\d{4}-?\d\d-?\d\d")
_SAID = {
    "contexts": "contexts",
    "events": "events",
    "actions": "actions",
    "partial": "partial lists",
    "max_clicks": "max_clicks",
    "max_client_share": "max_client_share",
}
"""What days must have been reduced with alike, or their sum would be of different things."""


def day_name(text: str) -> str:
    """The name of a day, which is that of its file; a `SettingsError` for what could be a path.

    >>> day_name("day=2026-11-02"), day_name("2026-11-02")
    ('2026-11-02', '2026-11-02')
    """
    name = text.removeprefix(PREFIX)
    if not _NAME.fullmatch(name):
        raise SettingsError(
            f"{shortened(text)} names no day; expected up to 100 letters, digits, '-', '.' and "
            f"'_', such as {PREFIX}2026-11-02"
        )
    return name


def day_of_log(log: str) -> str:
    """The day that a log is called after: `clicks/day=2026-11-02/`, or a name that is a date.

    >>> day_of_log("clicks/2026-11-02.csv.gz"), day_of_log("clicks/day=monday/")
    ('2026-11-02', 'monday')
    """
    own = Path(log).name
    name = own if own.startswith(PREFIX) and Path(log).is_dir() else own.split(".")[0]
    if name.startswith(PREFIX) or _DATE.match(name):
        return day_name(name)
    raise SettingsError(
        f"{log}: this log is not called after a day; name it, such as {PREFIX}2026-11-02"
    )


@dataclass(frozen=True)
class Day:
    """What is noted of a day: how it was reduced, and how many sessions it had and kept."""

    path: str
    name: str
    reduced_with: Mapping[str, Any]
    sessions: int
    kept: int

    @classmethod
    def of(cls, path: str, note: Mapping[str, Any] | None = None) -> Day | None:
        """The day in a Parquet file; None where there is none."""
        with refusing_damage(path):
            note = note_of(path) if note is None else note
            if "day" not in note:
                return None
            name, with_what, reading = note["day"], note["reduced_with"], note["reading"]
            if not _NAME.fullmatch(name) or not isinstance(with_what, dict):
                raise ValueError("it does not tell which day it is")
            sessions, kept = (int(reading[each]) for each in ("sessions", "kept"))
            return cls(path, name, with_what, sessions, kept)


def refuse_unlike(days: Sequence[Day]) -> None:
    """Refuse days that are there twice, or that count different things."""
    for one, other in pairwise(days):
        if one.name == other.name:
            raise DataError(
                f"{other.path}: the day {one.name} is also in {one.path}; give one of them"
            )
        for what in _SAID:
            mine, theirs = (each.reduced_with.get(what) for each in (other, one))
            if mine != theirs:
                raise DataError(
                    f"{other.path}: this day has {_said(what, mine)}, and {one.name} has "
                    f"{_said(what, theirs)}; days that are to add up are reduced with the same "
                    "options"
                )


def _said(what: str, value: Any) -> str:
    if not value:
        return f"no {_SAID[what]}"
    if value is True:
        return _SAID[what]
    if isinstance(value, list):
        return f"the {_SAID[what]} {listed(map(shortened, value))}"
    return f"{_SAID[what]}={shortened(value)}"


class LogFolder:
    """The days in a folder, held by one process while it adds and drops some of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else changes the folder; what a killed process left unfinished is removed."""
        with writing_alone(self.folder):
            remove_unfinished(self.folder / "*.parquet")
            yield

    def path(self, name: str) -> Path:
        """The file of a day."""
        return self.folder / f"{name}.parquet"

    @property
    def names(self) -> list[str]:
        """The days in their order, which is that of their names."""
        return sorted(
            path.stem for path in self.folder.glob("*.parquet") if _NAME.fullmatch(path.stem)
        )

    def days(self, *, but: Sequence[str] = ()) -> list[Day]:
        """What is noted of each day, except for some."""
        found = []
        for name in self.names:
            if name in but:
                continue
            day = Day.of(str(self.path(name)))
            if day is None:
                raise DataError(
                    f"{self.path(name)}: not a day of a log; days are added to a folder of their "
                    "own"
                )
            if day.name != name:
                raise DataError(
                    f"{self.path(name)}: this is the day {day.name}; the file of a day has its name"
                )
            found.append(day)
        return found

    def refuse(
        self, name: str, options: LogOptions, actions: Sequence[str], *, force: bool = False
    ) -> None:
        """Refuse a day that is there, or would not add up with others, before it is reduced."""
        if self.path(name).exists() and not force:
            raise SettingsError(
                f"{self.folder}: the day {name} is there already; give force=True to replace it"
            )
        days = self.days(but=[name])
        new = Day(str(self.path(name)), name, reduced_with(options, actions), 0, 0)
        refuse_unlike([*days[-1:], new])

    def add(self, name: str, log: ClickLog, options: LogOptions, actions: Sequence[str]) -> None:
        """Write a day, in the place of one of its name."""
        write_log(log, self.path(name), day=name, reduced_with=reduced_with(options, actions))

    def require(self, names: Sequence[str]) -> None:
        """Refuse to drop a day that is not there."""
        there = self.names
        for name in names:
            if name not in there:
                range_ = f" from {there[0]} to {there[-1]}" if there else ""
                raise SettingsError(
                    f"{self.folder}: there is no day {name}; it has "
                    f"{counted(len(there), 'days')}{range_}"
                )

    def drop(self, names: Sequence[str]) -> None:
        """Remove days."""
        for name in names:
            self.path(name).unlink()


def reduced_with(options: LogOptions, actions: Sequence[str]) -> dict[str, Any]:
    """What is noted of how a day was reduced, to be compared with other days."""
    return {
        "contexts": list(options.contexts),
        "events": list(options.event_kinds),
        "actions": sorted(actions or (CLICK,)),
        "partial": options.partial,
        "max_clicks": options.max_clicks,
        "max_client_share": options.max_client_share,
    }
