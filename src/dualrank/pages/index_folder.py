"""The folder of an index: a note, and the directory that it names with tantivy's files.

The note `dualrank.json` says how words are cut, which directory holds the index, and what each
file in it must be. New pages go into a new directory, which shares the old files; replacing the
note is the one step that makes it the index. Whoever reads or writes at the same time, and whatever
fails on the way, the index is the old one or the new one.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dualrank.errors import DataError, DualrankError
from dualrank.pages.tokens import Tokeniser
from dualrank.sentences import reason_of
from dualrank.storage import sha256_of_file, write_text

FORMAT = 2
NOTE = "dualrank.json"
LONGEST_NOTE = 1 << 22
_LOCK = ".lock"
_DIRECTORY = re.compile("pages-[0-9a-f]{12}")
_FILE = re.compile(
    r"meta\.json|\.managed\.json|[0-9a-f]{32}(\.[0-9]+)?\.(fast|fieldnorm|idx|pos|store|term|del)"
)

States = dict[str, list[Any]]
"""Size, times and sha256 of each file."""


@dataclass(frozen=True)
class Note:
    """What the note says; indices of the first format have no directory and no states."""

    tokeniser: Tokeniser
    directory: str | None
    states: States

    def place(self, folder: Path) -> Path:
        """Where tantivy's files lie."""
        return folder if self.directory is None else folder / self.directory


def has_index(folder: Path) -> bool:
    """Whether there is a note."""
    return (folder / NOTE).is_file()


def is_free(folder: Path) -> bool:
    """Whether an index can be made there: nothing is in the way but what a killed writer left."""
    if not folder.exists():
        return True
    return folder.is_dir() and all(
        each.name == _LOCK or _DIRECTORY.fullmatch(each.name) for each in folder.iterdir()
    )


def read_note(folder: Path) -> Note:
    """The note of an index, with its files checked."""
    if not has_index(folder):
        raise DataError(f"{folder}: this is no index of pages")
    try:
        note = _parse(folder / NOTE)
        _check_files(folder, note)
    except DualrankError as error:
        raise DataError(f"{folder}: {error}") from error
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        struct.error,
    ) as error:
        raise DataError(
            f"{folder}: the index is damaged ({reason_of(error)}); make it anew"
        ) from error
    return note


def _parse(path: Path) -> Note:
    about = path.lstat()
    if not stat.S_ISREG(about.st_mode) or about.st_size > LONGEST_NOTE:
        raise ValueError(f"{NOTE} is no file of an index")
    held = json.loads(path.read_bytes())
    if held["format"] == 1:
        return Note(Tokeniser(**held["tokeniser"]), None, {})
    if held["format"] != FORMAT:
        raise DataError(f"the index has format {str(held['format'])[:20]}; expected {FORMAT}")
    if held.pop("digest") != _digest(held):
        raise ValueError(f"{NOTE} is not as it was written")
    if not _DIRECTORY.fullmatch(held["directory"]):
        raise ValueError(f"{NOTE} names a directory that is not its own")
    return Note(Tokeniser(**held["tokeniser"]), held["directory"], held["files"])


def _check_files(folder: Path, note: Note) -> None:
    """Same size and times: trusted. Where times are others, as in a copy, the content decides."""
    place = note.place(folder)
    if place != folder and place.is_symlink():
        raise ValueError(f"{place.name} is a link")
    found = _states_of(place)
    if note.directory is None:
        for name in found:
            if not name.endswith(".json") and not _has_its_sum(place / name):
                raise ValueError(f"{name} is not as it was written")
    for name, (*known, digest) in note.states.items():
        if name not in found:
            raise ValueError(f"{name} is missing")
        if found[name] != known and (
            found[name][0] != known[0] or sha256_of_file(place / name) != digest
        ):
            raise ValueError(f"{name} is not as it was written")


def _has_its_sum(path: Path) -> bool:
    """Whether a file is what tantivy wrote, by the sum at its end.

    A file ends in JSON with the CRC-32 of what stands before it, the length of that JSON, and 1337.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(size - 8, 0))
        length, mark = struct.unpack("<II", file.read(8))
        if mark != 1337 or length > min(size - 8, 1000):
            return False
        rest = size - 8 - length
        file.seek(rest)
        wanted = json.loads(file.read(length))["crc"]
        file.seek(0)
        found = 0
        while rest and (piece := file.read(min(rest, 1 << 20))):
            found, rest = zlib.crc32(piece, found), rest - len(piece)
    return bool(found == wanted)


def _states_of(place: Path) -> States:
    """Size and times of the files that are tantivy's; none of them is a link."""
    found: States = {}
    for file in sorted(place.iterdir()):
        if not _FILE.fullmatch(file.name):
            continue
        about = file.lstat()
        if not stat.S_ISREG(about.st_mode):
            raise ValueError(f"{file.name} is no regular file")
        found[file.name] = [about.st_size, about.st_mtime_ns, about.st_ctime_ns]
    return found


@contextmanager
def next_directory(folder: Path, tokeniser: Tokeniser) -> Iterator[Path]:
    """A directory with the files of the index, to be changed; at the end it is the index.

    If anything fails, it is removed, and what was there before still stands.
    """
    created = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    place = _new_directory(folder)
    with _locked(folder):
        try:
            note = read_note(folder) if has_index(folder) else None
            place.mkdir()
            if note is not None:
                for name in _states_of(note.place(folder)):
                    _share(note.place(folder) / name, place / name)
            yield place
            known = {} if note is None else note.states
            _write_note(folder, tokeniser, place, known)
        except BaseException:
            _remove(place)
            if created or not has_index(folder):
                (folder / _LOCK).unlink(missing_ok=True)
                with suppress(OSError):
                    folder.rmdir()
            raise
        _remove_others(folder, place)
        with suppress(OSError):  # Files that were shared have new times; the old note is right too.
            _write_note(folder, tokeniser, place, read_note(folder).states)


def _new_directory(folder: Path) -> Path:
    return folder / f"pages-{secrets.token_hex(6)}"


def _remove(directory: Path) -> None:
    """Remove tantivy's files, of which its threads may still make some: by a name they know not."""
    unknown = _new_directory(directory.parent)
    with suppress(OSError):
        directory.rename(unknown)
    shutil.rmtree(unknown, ignore_errors=True)


def _share(old: Path, new: Path) -> None:
    try:
        os.link(old, new)
    except OSError:
        shutil.copyfile(old, new)


def _write_note(folder: Path, tokeniser: Tokeniser, place: Path, known: States) -> None:
    states = _states_of(place)
    for name, state in states.items():
        # Files of a segment are never changed once they are written; the others are small.
        same = name.endswith(".json") or known.get(name, [None])[:2] != state[:2]
        state.append(sha256_of_file(place / name) if same else known[name][-1])
    held = {
        "format": FORMAT,
        "tokeniser": asdict(tokeniser),
        "directory": place.name,
        "files": states,
    }
    write_text(folder / NOTE, json.dumps(held | {"digest": _digest(held)}, indent=1) + "\n")


def _digest(held: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(held, sort_keys=True).encode()).hexdigest()


def _remove_others(folder: Path, place: Path) -> None:
    """Remove the directory before this one, what killed writers left, and files of format 1."""
    for each in folder.iterdir():
        if _DIRECTORY.fullmatch(each.name) and each != place and not each.is_symlink():
            _remove(each)
        elif _FILE.fullmatch(each.name) or each.name.startswith(".tantivy-"):
            each.unlink(missing_ok=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / _LOCK).open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DataError(
                f"{folder}: another process is adding pages to this index; wait until it is done"
            ) from None
        yield
