"""A data set as LETOR text, each value short and read back as the identical float32."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dualrank.data.dataset import Dataset
from dualrank.data.letor.rules import LONGEST_ID
from dualrank.errors import DataError
from dualrank.storage import atomic_file

BLANK = re.compile("[\\x00-\\x20]")
WRITTEN_VALUES = 1 << 19


def write_letor(dataset: Dataset, path: str | os.PathLike[str]) -> None:
    """Write a data set as LETOR text, compressed if the name ends in `.gz` or `.zst`.

    Each value has the fewest digits that read back as the identical float32. Every
    feature is written, zeros too, so that the number of features reads back as well.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> import dualrank as dr
    >>> data = dr.Dataset.from_arrays(np.array([[0.5, 2], [0.25, 0]], np.float32),
    ...                               np.array(["q1", "q1"]), grades=np.array([2, 0]))
    >>> with TemporaryDirectory() as folder:
    ...     dr.write_letor(data, f"{folder}/train.txt")
    ...     print(Path(folder, "train.txt").read_text(), end="")
    2 qid:q1 1:0.5 2:2
    0 qid:q1 1:0.25 2:0
    """
    grades = dataset.require_grades()
    if dataset.features.size == 0:
        raise DataError("this data set has no documents or no features; LETOR text needs both")
    query_ids = _checked("query", dataset.query_ids.tolist())
    if "" in query_ids:
        raise DataError("found an empty query id; LETOR text needs an id for every query")
    queries = dataset.query_of_document
    step = max(1, WRITTEN_VALUES // dataset.feature_count)
    with _written_file(Path(path)) as file:
        for start in range(0, dataset.document_count, step):
            rows = slice(start, start + step)
            texts = _texts_of_rows(dataset.features[rows])
            ends = ["\n"] * len(texts)
            if dataset.doc_ids is not None:
                doc_ids = _checked("document", dataset.doc_ids[rows].tolist())
                ends = [f" # docid = {name}\n" if name else "\n" for name in doc_ids]
            lines = zip(grades[rows].tolist(), queries[rows].tolist(), texts, ends, strict=True)
            file.write(
                "".join(
                    f"{grade:.9g} qid:{query_ids[query]}{values}{end}"
                    for grade, query, values, end in lines
                ).encode()
            )


def _checked(what: str, ids: list[str]) -> list[str]:
    """These ids, if they can be read back."""
    for name in ids:
        if BLANK.search(name):
            raise DataError(f"found a blank in the {what} id {name!r}; LETOR text allows none")
        if len(name.encode()) > LONGEST_ID:
            raise DataError(
                f"found the {what} id {name[:40]!r}... of {len(name.encode())} bytes; "
                f"expected at most {LONGEST_ID}"
            )
    return ids


@contextmanager
def _written_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, compressed if its name ends in `.gz` or `.zst`; whole or not there."""
    with atomic_file(path) as file:
        if path.suffix == ".gz":
            # Without name and time, equal content gives equal bytes.
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                yield cast(BinaryIO, packed)
        elif path.suffix == ".zst":
            # The stream closes what it writes to, so it gets the same file once more.
            with (
                open(file.fileno(), "wb", closefd=False) as same,
                pa.CompressedOutputStream(same, "zstd") as packed,
            ):
                yield packed
        else:
            yield file


def _texts_of_rows(features: NDArray[np.float32]) -> list[str]:
    """For each row ` 1:value 2:value ...`, with a blank in front."""
    rows, columns = features.shape
    values = pa.array(np.ascontiguousarray(features).ravel()).cast(pa.string())
    names = pa.array([f" {index}:" for index in range(1, columns + 1)])
    places = np.tile(np.arange(columns, dtype=np.int32), rows)
    cells = pc.binary_join_element_wise(names.take(pa.array(places)), values, "")
    lists = pa.FixedSizeListArray.from_arrays(cells, columns).cast(pa.list_(pa.string()))
    texts: list[str] = pc.binary_join(lists, "").to_pylist()
    return texts
