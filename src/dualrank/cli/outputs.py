"""What a command may write over.

What a command wrote before, it replaces: a folder that has its files, a Parquet file that carries
its mark. Anything else that stands under the name is somebody's, and is replaced with `--force`
alone. What is read is never written over. Python users decide for themselves: `Model.save`,
`write_log` and `dualrank.train` replace what is there.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from dualrank.errors import DataError, SettingsError
from dualrank.sentences import shortened
from dualrank.storage import read_json


class NewFile:
    """That a parameter names a file to write; `mark` is how earlier ones are known, in Parquet.

    `beside` is what the name of a second file has more at its end.
    """

    def __init__(self, mark: str = "", beside: str = "") -> None:
        self.mark, self.beside = mark, beside

    def refuses(self, out: Path) -> str | None:
        """Why the file is not replaced."""
        if self._is_own(out):
            return None
        found = [path for path in self._written(out) if os.path.lexists(path)]
        if not found:
            return None
        which = "this name" if found[0] == out else f"the name {found[0].name}"
        return f"there is something of {which} already; give another one, or --force to replace it"

    def overwrites(self, out: Path, read: Path) -> bool:
        """Whether writing `out` would change what is read."""
        if any(_same(path, read) for path in self._written(out)):
            return True
        inside = read.is_dir() and read.resolve() in out.resolve().parents
        return inside and out.exists() and not self._is_own(out)

    def _written(self, out: Path) -> list[Path]:
        return [out, *([out.with_name(out.name + self.beside)] if self.beside else [])]

    def _is_own(self, out: Path) -> bool:
        if out.suffix != ".parquet" or not self.mark or not out.is_file():
            return False
        import pyarrow as pa
        import pyarrow.parquet as pq

        from dualrank.storage import MARK

        try:
            found = pq.read_schema(out).metadata or {}
        except (OSError, pa.ArrowException):
            return False
        return self.mark.encode() in (found.get(MARK), *found)


class NewFolder:
    """That a parameter names a folder to write; `marks` are what is found in earlier ones.

    A mark is a pattern of names, or `pattern:key` for JSON with this key.
    """

    def __init__(self, *marks: str) -> None:
        self.marks = marks

    def refuses(self, out: Path) -> str | None:
        """Why nothing is written into the folder."""
        if not out.is_dir():
            return None
        if self._is_own(out) or all(each.name.startswith(".") for each in out.iterdir()):
            return None
        return (
            "this folder holds something that this command did not write; give another one, or "
            "--force to write into it"
        )

    def overwrites(self, out: Path, read: Path) -> bool:
        """Whether writing into `out` would change what is read."""
        if _same(out, read):
            return True
        marked = (found for mark in self.marks for found in _with_mark(out, mark))
        return read.is_file() and any(_same(read, found) for found in marked)

    def _is_own(self, out: Path) -> bool:
        return any(True for mark in self.marks for _ in _with_mark(out, mark))


class ReplacedFolder(NewFolder):
    """That a folder is replaced with all that is in it; `own` are the patterns of what may go."""

    def __init__(self, earlier: NewFolder, *own: str) -> None:
        super().__init__(*earlier.marks)
        self.own = own

    def refuses(self, out: Path) -> str | None:
        """Why the folder is not replaced."""
        if why := super().refuses(out):
            return why
        found = sorted(out.iterdir()) if out.is_dir() else []
        kept = [each.name for each in found if not any(map(each.match, self.own))]
        if not kept:
            return None
        return (
            f"the whole folder is replaced, and {shortened(kept[0])} in it is no part of a model; "
            "give another one, or --force to remove what is there"
        )

    def overwrites(self, out: Path, read: Path) -> bool:
        """Whether what is read would go with the folder."""
        inside = out.is_dir() and out.resolve() in read.resolve().parents
        return inside or super().overwrites(out, read)


class NewRun(NewFile):
    """That a parameter names a run to write: a file, or a folder of parts, here or elsewhere.

    A folder is replaced with all that is in it, if that is a run, and otherwise never: whoever
    writes it looks.
    """

    def __init__(self) -> None:
        super().__init__("a run")

    def refuses(self, out: Path | str) -> str | None:
        """Why nothing is written under this name."""
        return None if _elsewhere(out) or Path(out).is_dir() else super().refuses(Path(out))

    def overwrites(self, out: Path | str, read: Path) -> bool:
        """Whether writing `out` would change what is read."""
        if _elsewhere(out):
            return False
        inside = Path(out).is_dir() and Path(out).resolve() in read.resolve().parents
        return inside or super().overwrites(Path(out), read)


def _elsewhere(out: Path | str) -> bool:
    from dualrank.sentences import URL

    return isinstance(out, str) and URL.match(out) is not None


class NewLog:
    """That a parameter names a reduced log to write: a file, or else the folder of its shards."""

    _file = NewFile("dualrank.log")
    _folder = NewFolder("shards.json:shards", ".dualrank-unfinished")

    def refuses(self, out: Path) -> str | None:
        """Why it is not replaced."""
        return self._kind(out).refuses(out)

    def overwrites(self, out: Path, read: Path) -> bool:
        """Whether writing `out` would change what is read, such as a shard of it."""
        inside = out.is_dir() and out.resolve() in read.resolve().parents
        return inside or self._kind(out).overwrites(out, read)

    def _kind(self, out: Path) -> NewFile | NewFolder:
        return self._file if out.suffix == ".parquet" else self._folder


Output = NewFile | NewFolder | NewLog
LOGS = ("log", "events", "data")
"""Parameters whose texts are names of files, folders and patterns, and nothing else."""

MODEL = NewFolder(
    "manifest.json:ranker", "propensity.json:examination", "checkpoint*.safetensors", "tensorboard"
)
UPDATED = ReplacedFolder(
    MODEL,
    *("manifest.json", "ranker.safetensors", "optimizers.safetensors", "memory.safetensors"),
    *("propensity.json", "diagnosis.json", "report.html", "twin"),
    *("checkpoint*.safetensors", "tensorboard"),
)
"""A model as `train` and `update` leave it."""
DIAGNOSIS = NewFolder("diagnosis.json:points")
INTERLEAVING = NewFolder("comparison.json:pairs")
ESTIMATE = NewFolder("estimate.json:estimates")
CURVES = NewFolder("*.json:examination")
SWAP_PLAN = NewFolder("plan.json:designs")
EXPERIMENT = NewFolder("*.json:experiment", "unfinished")
GENERATED = NewFolder()


def check_output(out: Path, kind: Output, read: Mapping[str, object], *, force: bool) -> None:
    """Refuse to write over what is read and, without `force`, over what somebody else wrote."""
    for path in _files(read):
        if kind.overwrites(out, path):
            raise SettingsError(
                f"{out}: this would write over {path}, which is read; give another name"
            )
    if os.environ.get("RANK", "0") != "0":
        return  # the first worker of torchrun may have begun to write
    why = None if force else kind.refuses(out)
    if why is not None:
        raise SettingsError(f"{out}: {why}")


def _files(words: Mapping[str, object]) -> Iterable[Path]:
    """What of the words that were typed names files that are there; patterns name several.

    Words that may be something else than a path name no folder: after `--method dla --out dla`
    there is one of that name.
    """
    several = (
        (n, w) for n, word in words.items() for w in (word if isinstance(word, list) else [word])
    )
    for name, word in several:
        if isinstance(word, Path) or (isinstance(word, str) and name in LOGS):
            text = str(word)
            found = [text] if os.path.lexists(text) else glob.glob(text, recursive=True)
            yield from map(Path, found)
        elif isinstance(word, str) and os.path.isfile(word):
            yield Path(word)


def _same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _with_mark(folder: Path, mark: str) -> Iterable[Path]:
    pattern, _, key = mark.partition(":")
    for path in folder.glob(pattern):
        if not key or _has_key(path, key):
            yield path


def _has_key(path: Path, key: str) -> bool:
    try:
        content = read_json(path)
    except DataError:
        return False
    return isinstance(content, dict) and key in content
