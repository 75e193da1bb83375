"""Parsed LETOR files kept on disk, so that the second reading only maps them into memory.

A cache is a folder. In it, a manifest `KEY.json` stands for one way of reading the source (KEY
comes from the reader's arguments) and names the folder with the arrays. A new cache gets a
folder of its own, and replacing the manifest is the one step that makes it valid: whoever reads
or writes at the same time sees the old cache or the new one, never a mixture.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dualrank.data.dataset import Dataset
from dualrank.storage import atomic_file, sha256_of_file

FORMAT = 1
COARSEST_CLOCK_NS = 100_000_000
ABANDONED_AFTER_SECONDS = 86_400


@dataclass(frozen=True)
class SourceState:
    """What tells cheaply whether a file is still the same.

    A file that was changed just now has not `settled`: it could change again within the same
    tick of the file system's clock, and neither size nor time would tell.
    """

    size: int
    mtime_ns: int
    settled: bool = field(compare=False)

    @classmethod
    def of(cls, path: Path) -> SourceState:
        """The state of a file now."""
        stat = path.stat()
        settled = stat.st_mtime_ns + COARSEST_CLOCK_NS < time.time_ns()
        return cls(stat.st_size, stat.st_mtime_ns, settled)


def cache_folders(source: Path) -> list[Path]:
    """Where the cache of a file may lie, best first: beside it, or in the user's cache."""
    folders = [source.with_name(f"{source.name}.dualrank-cache")]
    with suppress(RuntimeError):  # In a container a user may have no home.
        users = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folders.append(folder_within(Path(users) / "dualrank", source))
    return folders


def folder_within(directory: Path, source: Path) -> Path:
    """The folder of one source file in a directory that serves many."""
    place = hashlib.sha256(str(source.resolve()).encode()).hexdigest()[:12]
    return directory / f"{source.name}-{place}"


def open_arrays(directory: Path, max_grade: float | None) -> Dataset:
    """Map the parsed arrays in a directory into memory; ValueError if they do not fit."""

    def array(name: str) -> Any:
        return np.load(directory / name, mmap_mode="r", allow_pickle=False).view(np.ndarray)

    features, grades, offsets = array("features.npy"), array("grades.npy"), array("offsets.npy")
    query_ids = array("query_ids.npy")
    doc_ids = array("doc_ids.npy") if (directory / "doc_ids.npy").exists() else None
    count = len(features)
    if (
        features.ndim != 2
        or features.dtype != np.float32
        or grades.shape != (count,)
        or offsets.shape != (len(query_ids) + 1,)
        or offsets[-1] != count
        or (doc_ids is not None and doc_ids.shape != (count,))
    ):
        raise ValueError(f"the arrays in {directory} do not belong together")
    highest = float(grades.max()) if max_grade is None else float(max_grade)
    return Dataset(features, offsets, query_ids, grades, doc_ids, highest)


class LetorCache:
    """The cache of one source file, read with these arguments, in this folder."""

    def __init__(self, source: Path, arguments: dict[str, float | None], folder: Path) -> None:
        self.source = source
        self.folder = folder
        self._arguments = arguments
        text = json.dumps([FORMAT, arguments], sort_keys=True)
        self._key = hashlib.sha256(text.encode()).hexdigest()[:12]
        self._manifest = folder / f"{self._key}.json"

    def load(self) -> Dataset | None:
        """The data set, if there is a whole cache of what the source holds now."""
        for _ in range(2):  # A second time, should another process have just replaced it.
            try:
                manifest = json.loads(self._manifest.read_bytes())
                if not self._is_current(manifest):
                    return None
                directory = self.folder / Path(manifest["directory"]).name
                if manifest["files"] == _files(directory):
                    return open_arrays(directory, self._arguments["max_grade"])
            except (OSError, ValueError, KeyError, TypeError, EOFError):
                continue
        return None

    def _is_current(self, manifest: dict[str, Any]) -> bool:
        """Whether the cache was made from what the source holds now.

        Same size and time: trusted, if the source had settled then. Otherwise the content
        decides.
        """
        if manifest["format"] != FORMAT or manifest["arguments"] != self._arguments:
            return False
        then, now = SourceState(**manifest["source"]), SourceState.of(self.source)
        if then.settled and then == now:
            return True
        if then.size != now.size or sha256_of_file(self.source) != manifest["sha256"]:
            return False
        with suppress(OSError):  # A folder that became read-only is no reason to parse again.
            self._write_manifest(manifest | {"source": asdict(now)})
        return True

    def new_directory(self) -> Path:
        """An empty directory for arrays; OSError if the folder cannot be written."""
        directory = self.folder / f"{self._key}-{secrets.token_hex(8)}"
        directory.mkdir(parents=True)
        return directory

    def keep(self, directory: Path, source: SourceState, sha256: str) -> None:
        """Make the arrays in this directory the cache of a source in this state."""
        replaced = None
        with suppress(OSError, ValueError, KeyError, TypeError):
            replaced = json.loads(self._manifest.read_bytes())["directory"]
        self._write_manifest(
            {
                "format": FORMAT,
                "arguments": self._arguments,
                "source": asdict(source),
                "sha256": sha256,
                "directory": directory.name,
                "files": _files(directory),
            }
        )
        self._remove_replaced(replaced)

    def discard(self, directory: Path) -> None:
        """Remove a directory of arrays, and the folder if nothing else is in it."""
        shutil.rmtree(directory, ignore_errors=True)
        with suppress(OSError):
            self.folder.rmdir()

    def _write_manifest(self, manifest: dict[str, Any]) -> None:
        with atomic_file(self._manifest, durable=False) as file:
            file.write(json.dumps(manifest, indent=1).encode())

    def _remove_replaced(self, replaced: str | None) -> None:
        """Remove the arrays of the cache before this one, and what killed processes left.

        Who has them mapped keeps them: the system frees the bytes when the last map is gone.
        """
        for directory in self.folder.glob(f"{self._key}-*"):
            with suppress(OSError):
                age = time.time() - directory.stat().st_mtime
                if directory.name == replaced or age > ABANDONED_AFTER_SECONDS:
                    shutil.rmtree(directory, ignore_errors=True)


def _files(directory: Path) -> dict[str, list[int]]:
    """Size and time of each file: enough to notice that one was cut or written over."""
    return {
        file.name: [file.stat().st_size, file.stat().st_mtime_ns]
        for file in sorted(directory.iterdir())
    }
