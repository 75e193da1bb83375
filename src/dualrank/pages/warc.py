"""Web archives, record by record: what is damaged is named, and reading goes on behind it.

A record begins with `WARC/1.0` and headers; their `Content-Length` says where it ends. In
`.warc.gz` every record is a gzip member of its own, so that the next one can be found behind a
damaged one.
"""

from __future__ import annotations

import io
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from dualrank.data.letor.source import GZIP_MAGIC, MOST_UNPACKED, UNPACKED_UNASKED
from dualrank.pages.extraction import MAX_BYTES

KEPT_BYTES = 2 * MAX_BYTES
"""So much of a record is looked at; of a page no more than half of it is read."""

MOST_DAMAGED = 1000
"""How many damaged records are named before a file with fewer whole ones is given up."""

_PIECE = 1 << 16
_BEGINNING = re.compile(rb"WARC/\d+\.\d+\s*$")
_MEMBER = GZIP_MAGIC + b"\x08"


@dataclass(frozen=True)
class Record:
    """A whole record with its headers, cut where it is long; `end` is where reading was."""

    start: int
    content: bytes
    end: int


@dataclass(frozen=True)
class Damaged:
    """Where in the file a record cannot be read, and why."""

    start: int
    reason: str


def read_records(path: Path) -> Iterator[Record | Damaged]:
    """All records of an archive in their order; damaged stretches are named once."""
    with path.open("rb") as file:
        start = file.read(5)
        # The first member may be the damaged one; plain archives have been named .gz, too.
        packed = start.startswith(GZIP_MAGIC) or (path.suffix == ".gz" and start != b"WARC/")
        file.seek(0)
        whole = damaged = 0
        for each in _of_members(file) if packed else _of_stream(file, 0, os.fstat(file.fileno())):
            yield each
            if isinstance(each, Record):
                whole += 1
                continue
            damaged += 1
            if damaged >= MOST_DAMAGED and damaged > whole:
                yield Damaged(each.start, "most of the file is damaged; the rest is not read")
                return


def _of_stream(
    stream: BinaryIO, offset: int, about: os.stat_result | None = None
) -> Iterator[Record | Damaged]:
    """The records of plain bytes; with `about` they are a file, in which one can go back."""
    lost = False
    while True:
        start = stream.tell() if about else offset
        line = stream.readline(_PIECE)
        if not line:
            return
        beginning = _BEGINNING.search(line)
        if not lost and line.strip() and (beginning is None or beginning.start()):
            yield Damaged(start, "no record begins there")
            lost = True
        if beginning is None:
            continue
        start, line = start + beginning.start(), beginning[0]
        lost = True
        header = _header(stream, line)
        length = _length(header)
        if length is None:
            yield Damaged(start, "the record does not say its length")
            continue
        body = stream.tell() if about else 0
        content = stream.read(min(length, KEPT_BYTES))
        if not _skip(stream, length - len(content), about) or stream.readline(_PIECE).strip():
            yield Damaged(start, f"the record is not of {length} bytes, as it says")
            if about:
                stream.seek(body)
            continue
        lost = False
        yield Record(start, header + content, stream.tell() if about else offset)


def _of_members(file: BinaryIO) -> Iterator[Record | Damaged]:
    """The records of gzip members, each of one record or of many."""
    start, lost, tried = 0, False, 0
    while True:
        member = _Member(file, start)
        waiting: Record | None = None
        named = lost
        reason = "nothing that could be unpacked"
        try:
            for found in _of_stream(cast(BinaryIO, io.BufferedReader(member, _PIECE)), start):
                # The sum over a member stands at its end: before that, none of it is believed.
                if waiting is not None:
                    yield waiting
                waiting = found if isinstance(found, Record) else None
                if isinstance(found, Damaged):
                    yield found
                    named = True
        except (zlib.error, EOFError, ValueError) as error:
            reason = str(error)
        if member.end is not None:
            if waiting is not None:
                yield Record(start, waiting.content, member.end)
            start, named, tried = member.end, False, 0
            file.seek(start)
            if file.read(len(_MEMBER)) == _MEMBER:
                lost = False
                continue
            file.seek(start)
            if not file.read(1):
                return
            reason = "no record begins there"
        if not named:
            yield Damaged(start, f"the gzip data are damaged ({reason})")
        lost, tried = True, tried + 1
        following = _find(file, start + 1)
        if following is None:
            return
        if tried == MOST_DAMAGED:
            yield Damaged(start, "no record is found behind it; the rest is not read")
            return
        start = following


class _Member(io.RawIOBase):
    """What one gzip member unpacks to; `end` is where it ends in the file, once that is known."""

    def __init__(self, file: BinaryIO, start: int) -> None:
        self._file = file
        self._file.seek(start)
        self._unpack = zlib.decompressobj(wbits=31)
        self._taken = self._given = 0
        self.end: int | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        found = b""
        while not found and not self._unpack.eof:
            piece = self._unpack.unconsumed_tail or self._file.read(_PIECE)
            if not piece:
                raise EOFError("they end too early")
            found = self._unpack.decompress(piece, len(target))
            self._taken += len(piece) - len(self._unpack.unconsumed_tail)
            self._given += len(found)
            if self._given > max(UNPACKED_UNASKED, MOST_UNPACKED * self._taken):
                raise ValueError(f"they unpack to more than {MOST_UNPACKED} times their size")
        if self._unpack.eof:
            self.end = self._file.tell() - len(self._unpack.unused_data)
        target[: len(found)] = found
        return len(found)


def _header(stream: BinaryIO, line: bytes) -> bytes:
    """The lines of a record up to an empty one, and with it; cut where they do not end."""
    header = line
    while line.strip() and len(header) < _PIECE:
        line = stream.readline(_PIECE)
        header += line or b"\n"
        if not line:
            break
    return header


def _length(header: bytes) -> int | None:
    for line in header.splitlines()[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            return int(value) if len(value) < 20 else None
    return None


def _skip(stream: BinaryIO, count: int, about: os.stat_result | None) -> bool:
    """Pass over so many bytes; whether there are as many."""
    if about:
        there = stream.tell() + count <= about.st_size
        stream.seek(count if there else 0, io.SEEK_CUR)
        return there
    while count and (piece := stream.read(min(count, _PIECE))):
        count -= len(piece)
    return count == 0


def _find(file: BinaryIO, start: int) -> int | None:
    """Where the next gzip member may begin."""
    file.seek(start)
    held = b""
    while piece := file.read(_PIECE):
        held += piece
        place = held.find(_MEMBER)
        if place >= 0:
            return start + place
        start += max(len(held) - len(_MEMBER) + 1, 0)
        held = held[-len(_MEMBER) + 1 :]
    return None
