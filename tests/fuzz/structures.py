"""Mutations of what files mean: values of JSON, columns of Parquet, tensors and arrays.

A file that no longer is what it should be, because another mutation came first, stays as it is.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Callable
from functools import wraps
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .mutations import BYTES, NUMBERS, TEXT, WORDS, Mutation

_DEEP, _HUGE, _LONG = "@deep@", "@huge@", "@long@"
_RAW = {_DEEP: "[" * 100_000 + "]" * 100_000, _HUGE: "1e400", _LONG: "9" * 5_000}
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, -(2**63), 0.5, -7.5, 1e308, 1e-320),
    *(float("nan"), float("inf"), "", "x", "nan", "-1", "2024-01-01", "a" * 1_000, "\x1b[31m"),
    *([], {}, [[]], [None], [1, 2, 3], {"x": 1}, [0.5] * 100, ["x"] * 3, _DEEP, _HUGE, _LONG),
)


def _if_readable(work: Callable[[Random, bytes], bytes]) -> Mutation:
    """The mutation, which leaves alone what it cannot understand."""

    @wraps(work)
    def mutation(rng: Random, data: bytes, _: bytes) -> bytes:
        try:
            return work(rng, data)
        except Exception:  # whatever the libraries say of a file that is damaged already
            return data

    return mutation


def with_a_value_replaced(rng: Random, value: Any) -> Any:
    """The same nest of lists and objects, but somewhere with another value, key or length."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        what = rng.random()
        if what < 0.1:
            return {name: held for name, held in value.items() if name != key}
        if what < 0.15:
            return {(f"{name}x" if name == key else name): held for name, held in value.items()}
        if what < 0.2:
            return value | {rng.choice(WORDS): rng.choice(_VALUES)}
        return value | {key: with_a_value_replaced(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.85:
        place, what = rng.randrange(len(value)), rng.random()
        if what < 0.1:
            return value[:place] + value[place + 1 :]
        if what < 0.2:
            return [*value[:place], value[place], *value[place:]]
        changed = with_a_value_replaced(rng, value[place])
        return [*value[:place], changed, *value[place + 1 :]]
    if isinstance(value, int | float) and rng.random() < 0.2:
        return rng.choice((-value, value * 1e9, str(value), [value], value + 1))
    return rng.choice(_VALUES)


def _as_json(value: Any, **layout: Any) -> bytes:
    text = json.dumps(value, **layout)
    for name, raw in _RAW.items():
        text = text.replace(f'"{name}"', raw)
    return text.encode()


@_if_readable
def json_value(rng: Random, data: bytes) -> bytes:
    """Another value in a JSON text."""
    return _as_json(with_a_value_replaced(rng, json.loads(data)), indent=1)


@_if_readable
def json_line_value(rng: Random, data: bytes) -> bytes:
    """Another value in a line of JSON."""
    lines = data.splitlines()
    place = rng.randrange(len(lines))
    lines[place] = _as_json(with_a_value_replaced(rng, json.loads(lines[place])))
    return b"\n".join(lines) + b"\n"


@_if_readable
def parquet_value(rng: Random, data: bytes) -> bytes:
    """Another value in a row, of the column's own type where it can be, or else of another."""
    table = pq.read_table(io.BytesIO(data))
    rows = with_a_value_replaced(rng, table.to_pylist())
    try:
        changed = pa.Table.from_pylist(rows, table.schema)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        changed = pa.Table.from_pylist(rows)
    return _parquet(changed.replace_schema_metadata(table.schema.metadata))


@_if_readable
def parquet_column(rng: Random, data: bytes) -> bytes:
    """A column of another type or name, without values, twice, or missing."""
    table = pq.read_table(io.BytesIO(data))
    place = rng.randrange(table.num_columns)
    name, column = table.column_names[place], table.column(place)
    what = rng.randrange(7)
    if what == 0:
        changed = table.remove_column(place)
    elif what == 1:
        names = [*table.column_names]
        names[place] = rng.choice((*WORDS, rng.choice(table.column_names)))
        changed = table.rename_columns(names)
    elif what == 2:
        changed = table.append_column(name, column)
    elif what == 3:
        changed = table.set_column(place, name, pa.nulls(len(table), column.type))
    elif what == 4:
        rows = rng.sample(range(len(table)), rng.randrange(len(table) + 1))
        changed = table.take(pa.array(rows, pa.int64()))
    elif what == 5:
        value = rng.choice((*NUMBERS, *WORDS, None, 0, -1, 2.5, 2**62, True, b"\xff"))
        changed = table.set_column(place, name, pa.array([value] * len(table)))
    else:
        kinds = (pa.string(), pa.large_string(), pa.binary(), pa.int8(), pa.uint64(), pa.float16())
        others = (pa.float64(), pa.bool_(), pa.timestamp("ns"), pa.date32(), pa.decimal128(38, 9))
        changed = table.set_column(place, name, column.cast(rng.choice((*kinds, *others))))
    return _parquet(changed)


@_if_readable
def parquet_note(rng: Random, data: bytes) -> bytes:
    """Another value in the JSON that a file of dualrank's own carries in its metadata."""
    table = pq.read_table(io.BytesIO(data))
    metadata = dict(table.schema.metadata)
    key = rng.choice(sorted(metadata))
    metadata[key] = _as_json(with_a_value_replaced(rng, json.loads(metadata[key])))
    return _parquet(table.replace_schema_metadata(metadata))


def _parquet(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd")
    return file.getvalue()


@_if_readable
def tensor_header(rng: Random, data: bytes) -> bytes:
    """Another value in the header of a safetensors file, also in the JSON that it carries."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    carried = header.get("__metadata__", {})
    if "values" in carried and rng.random() < 0.5:
        inner = with_a_value_replaced(rng, json.loads(carried["values"]))
        header["__metadata__"] = carried | {"values": _as_json(inner).decode()}
    else:
        header = with_a_value_replaced(rng, header)
    text = _as_json(header)
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


@_if_readable
def tensor_number(rng: Random, data: bytes) -> bytes:
    """Another number in a tensor."""
    start = 8 + int.from_bytes(data[:8], "little")
    numbers = np.frombuffer(data[start:], np.float32).copy()
    numbers[rng.randrange(len(numbers))] = rng.choice((np.nan, np.inf, -1e38, 3e38, 1e-45, 0.0))
    return data[:start] + numbers.tobytes()


@_if_readable
def array_of_archive(rng: Random, data: bytes) -> bytes:
    """One of several arrays is missing, of another kind or shape, or holds another value."""
    with np.load(io.BytesIO(data), allow_pickle=False) as held:
        arrays = {name: held[name] for name in held.files}
    name = rng.choice(sorted(arrays))
    array = arrays.pop(name)
    if array.dtype == np.uint8 and rng.random() < 0.8:
        text = _as_json(with_a_value_replaced(rng, json.loads(bytes(array))))
        arrays[name] = np.frombuffer(text, np.uint8)
    elif rng.random() < 0.8:
        changed = array.astype(rng.choice(("f4", "f8", "i8", "U5", "c16", "?"))).reshape(-1)
        if len(changed) and changed.dtype.kind == "f":
            changed[rng.randrange(len(changed))] = rng.choice((np.nan, np.inf, -7.5))
        arrays[name] = changed[: rng.randrange(len(changed) + 1)] if rng.random() < 0.3 else changed
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


@_if_readable
def array_header(rng: Random, data: bytes) -> bytes:
    """Another word or number in the text at the beginning of an .npy file."""
    length = 10 + int.from_bytes(data[8:10], "little")
    text = TEXT[len(BYTES)](rng, data[10:length], b"")
    return data[:10] + text[: length - 10].ljust(length - 10) + data[length:]


def packed(
    mutations: tuple[Mutation, ...],
    pack: Callable[[bytes], bytes],
    unpack: Callable[[bytes], bytes],
) -> tuple[Mutation, ...]:
    """The same within a compressed file, and the bytes of the compressed file itself."""

    def within(mutation: Mutation) -> Mutation:
        @wraps(mutation)
        def inside(rng: Random, data: bytes, other: bytes) -> bytes:
            try:
                text = unpack(data)
            except (OSError, EOFError, ValueError, zlib.error):
                return data
            return pack(mutation(rng, text, other))

        return inside

    return (*BYTES, *map(within, mutations))


def _zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def _unzstd(data: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        return stream.read()


JSON: tuple[Mutation, ...] = (*TEXT, *(json_value,) * 12)
JSON_LINES: tuple[Mutation, ...] = (*TEXT, *(json_line_value,) * 12)
PARQUET: tuple[Mutation, ...] = (*BYTES, *(parquet_value, parquet_column, parquet_note) * 4)
TENSORS: tuple[Mutation, ...] = (*BYTES, *(tensor_header, tensor_number) * 4)
ARCHIVE: tuple[Mutation, ...] = (*BYTES, *(array_of_archive,) * 8)
ARRAY: tuple[Mutation, ...] = (*BYTES, *(array_header,) * 3)


def gzipped(mutations: tuple[Mutation, ...]) -> tuple[Mutation, ...]:
    """Of a file that is compressed by gzip."""
    return packed(mutations, lambda data: gzip.compress(data, mtime=0), gzip.decompress)


def zstandard(mutations: tuple[Mutation, ...]) -> tuple[Mutation, ...]:
    """Of a file that is compressed by zstd."""
    return packed(mutations, _zstd, _unzstd)
