"""One mutated file is read, and what came of it is judged."""

from __future__ import annotations

import shutil
import traceback
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from dualrank.data.log.reading_report import BadLogError
from dualrank.errors import DualrankError

from .formats import FORMATS, Format
from .mutations import mutate
from .readings import NonsenseError

HELD = ("same", "other", "refused")
"""Read as before; read as another file, which it is; refused by a sentence."""
FAULTS = ("traceback", "sentence", "nonsense", "silent", "hang", "death")
"""Another error than dualrank's; a sentence that does not tell; values that cannot be true; damage
that a digest should have found; no answer; no process."""
LONGEST_SENTENCE = 500


@dataclass(frozen=True)
class Verdict:
    """What came of a mutation; `place` and `sentence` say where a fault is, and what was said."""

    outcome: str
    place: str = ""
    sentence: str = ""
    how: tuple[str, ...] = ()


def prepare(format: Format, seeds: Path, folder: Path, seed: int, number: int) -> tuple[bool, Any]:
    """Write the mutated file of this number; whether its digest was mended, and what was done."""
    rng = Random(f"{seed} {format.name} {number}")
    while folder.exists():  # An index that was just read may still be closing its files.
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(seeds / format.name, folder)
    files = sorted(f for pattern in format.files for f in folder.glob(pattern) if f.is_file())
    file = rng.choice(files)
    other = rng.choice(_others(seeds)).read_bytes()
    changed, how = mutate(rng, format.mutations_of(file), file.read_bytes(), other)
    file.write_bytes(changed)
    # All of another file is whole, and vouches for what it says.
    mended = changed == other
    if format.seal is not None and rng.random() < 0.5:
        try:
            format.seal(folder)
            mended = True
        except Exception:  # it is no such file any more, so there is nothing to mend
            how.append("seal broken")
    return mended, (file.name, *how)


def judge(format: Format, folder: Path, before: Any, mended: bool) -> Verdict:
    """Read what lies in the folder, and compare it with what was read `before`."""
    try:
        meaning = repr(format.read(folder))
    except DualrankError as error:
        return _refusal(folder, error)
    except NonsenseError as error:
        return Verdict("nonsense", str(error), str(error))
    except BaseException as error:  # also panics of libraries, which are no Exception
        return Verdict("traceback", _place(error), f"{type(error).__name__}: {error}"[:300])
    if meaning == before:
        return Verdict("same")
    if not mended and format.vouched_for(folder):
        return Verdict("silent", "changed in spite of its digest")
    return Verdict("other")


def attack(name: str, seeds: Path, folder: Path, before: Any, seed: int, number: int) -> Verdict:
    """Mutate, read and judge."""
    format = FORMATS[name]
    mended, how = prepare(format, seeds, folder, seed, number)
    found = judge(format, folder, before, mended)
    return Verdict(found.outcome, found.place, found.sentence, how)


@cache
def _others(seeds: Path) -> list[Path]:
    """Files of other formats; not those whose names are drawn anew whenever they are written."""
    drawn = ("letor-cache", "page-index")
    folders = [folder for folder in seeds.iterdir() if folder.name not in drawn]
    return sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())


def _refusal(folder: Path, error: DualrankError) -> Verdict:
    """Whether the sentence is one, short enough to be read, and names the file.

    Other control characters may be the file's own; the command line makes them visible.
    """
    sentence = str(error)
    names = {path.name for path in folder.rglob("*")} | {folder.name}
    said = sentence.replace(str(folder), "")
    complaint = None
    if not any(name in sentence for name in names):
        complaint = "it names no file"
    elif len(said) > LONGEST_SENTENCE * _matters(error):
        complaint = "it is too long"
    elif "\n" in sentence:
        complaint = "it has several lines"
    elif "Traceback" in sentence:
        complaint = "it is a traceback"
    if complaint is None:
        return Verdict("refused", "", said)
    return Verdict("sentence", f"{complaint}, {_place(error)}", said[:300])


def _matters(error: DualrankError) -> int:
    """How many things a sentence is about: that on a bad log names every kind of problem."""
    return 1 + len(error.reading.problems) if isinstance(error, BadLogError) else 1


def _place(error: BaseException) -> str:
    """The innermost line of dualrank's own, and the error's kind."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "/dualrank/" in f.filename and "/tests/" not in f.filename]
    kind = type(error).__name__
    if not own:
        last = frames[-1]
        return f"{kind} at {Path(last.filename).name}:{last.lineno}"
    where = own[-1].filename.rpartition("/dualrank/")[2]
    return f"{kind} at {where}:{own[-1].lineno} {own[-1].name}"
