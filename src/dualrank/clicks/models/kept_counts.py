"""What was counted in every part of a log, at hand for one iteration after the other.

Counts of all parts are held in memory while they are small; beyond that they lie on disk, in a
temporary folder, and one part is in memory at a time. What is read over and over is ours alone: a
log that is changed or cut off meanwhile changes nothing here.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from dualrank.data.log.scratch import ScratchFolder
from dualrank.errors import DataError, SettingsError
from dualrank.sentences import reason_of

MOST_BYTES = 1 << 28
"""Of counts that are held in memory, over all parts."""

P = TypeVar("P")
C = TypeVar("C")


class KeptCounts(Sequence[C], Generic[P, C]):
    """One value of `count` for every part of a log; a dataclass of arrays and plain values."""

    def __init__(
        self, parts: Iterable[P], count: Callable[[P], C], *, most_bytes: int | None = None
    ) -> None:
        self._kept: list[C | _OnDisk[C]] = []
        self._scratch: ScratchFolder | None = None
        held, most = 0, MOST_BYTES if most_bytes is None else most_bytes
        for number, part in enumerate(parts):
            found = count(part)
            size = sum(array.nbytes for array in _arrays(found).values())
            # A log in one piece is in memory anyway.
            if number and held + size > most:
                self._kept.append(self._write(found, number))
            else:
                held += size
                self._kept.append(found)

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[C]:
        return (self[number] for number in range(len(self)))

    @overload
    def __getitem__(self, number: int) -> C: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[C]: ...
    def __getitem__(self, number: int | slice) -> C | Sequence[C]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        kept = self._kept[number]
        return kept.read() if isinstance(kept, _OnDisk) else kept

    def _write(self, found: C, number: int) -> _OnDisk[C]:
        if self._scratch is None:
            self._scratch = ScratchFolder()
            weakref.finalize(self, self._scratch.remove)
        return _OnDisk(found, self._scratch.path / f"{number:05d}")


class _OnDisk(Generic[C]):
    """A value whose arrays are in files."""

    def __init__(self, value: C, folder: Path) -> None:
        arrays = _arrays(value)
        self._kind: Callable[..., C] = type(value)
        self._plain = {
            each.name: getattr(value, each.name)
            for each in fields(value)  # type: ignore[arg-type]
            if each.name not in arrays
        }
        self._files: dict[str, Path] = {}
        written: dict[int, Path] = {}
        try:
            folder.mkdir()
            for name, array in arrays.items():
                # Two names may stand for one array.
                if id(array) not in written:
                    written[id(array)] = folder / f"{name}.npy"
                    np.save(written[id(array)], array, allow_pickle=False)
                self._files[name] = written[id(array)]
        except OSError as error:
            raise SettingsError(
                f"{folder}: counts cannot be written here ({error.strerror or reason_of(error)}); "
                "set TMPDIR to a folder with more space"
            ) from error

    def read(self) -> C:
        """The value, in memory."""
        try:
            arrays = {path: np.load(path) for path in set(self._files.values())}
        except (OSError, ValueError) as error:
            raise DataError(
                f"{next(iter(self._files.values())).parent}: temporary files were removed or "
                "changed; run it again"
            ) from error
        return self._kind(
            **self._plain, **{name: arrays[path] for name, path in self._files.items()}
        )


def _arrays(value: Any) -> dict[str, NDArray[Any]]:
    found = ((each.name, getattr(value, each.name)) for each in fields(value))
    return {name: array for name, array in found if isinstance(array, np.ndarray)}
