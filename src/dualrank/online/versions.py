"""Versions of a model: a folder of model directories, and a note that says which one is live.

    MODELS/versions.json     which is live, what became of each, and why
    MODELS/000001/ …         model directories, the latest ones
    MODELS/learner.json      what the learner has seen (`learner_record.py`)

The note is replaced as a whole after the model that it names is on disk, by one process at a time:
whoever reads it finds a version that is there. Servers, learner and commands all go by it.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from dualrank.errors import CheckpointError, SettingsError
from dualrank.learning.model import Model
from dualrank.learning.model_files import MANIFEST
from dualrank.online.plain_records import record_of
from dualrank.sentences import reason_of, shortened
from dualrank.storage import read_json, write_text, writing_alone

NOTE = "versions.json"
OF_EVENTS = "_versions"
"""In a folder of events: the versions of a service that was started with a single model."""
FORMAT = 1
KEPT = 10
"""So many model directories are kept beside the live one; of older ones the note alone."""
MOST_HAPPENINGS = 1_000
MOST_NOTED = 1_000
"""So many versions are named; of those before them the history alone, as far as it goes."""
PATIENCE = 10.0
"""Seconds to wait for another process that is writing the note."""

State = Literal["candidate", "live", "replaced", "refused", "taken back"]


@dataclass(frozen=True)
class Version:
    """A model that was made, and what became of it."""

    number: int
    made: float
    """When, in seconds since 1970."""
    state: State
    why: str
    """The sentence that goes with its state."""
    sessions: int = 0
    """How many sessions had been learned from, as far as the learner knows."""
    parent: int | None = None
    """The version that it goes on from."""
    since: float | None = None
    """When it went live last, if ever."""


@dataclass(frozen=True)
class Happening:
    """A line of the history: what became of which version, when and why."""

    time: float
    version: int
    what: State
    why: str


@dataclass(frozen=True)
class Note:
    """What `versions.json` says."""

    live: int
    versions: dict[int, Version]
    happened: list[Happening] = field(default_factory=list)
    anchor: int | None = None
    """The version that others are held against, beside the live one: it is kept."""

    def became(self, number: int, what: State, why: str) -> Note:
        """The note after a version became something."""
        now = time.time()
        version = replace(self.versions[number], state=what, why=why)
        if what == "live":
            version = replace(version, since=now)
        happened = [*self.happened, Happening(now, number, what, why)][-MOST_HAPPENINGS:]
        return replace(self, versions={**self.versions, number: version}, happened=happened)


class Versions:
    """A folder of versions.

    `Versions.create(folder, model)` makes one around a first model, `Versions(folder)` opens it.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not (self.folder / NOTE).exists():
            hint = ""
            if (self.folder / MANIFEST).exists():
                hint = "; it is a model, and `dualrank serve` makes versions of one"
            raise CheckpointError(f"{self.folder}: no folder of versions: no {NOTE} in it{hint}")

    @classmethod
    def create(
        cls, folder: str | Path, model: Model, why: str = "the model given at start"
    ) -> Versions:
        """A folder whose first version is live."""
        path = Path(folder)
        with _alone(path):
            if (path / NOTE).exists():
                raise SettingsError(f"{path}: there are versions already")
            model.save(path / _name(1))
            now = time.time()
            first = Version(1, now, "live", why, since=now)
            _write(path, Note(1, {1: first}, [Happening(now, 1, "live", why)], anchor=1))
        return cls(path)

    @classmethod
    def find(cls, folder: str | Path) -> Versions:
        """The versions in a folder, or those that belong to a folder of events."""
        path = Path(folder)
        return cls(path / OF_EVENTS if cls.is_one(path / OF_EVENTS) else path)

    @staticmethod
    def is_one(folder: str | Path) -> bool:
        """Whether a folder holds versions."""
        return (Path(folder) / NOTE).exists()

    def note(self) -> Note:
        """What is live, and what became of all."""
        return _read(self.folder / NOTE)

    @property
    def live(self) -> Version:
        """The version in front of users."""
        note = self.note()
        return note.versions[note.live]

    def path(self, number: int) -> Path:
        """The model directory of a version."""
        return self.folder / _name(number)

    def load(self, number: int) -> Model:
        """The model of a version."""
        return Model.load(self.path(number))

    def has(self, number: int) -> bool:
        """Whether the model of a version is still there."""
        return (self.path(number) / MANIFEST).exists()

    def add(
        self, model: Model, why: str, *, sessions: int = 0, parent: int | None = None
    ) -> Version:
        """Put a candidate beside the live version; it goes on from that, or from `parent`."""
        with _alone(self.folder):
            note = self.note()
            number = max(note.versions) + 1
            shutil.rmtree(self.path(number), ignore_errors=True)
            model.save(self.path(number))
            parent = note.live if parent is None else parent
            made = Version(number, time.time(), "candidate", why, sessions, parent)
            note = replace(note, versions={**note.versions, number: made})
            _write(self.folder, note.became(number, "candidate", why))
            return made

    def go_live(self, number: int, why: str, *, over: int | None = None) -> Version:
        """Put a version in front of users; the one before is kept.

        With `over`, the live version that it was compared with: if another one is live by now,
        nothing happens, and the state of what is given back says so.
        """

        def change(note: Note) -> Note:
            if over is not None and over != note.live:
                return note
            return self._put_live(note, number, why)

        return self._change(change).versions[number]

    def refuse(self, number: int, why: str) -> Version:
        """Say that a candidate does not go live; one that is live by now stays so."""

        def change(note: Note) -> Note:
            self._require_known(note, number)
            if note.versions[number].state != "candidate":
                return note
            return note.became(number, "refused", why)

        return self._change(change).versions[number]

    def hold_against(self, number: int) -> Version:
        """Make a version the anchor: others are compared with it, and it is kept."""

        def change(note: Note) -> Note:
            self._require_there(note, number)
            return replace(note, anchor=number)

        return self._change(change).versions[number]

    def roll_back(self, why: str, *, to: int | None = None, over: int | None = None) -> Version:
        """What a person does who wants another version live; gives the one that is live then.

        Without `to` it is the one before. A version that is older than the live one takes it back;
        one that is newer takes its place, so that it can be gone back from. `over` is the version
        that the person saw live: if another one is by now, that is an error.
        """

        def change(note: Note) -> Note:
            live = note.live
            if over is not None and over != live:
                raise SettingsError(
                    f"{self.folder}: version {live} went live in the place of {over} meanwhile, "
                    "and nothing was changed; look at it, and ask again"
                )
            if to == live:
                raise SettingsError(f"version {live} is the one that is live")
            if to is None or to < live:
                return self._take_back(note, why, to)
            return self._put_live(note, to, why)

        note = self._change(change)
        return note.versions[note.live]

    def take_back(self, number: int, why: str, *, to: int | None = None) -> Version:
        """Take the live version back: the latest that was live before and still stands follows.

        Gives the version that is live then. `number` is the version that was found wanting: if
        another one is live by now, nothing happens.
        """

        def change(note: Note) -> Note:
            return self._take_back(note, why, to) if number == note.live else note

        note = self._change(change)
        return note.versions[note.live]

    def before(self, note: Note) -> int | None:
        """Which version was live before the live one, was not taken back, and is still there.

        Who goes back to a version goes on with its turn: what was live after it is not before it.
        """
        turns: list[int] = []
        went_back = False
        for happening in note.happened:
            number = happening.version
            if happening.what == "taken back":
                went_back = True
            elif happening.what == "live":
                if went_back:
                    turns = turns[: turns.index(number)] if number in turns else turns[:-1]
                turns.append(number)
                went_back = False
        for number in reversed(turns):
            if (
                number != note.live
                and number in note.versions
                and note.versions[number].state == "replaced"
                and self.has(number)
            ):
                return number
        return None

    def _put_live(self, note: Note, number: int, why: str) -> Note:
        self._require_there(note, number)
        if number == note.live:
            return note
        after = note.became(note.live, "replaced", f"version {number} took its place")
        return replace(after.became(number, "live", why), live=number)

    def _take_back(self, note: Note, why: str, to: int | None) -> Note:
        live = note.live
        follows = self.before(note) if to is None else to
        if follows is None:
            raise SettingsError(f"{self.folder}: no version was live before {live}")
        self._require_there(note, follows)
        if follows == live:
            raise SettingsError(f"version {live} is the one that is live")
        after = note.became(live, "taken back", why)
        said = f"version {live} was taken back: {why}"
        return replace(after.became(follows, "live", said), live=follows)

    def _require_known(self, note: Note, number: int) -> None:
        if number not in note.versions:
            known = f"{min(note.versions)} to {max(note.versions)}"
            raise SettingsError(f"{self.folder}: there is no version {number}; there are {known}")

    def _require_there(self, note: Note, number: int) -> None:
        if number not in note.versions or not self.has(number):
            there = ", ".join(str(n) for n in sorted(note.versions) if self.has(n))
            raise SettingsError(
                f"{self.folder}: there is no model of version {number}; there are {there}"
            )

    def _change(self, change: Callable[[Note], Note]) -> Note:
        """Change the note while nobody else does; gives it as it is then."""
        with _alone(self.folder):
            before = self.note()
            note = change(before)
            if note is not before:
                _write(self.folder, note)
                self._forget(note)
        return note

    def _forget(self, note: Note) -> None:
        """Remove the model directories of old versions, never that of the live one or the anchor.

        What can be gone back to is kept before what was refused or taken back.
        """
        there = [n for n in sorted(note.versions, reverse=True) if self.path(n).exists()]
        useful = [n for n in there if note.versions[n].state in ("live", "replaced", "candidate")]
        rest = [n for n in there if n not in useful]
        kept = {note.live, note.anchor, *useful[: KEPT + 1], *rest[:KEPT]}
        for number in there:
            if number not in kept:
                shutil.rmtree(self.path(number), ignore_errors=True)


def _name(number: int) -> str:
    return f"{number:06}"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder, when whoever holds it has finished."""
    end = time.monotonic() + PATIENCE
    while True:
        held = writing_alone(folder)
        try:
            held.__enter__()
            break
        except SettingsError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
    try:
        yield
    finally:
        held.__exit__(None, None, None)


def _write(folder: Path, note: Note) -> None:
    named = set(sorted(note.versions)[-MOST_NOTED:]) | {note.live, note.anchor}
    said = {
        "format": FORMAT,
        "live": note.live,
        "anchor": note.anchor,
        "versions": [asdict(each) for each in note.versions.values() if each.number in named],
        "happened": [asdict(each) for each in note.happened],
    }
    write_text(folder / NOTE, json.dumps(said, indent=1) + "\n")


def _read(path: Path) -> Note:
    found: Any = read_json(path, CheckpointError)
    try:
        if found["format"] != FORMAT:
            what = shortened(found["format"])
            raise CheckpointError(f"{path}: versions of format {what}; this version reads {FORMAT}")
        listed = [record_of(Version, each) for each in found["versions"]]
        versions = {each.number: each for each in listed}
        happened = [record_of(Happening, each) for each in found["happened"]]
        live, anchor = found["live"], found.get("anchor")
        if min(versions) < 1:
            raise ValueError(f"a version has the number {min(versions)}")
        if live not in versions or (anchor is not None and anchor not in versions):
            raise ValueError("it names a version that it does not have")
        return Note(live, versions, happened, anchor)
    except (TypeError, LookupError, ValueError) as error:
        raise CheckpointError(f"{path}: damaged: {reason_of(error)}") from error
