"""The public learning-to-rank sets by name, in the folders as people download them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from dualrank.data.dataset import Dataset, Splits, concatenate
from dualrank.data.letor.reader import Progress, read_letor
from dualrank.errors import DataError, SettingsError
from dualrank.progress import shows_progress

SUFFIXES = ("", ".gz", ".zst")
PARTS = 5


@dataclass(frozen=True)
class PublicSet:
    """What is known of a public set: its files, its features, its grades.

    `files` are train, validation and test below the root, with `{fold}` for the fold. `parts`
    are five files that the folds are put together from, `single` one file without official
    folds. `folders` are names that the downloaded archive may unpack to. `missing_above` is
    where values stop being values, see `load_public`.
    """

    features: int
    max_grade: int
    folds: int
    folders: tuple[str, ...]
    files: tuple[str, str, str]
    parts: str | None = None
    single: str | None = None
    missing_above: float | None = None


FOLDS = ("Fold{fold}/train.txt", "Fold{fold}/vali.txt", "Fold{fold}/test.txt")

PUBLIC_SETS = {
    "yahoo-set1": PublicSet(
        features=700,
        max_grade=4,
        folds=1,
        folders=("ltrc_yahoo", "Learning to Rank Challenge", "Webscope_C14B", "Webscope_C14"),
        files=("set1.train.txt", "set1.valid.txt", "set1.test.txt"),
    ),
    "mslr-web10k": PublicSet(136, 4, 5, ("MSLR-WEB10K",), FOLDS),
    "mslr-web30k": PublicSet(136, 4, 5, ("MSLR-WEB30K",), FOLDS),
    "istella-s": PublicSet(
        features=220,
        max_grade=4,
        folds=1,
        folders=("istella-s-letor",),
        files=("sample/train.txt", "sample/vali.txt", "sample/test.txt"),
        missing_above=1e30,
    ),
    "mq2007": PublicSet(
        46, 2, 5, ("MQ2007", "letor_mq2007"), FOLDS, "S{part}.txt", "mq2007_85pct.txt"
    ),
    "mq2008": PublicSet(46, 2, 5, ("MQ2008", "letor_mq2008"), FOLDS, "S{part}.txt"),
}


@shows_progress("reading the public set")
def load_public(
    name: str,
    root: str | os.PathLike[str],
    fold: int = 1,
    *,
    cache: bool | str | os.PathLike[str] = True,
    progress: Progress | None = None,
) -> Splits:
    """Training, validation and test data of a public set that was downloaded to `root`.

    `root` is the unpacked folder or the one above it, and each file may be plain, `.gz` or
    `.zst`. All three parts have the set's number of columns, also where the last features never
    occur, and the set's highest grade.

    - `yahoo-set1`: `set1.train.txt`, `set1.valid.txt`, `set1.test.txt`; 700 features.
    - `mslr-web10k`, `mslr-web30k`: `Fold1` to `Fold5`; 136 features.
    - `istella-s`: `sample/train.txt` and so on; 220 features. Some of its values are
      1.79769313486e+308, the largest number of the program that wrote them and its sign for "no
      value". Values above 1e30 are read as 0, as a feature that a line leaves out.
    - `mq2007`, `mq2008`: `Fold1` to `Fold5`, or else `S1.txt` to `S5.txt`, of which LETOR 4.0
      makes fold k as: train on S_k, S_k+1, S_k+2, validate on S_k+3, test on S_k+4, counted
      around. For `mq2007` also the single file `mq2007_85pct.txt`, a part of the set whose
      official folds are not known: its queries fall into five parts by the sha256 of their ids.
      **Those are not the official folds**; do not compare them with published numbers.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import dualrank as dr
    >>> with TemporaryDirectory() as folder:  # yours: where you unpacked the collection
    ...     fold = Path(folder, "Fold1")
    ...     fold.mkdir()
    ...     for part in ["train", "vali", "test"]:
    ...         _ = (fold / f"{part}.txt").write_text("2 qid:10 1:0.5\\n0 qid:10 1:0.25\\n")
    ...     data = dr.load_public("mq2008", folder, cache=False)
    >>> data.train.features.shape, data.train.max_grade
    ((2, 46), 2.0)
    """
    if name not in PUBLIC_SETS:
        raise SettingsError(
            f"there is no public set {name!r}; expected one of {', '.join(PUBLIC_SETS)}"
        )
    known = PUBLIC_SETS[name]
    if fold not in range(1, known.folds + 1):
        expected = "1" if known.folds == 1 else f"1 to {known.folds}"
        raise SettingsError(f"the fold of {name} is {fold}; expected {expected}")

    if not Path(root).is_dir():
        raise DataError(
            f"{root}: there is no such folder; expected the one that {name} was unpacked to"
        )

    read = partial(
        read_letor,
        features=known.features,
        max_grade=known.max_grade,
        missing_above=known.missing_above,
        cache=cache,
        progress=progress,
    )
    missing: dict[str, None] = {}
    for files, assemble in _layouts(known, fold):
        for folder in ("", *known.folders):
            paths = {file: _existing(Path(root, folder, file)) for file in files}
            found = [path for path in paths.values() if path is not None]
            if len(found) == len(files):
                return assemble([read(path) for path in found], fold)
            missing |= {file: None for file, path in paths.items() if path is None}
    raise DataError(
        f"{root}: the files of {name} are not all there; looked for {', '.join(missing)} "
        f"(also with {' or '.join(SUFFIXES[1:])}) there and in {', '.join(known.folders)}"
    )


def _layouts(
    known: PublicSet, fold: int
) -> Iterator[tuple[list[str], Callable[[list[Dataset], int], Splits]]]:
    """Files that hold a set, and how the splits of a fold are made from them."""
    yield [file.format(fold=fold) for file in known.files], lambda datasets, _: Splits(*datasets)
    if known.parts is not None:
        yield [known.parts.format(part=part) for part in range(1, PARTS + 1)], _official_fold
    if known.single is not None:
        yield [known.single], _hashed_fold


def _existing(path: Path) -> Path | None:
    """The file under this name, or under it with the suffix of a compression."""
    candidates = (path.with_name(path.name + suffix) for suffix in SUFFIXES)
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _official_fold(parts: list[Dataset], fold: int) -> Splits:
    """Fold 1 = S1, S2, S3 | S4 | S5; fold 2 = S2, S3, S4 | S5 | S1; and so on."""
    turned = parts[fold - 1 :] + parts[: fold - 1]
    return Splits(concatenate(turned[:3]), turned[3], turned[4])


def _hashed_fold(datasets: list[Dataset], fold: int) -> Splits:
    (whole,) = datasets
    part = np.array([_part_of(qid) for qid in whole.query_ids.tolist()])
    splits = _official_fold([whole.take(np.flatnonzero(part == p)) for p in range(PARTS)], fold)
    return replace(splits, note="split by a hash of the query ids, not the official folds")


def _part_of(qid: str) -> int:
    return int.from_bytes(hashlib.sha256(qid.encode()).digest()[:8], "big") % PARTS
