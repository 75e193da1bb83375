"""LETOR text as a data set, parsed once and mapped from a cache ever after."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from dualrank.data.dataset import Dataset
from dualrank.data.letor.arrays import open_arrays
from dualrank.data.letor.cache import LetorCache, cache_folders, folder_within
from dualrank.data.letor.rules import WIDEST, Declared
from dualrank.data.letor.source import SourceFile
from dualrank.errors import DataError, SettingsError
from dualrank.progress import shows_progress

Progress = Callable[[int, int], None]

logger = logging.getLogger(__name__)
_warned = False


@shows_progress("reading LETOR text")
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
    the user's cache directory; a path for `cache` chooses the directory, False keeps none. Where no
    cache can be written, a warning says so once, and the text is parsed at every reading. The
    arrays are mapped from disk and read-only. `progress` is called with the bytes read so far
    and the bytes in all.

    Raises DataError with file and line for anything that is not such text.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import dualrank as dr
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "train.txt")
    ...     _ = file.write_text("2 qid:10 1:0.5 3:1 # docid = a\\n0 qid:10 2:0.25 # docid = b\\n")
    ...     data = dr.read_letor(file, cache=False)
    >>> data.features.tolist(), data.grades.tolist()
    ([[0.5, 0.0, 1.0], [0.0, 0.25, 0.0]], [2.0, 0.0])
    """
    path = Path(path)
    declared = _declared(features, max_grade, missing_above)
    # A pipe can be read only once, and what comes through it next time is something else.
    caches = _caches(path, declared, cache) if path.is_file() else []
    for place in caches:
        dataset = place.load()
        if dataset is not None:
            return dataset
    with SourceFile(path, digest=bool(caches)) as source:
        reasons: list[str] = []
        for place in caches:
            try:
                directory = place.new_directory()
            except OSError as error:
                if not isinstance(cache, bool):
                    raise DataError(
                        f"{place.folder}: the cache cannot be written ({error.strerror})"
                    ) from None
                reasons.append(f"{place.folder}: {error.strerror}")
                continue
            try:
                dataset = _parse(source, declared, directory, progress)
            except BaseException:
                place.discard(directory)
                raise
            # The arrays are mapped by now, so another process may already replace them.
            place.keep(directory, source)
            return dataset
        if reasons:
            _warn_of_no_cache(reasons)
        # The system frees the bytes when the arrays are no longer mapped.
        with tempfile.TemporaryDirectory(prefix="dualrank-", ignore_cleanup_errors=True) as folder:
            return _parse(source, declared, Path(folder), progress)


def _warn_of_no_cache(reasons: list[str]) -> None:
    """Say once why no cache can be kept; what holds for one file holds for the next."""
    global _warned
    if not _warned:
        logger.warning(
            "LETOR text is parsed at every reading, for no cache can be kept (%s)",
            "; ".join(reasons),
        )
    _warned = True


def _declared(
    features: int | None, max_grade: float | None, missing_above: float | None
) -> Declared:
    """What the caller says of the file, checked, in plain Python numbers."""
    if features is not None and not (1 <= features <= WIDEST and features == int(features)):
        raise SettingsError(f"features is {features}; expected a whole number from 1 to {WIDEST}")
    if max_grade is not None and not 0 < max_grade < float("inf"):
        raise SettingsError(f"max_grade is {max_grade}; expected a number above 0")
    if missing_above is not None and not missing_above > 0:
        raise SettingsError(f"missing_above is {missing_above}; expected a number above 0")
    return Declared(
        None if features is None else int(features),
        None if max_grade is None else float(max_grade),
        None if missing_above is None else float(missing_above),
    )


def _caches(
    path: Path, declared: Declared, cache: bool | str | os.PathLike[str]
) -> list[LetorCache]:
    """The places where a cache may lie, best first."""
    if cache is False:
        return []
    folders = cache_folders(path) if cache is True else [folder_within(Path(cache), path)]
    return [LetorCache(path, declared, folder) for folder in folders]


def _parse(
    source: SourceFile, declared: Declared, directory: Path, progress: Progress | None
) -> Dataset:
    """Parse the source into arrays in this directory and map them."""
    # Importing numba takes most of a second, which a reader of a cache need not wait for.
    from dualrank.data.letor.parser import parse_letor

    try:
        parse_letor(source, declared, directory, progress=progress)
    except OSError as error:
        raise DataError(
            f"{source.path}: the parsed arrays cannot be written to {directory} ({error.strerror})"
        ) from None
    return open_arrays(directory, declared.max_grade)
