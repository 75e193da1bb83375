"""LETOR text as a data set, parsed once and mapped from a cache ever after."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from dualrank.data.dataset import Dataset
from dualrank.data.letor.cache import (
    LetorCache,
    SourceState,
    cache_folders,
    folder_within,
    open_arrays,
)
from dualrank.data.letor.rules import WIDEST, LetorText
from dualrank.data.letor.source import SourceFile
from dualrank.errors import DataError, SettingsError

Progress = Callable[[int, int], None]


def read_letor(
    path: str | os.PathLike[str],
    *,
    features: int | None = None,
    max_grade: float | None = None,
    missing_above: float | None = None,
    cache: bool | str | os.PathLike[str] = True,
    progress: Progress | None = None,
) -> Dataset:
    """Read LETOR text, plain, gzip or zstd; the second reading only maps a cache into memory.

    Features that a line leaves out are 0. With `features`, every index must lie in 1 to
    `features`, and the matrix has that many columns; without, it has as many as the highest
    index. With `max_grade`, no grade may be higher, and it becomes the data set's `max_grade`.
    Values above `missing_above` in size stand for "missing" and become 0. `docid = X` at the
    start of the comment names the document.

    The cache lies beside the file, in `NAME.dualrank-cache`, or where that cannot be written in
    the user's cache directory; a path for `cache` chooses the directory, False keeps none. The
    arrays are mapped from disk and read-only. `progress` is called with the bytes read so far
    and the bytes in all.

    Raises DataError with file and line for anything that is not such text.
    """
    text = LetorText(
        Path(path),
        None if features is None else int(features),
        None if max_grade is None else float(max_grade),
        None if missing_above is None else float(missing_above),
    )
    _check_settings(text)
    caches = _caches(text, cache)
    for place in caches:
        dataset = place.load()
        if dataset is not None:
            return dataset
    with SourceFile(text.path, digest=bool(caches)) as source:
        for place in caches:
            try:
                directory = place.new_directory()
            except OSError as error:
                if not isinstance(cache, bool):
                    raise DataError(
                        f"{place.folder}: the cache cannot be written ({error.strerror})"
                    ) from None
                continue
            return _parse_and_keep(source, text, directory, place, progress)
        # The system frees the bytes when the arrays are no longer mapped.
        with tempfile.TemporaryDirectory(prefix="dualrank-", ignore_cleanup_errors=True) as folder:
            return _parse(source, text, Path(folder), progress)


def _check_settings(text: LetorText) -> None:
    if text.features is not None and not 1 <= text.features <= WIDEST:
        raise SettingsError(f"features is {text.features}; expected 1 to {WIDEST}")
    if text.max_grade is not None and not 0 < text.max_grade < float("inf"):
        raise SettingsError(f"max_grade is {text.max_grade}; expected a number above 0")
    if text.missing_above is not None and not text.missing_above > 0:
        raise SettingsError(f"missing_above is {text.missing_above}; expected a number above 0")


def _caches(text: LetorText, cache: bool | str | os.PathLike[str]) -> list[LetorCache]:
    if cache is False:
        return []
    folders = cache_folders(text.path) if cache is True else [folder_within(Path(cache), text.path)]
    arguments = {
        "features": text.features,
        "max_grade": text.max_grade,
        "missing_above": text.missing_above,
    }
    return [LetorCache(text.path, arguments, folder) for folder in folders]


def _parse_and_keep(
    source: SourceFile,
    text: LetorText,
    directory: Path,
    cache: LetorCache,
    progress: Progress | None,
) -> Dataset:
    """Parse into a directory of the cache; the arrays are mapped before others can replace it."""
    try:
        state = SourceState.of(text.path)
        dataset = _parse(source, text, directory, progress)
    except BaseException:
        cache.discard(directory)
        raise
    try:
        if SourceState.of(text.path) == state:
            cache.keep(directory, state, source.sha256())
            return dataset
    except OSError:
        pass  # The data are read and mapped; only the next reading will not be spared.
    cache.discard(directory)
    return dataset


def _parse(
    source: SourceFile, text: LetorText, directory: Path, progress: Progress | None
) -> Dataset:
    # Importing numba takes most of a second, which a reader of a cache need not wait for.
    from dualrank.data.letor.parser import parse_letor

    report = None if progress is None else lambda done: progress(done, source.size)
    try:
        parse_letor(source, text, directory, progress=report)
    except OSError as error:
        raise DataError(
            f"{text.path}: the parsed arrays cannot be written to {directory} ({error.strerror})"
        ) from None
    return open_arrays(directory, text.max_grade)
