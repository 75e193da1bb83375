"""Parsed LETOR files kept on disk, so that the second reading only maps them into memory.

A cache is a folder, for one source file. What the reader was told of the file shapes the arrays,
so there is a manifest for each way of reading, `features=46,max_grade=2.0.json` or
`undeclared.json`, which names the folder with the arrays. A new cache gets a folder of its own,
and replacing the manifest is the one step that makes it valid: whoever reads or writes at the
same time sees the old cache or the new one, never a mixture. A cache that is damaged in any way is
as one that is not there.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import stat
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dualrank.data.dataset import Dataset
from dualrank.data.letor.arrays import ARRAYS, open_arrays
from dualrank.data.letor.rules import Declared
from dualrank.data.letor.source import SourceFile, SourceState
from dualrank.storage import atomic_file, parse_json, read_file, sha256_of_file

FORMAT = 3
LONGEST_MANIFEST = 1 << 16
ABANDONED_AFTER_SECONDS = 86_400


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


class LetorCache:
    """The cache of one source file, of which this was declared, in this folder."""

    def __init__(self, source: Path, declared: Declared, folder: Path) -> None:
        self.source = source
        self.declared = declared
        self.folder = folder
        said = (f"{name}={value}" for name, value in asdict(declared).items() if value is not None)
        self._name = ",".join(said) or "undeclared"
        self._manifest = folder / f"{self._name}.json"

    def load(self) -> Dataset | None:
        """The data set, if there is a whole cache of what the source holds now."""
        for _ in range(2):  # A second time, should another process have just replaced it.
            try:
                manifest = self._read_manifest()
                if not self._is_current(manifest):
                    return None
                directory = self._directory_of(manifest)
                if self._is_whole(manifest, directory):
                    return open_arrays(directory, self.declared.max_grade)
            except Exception:
                # Whatever is wrong with a cache, the text is there and can be parsed.
                continue
        return None

    def _read_manifest(self) -> dict[str, Any]:
        text = read_file(self._manifest, LONGEST_MANIFEST, within=self.folder)
        manifest: dict[str, Any] = parse_json(text)
        return manifest

    def _directory_of(self, manifest: dict[str, Any]) -> Path:
        """The directory that a manifest names, which is one of this folder's own and no link."""
        directory = self.folder / Path(manifest["directory"]).name
        if not directory.name.startswith(f"{self._name}-") or directory.is_symlink():
            raise ValueError("this is no directory of arrays")
        return directory

    def _is_whole(self, manifest: dict[str, Any], directory: Path) -> bool:
        """Whether the arrays are those that were written.

        Same sizes and times: trusted. In a folder that was copied the times are others, and the
        content decides.
        """
        then, now = manifest["files"], _states_of(directory)
        if {name: each[:-1] for name, each in then.items()} == now:
            return True
        if {name: each[0] for name, each in then.items()} != {
            n: each[0] for n, each in now.items()
        }:
            return False
        if any(sha256_of_file(directory / name) != each[-1] for name, each in then.items()):
            return False
        files = {name: [*now[name], each[-1]] for name, each in then.items()}
        with suppress(OSError):
            self._write_manifest(manifest | {"files": files})
        return True

    def _is_current(self, manifest: dict[str, Any]) -> bool:
        """Whether the cache was made from what the source holds now.

        Same size and times: trusted, if the source had settled then. Otherwise the content
        decides.
        """
        if manifest["format"] != FORMAT:
            return False
        then, now = SourceState(**manifest["source"]), SourceState.of(self.source.stat())
        if then.settled and then == now:
            return True
        if then.size != now.size or sha256_of_file(self.source) != manifest["sha256"]:
            return False
        with suppress(OSError):  # A folder that became read-only is no reason to parse again.
            self._write_manifest(manifest | {"source": asdict(now)})
        return True

    def new_directory(self) -> Path:
        """An empty directory for arrays; OSError if the folder cannot be written."""
        directory = self.folder / f"{self._name}-{secrets.token_hex(8)}"
        directory.mkdir(parents=True)
        return directory

    def keep(self, directory: Path, source: SourceFile) -> None:
        """Make the arrays in this directory the cache of the source they were parsed from.

        If the source changed meanwhile or the manifest cannot be written, they are discarded:
        whoever has them mapped keeps them, only the next reading is not spared.
        """
        replaced = None
        with suppress(Exception):  # What is damaged goes when it is old.
            replaced = self._directory_of(self._read_manifest()).name
        try:
            if SourceState.of(self.source.stat()) != source.state:
                self.discard(directory)
                return
            self._write_manifest(
                {
                    "format": FORMAT,
                    "source": asdict(source.state),
                    "sha256": source.sha256(),
                    "directory": directory.name,
                    "files": {
                        name: [*state, sha256_of_file(directory / name)]
                        for name, state in _states_of(directory).items()
                    },
                }
            )
        except OSError:
            self.discard(directory)
            return
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
        for directory in self.folder.glob(f"{self._name}-*"):
            with suppress(OSError):
                age = time.time() - directory.stat().st_mtime
                if directory.name == replaced or age > ABANDONED_AFTER_SECONDS:
                    shutil.rmtree(directory, ignore_errors=True)


def _states_of(directory: Path) -> dict[str, list[int]]:
    """Size and times of each array: enough to notice that one was cut or written over."""
    found = {}
    for file in sorted(directory.iterdir()):
        about = file.lstat()
        if file.name not in ARRAYS or not stat.S_ISREG(about.st_mode):
            raise ValueError(f"{file} is no array of a cache")
        found[file.name] = [about.st_size, about.st_mtime_ns, about.st_ctime_ns]
    return found
