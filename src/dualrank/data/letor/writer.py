"""A data set as LETOR text, each value short and read back as the identical float32."""

# mypy: allow-untyped-defs
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
from numba import njit
from numpy.typing import NDArray

from dualrank.data.dataset import Dataset
from dualrank.data.letor.rules import LONGEST_ID
from dualrank.errors import DataError
from dualrank.storage import atomic_file

BLANK = re.compile("[\\x00-\\x20]")
WRITTEN_VALUES = 1 << 19
MOST_BYTES = 32
"""No `index:value` with its blank is longer than this."""

_SLACK = 2.0**-48
_POWERS = np.array([10.0**k for k in range(23)])
_POINT, _MINUS, _ZERO, _COLON, _BLANK, _E = 46, 45, 48, 58, 32, 101


def write_letor(dataset: Dataset, path: str | os.PathLike[str]) -> None:
    """Write a data set as LETOR text, compressed if the name ends in `.gz` or `.zst`.

    Each value has the fewest digits (up to nine) that read back as the identical float32. Every
    feature is written, zeros too, so that the number of features reads back as well.
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
    out = np.empty(features.size * MOST_BYTES, np.uint8)
    ends = np.empty(len(features), np.int64)
    _print_rows(np.ascontiguousarray(features), out, ends)
    text = out[: ends[-1]].tobytes().decode()
    return [text[a:b] for a, b in zip([0, *ends.tolist()], ends.tolist(), strict=False)]


@njit(cache=True)
def _print_rows(features, out, ends):
    at = 0
    for row in range(features.shape[0]):
        for column in range(features.shape[1]):
            out[at] = _BLANK
            at = _print_integer(column + 1, out, at + 1)
            out[at] = _COLON
            at = _print_value(features[row, column], out, at + 1)
        ends[row] = at


@njit(cache=True)
def _print_integer(number, out, at):
    count = 1
    rest = number // 10
    while rest > 0:
        count += 1
        rest //= 10
    for place in range(at + count - 1, at - 1, -1):
        out[place] = _ZERO + number % 10
        number //= 10
    return at + count


@njit(cache=True)
def _times_power(number, power):
    """number · 10^power; correctly rounded where number < 2^53 and |power| ≤ 22."""
    while power > 22:
        number *= 1e22
        power -= 22
    while power < -22:
        number /= 1e22
        power += 22
    return number * _POWERS[power] if power >= 0 else number / _POWERS[-power]


@njit(cache=True)
def _decimal(value):
    """The integer m and the power p with m · 10^p the shortest decimal found for this value.

    Nine significant digits always tell a float32 from its neighbours. Six, seven and eight are
    tried first, and accepted only if the neighbourhood of m · 10^p reads as the value too, so
    that the rounding of this arithmetic cannot mislead.
    """
    wanted = np.float32(value)
    first = int(np.floor(np.log10(value)))
    for digits in (6, 7, 8, 9):
        power = first - digits + 1
        m = int(np.rint(_times_power(value, -power)))
        read = _times_power(float(m), power)
        if np.float32(read * (1 - _SLACK)) == wanted == np.float32(read * (1 + _SLACK)):
            break
    while m % 10 == 0:
        m //= 10
        power += 1
    return m, power


@njit(cache=True)
def _print_value(number, out, at):
    if np.signbit(number):
        out[at] = _MINUS
        at += 1
    if number == 0:
        out[at] = _ZERO
        return at + 1
    m, power = _decimal(abs(np.float64(number)))
    digits = _print_integer(m, out, at) - at
    exponent = power + digits - 1
    if power >= 0 and exponent <= 8:
        for _ in range(power):
            out[at + digits] = _ZERO
            digits += 1
        return at + digits
    if 0 <= exponent <= 8:
        return _insert_point(out, at, digits, exponent + 1)
    if -5 <= exponent < 0:
        shift = 1 - exponent
        for place in range(at + digits - 1, at - 1, -1):
            out[place + shift] = out[place]
        for place in range(at, at + shift):
            out[place] = _ZERO
        out[at + 1] = _POINT
        return at + shift + digits
    if digits > 1:
        at = _insert_point(out, at, digits, 1)
    else:
        at += 1
    out[at] = _E
    at += 1
    if exponent < 0:
        out[at] = _MINUS
        at += 1
    return _print_integer(abs(exponent), out, at)


@njit(cache=True)
def _insert_point(out, at, digits, before):
    for place in range(at + digits - 1, at + before - 1, -1):
        out[place + 1] = out[place]
    out[at + before] = _POINT
    return at + digits + 1
