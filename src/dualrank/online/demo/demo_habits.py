"""How the demo's users behave, what was wished of them, and what they tell of themselves.

    DEMO/start.json     the curve of the first model, and its nDCG@10 by query
    DEMO/wishes.json    what somebody asked for by the sliders; the server writes it
    DEMO/users.json     what users do and have seen; they write it, and the page shows it

All are written as a whole, so that server and users need nothing else of each other.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.errors import DataError
from dualrank.sentences import shortened
from dualrank.storage import read_json, write_text

START, WISHES, USERS = "start.json", "wishes.json", "users.json"
LIMITS: dict[str, tuple[float, float, float]] = {
    "eta": (0.0, 2.0, 0.1),
    "noise": (0.0, 0.4, 0.05),
    "rate": (0.0, 1_000.0, 50.0),
}
"""The least, the most, and the step of each slider."""
MOST_POINTS = 600


@dataclass(frozen=True)
class Habits:
    """What the sliders set: η, the noise of clicks, searches a second."""

    eta: float = 0.5
    noise: float = 0.1
    rate: float = 500.0

    @property
    def user(self) -> PositionBasedUser:
        """Who clicks."""
        return PositionBasedUser(eta=self.eta, epsilon=self.noise)

    def examination(self, depth: int) -> list[float]:
        """The truth behind the curve that is learned: the first position is 1."""
        curve = self.user.examination(depth)
        return [float(each) for each in curve / curve[0]]

    def wished(self, wish: Any) -> Habits:
        """These habits after a wish such as `{"eta": 1.2}`; a DataError says what is wrong."""
        if not isinstance(wish, dict) or not wish or not set(wish) <= set(LIMITS):
            raise DataError(f"{shortened(wish)}: expected one or more of {', '.join(LIMITS)}")
        for name, value in wish.items():
            least, most, _ = LIMITS[name]
            if type(value) not in (int, float) or not least <= value <= most:
                raise DataError(f"{name} is {shortened(value)}; expected {least:g} to {most:g}")
        return replace(self, **{name: float(value) for name, value in wish.items()})


@dataclass(frozen=True)
class Start:
    """The first model, as far as the page compares with it."""

    curve: list[float]
    quality: list[float]
    """nDCG@10 of what it shows, by query."""

    def write(self, folder: Path) -> None:
        """Keep it in the folder of the demo."""
        write_text(folder / START, json.dumps(asdict(self)) + "\n")

    @classmethod
    def read(cls, folder: Path) -> Start:
        """What was kept there."""
        return cls(**read_json(folder / START))


@dataclass
class Account:
    """What users tell: their habits, since when, and how good the lists were that they saw."""

    depth: int
    start: list[float]
    """The curve of the first model."""
    habits: Habits = field(default_factory=Habits)
    next_change: dict[str, float] | None = None
    truths: list[dict[str, Any]] = field(default_factory=list)
    quality: list[dict[str, float]] = field(default_factory=list)
    searches: int = 0

    def behave(self, habits: Habits) -> None:
        """Have these habits from now on."""
        if not self.truths or (habits.eta, habits.noise) != (self.habits.eta, self.habits.noise):
            truth = {"eta": habits.eta, "noise": habits.noise}
            examination = habits.examination(self.depth)
            self.truths.append({"time": time.time(), **truth, "examination": examination})
            del self.truths[1 : len(self.truths) - 40]
        self.habits = habits

    def see(self, shown: float, frozen: float) -> None:
        """Add a point of ranking quality; of old ones every second is left where there are many."""
        self.quality.append({"time": time.time(), "shown": shown, "frozen": frozen})
        if len(self.quality) > MOST_POINTS:
            half = MOST_POINTS // 2
            self.quality[:half] = self.quality[:half:2]

    def write(self, folder: Path) -> None:
        """Replace what is in the folder."""
        said = {
            "knobs": asdict(self.habits),
            "limits": LIMITS,
            "examination": self.habits.examination(self.depth),
            "start": self.start,
            "truths": self.truths,
            "next_change": self.next_change,
            "quality": self.quality,
            "searches": self.searches,
        }
        write_text(folder / USERS, json.dumps(said) + "\n")


def account_in(folder: Path) -> dict[str, Any]:
    """What users told last, for `/status`."""
    told: dict[str, Any] = read_json(folder / USERS)
    return told


def wish(folder: Path, what: Any) -> None:
    """Ask the users of a folder for other habits; what was asked before still holds."""
    Habits().wished(what)
    path = folder / WISHES
    before = read_json(path) if path.exists() else {}
    write_text(path, json.dumps({**before, **what}) + "\n")
