"""What disks, transfers, editors and attackers do to bytes and to text.

A mutation takes a source of chance, the bytes of a file and those of another file, and gives the
bytes that are read instead. Which mutations fit a file is said by a tuple of them.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from random import Random

Mutation = Callable[[Random, bytes, bytes], bytes]

NUMBERS = (
    *("nan", "inf", "-inf", "-1", "0", "-0.0", "1.5", "1e400", "1e-400", "3.5e38", "1e308", "0x10"),
    *(str(2**31), str(2**32), str(2**53 + 1), str(2**63 - 1), str(2**63), str(-(2**63)), "9" * 400),
)
WORDS = (
    *(
        "",
        " ",
        "null",
        "true",
        "None",
        '"',
        "'",
        "\\",
        "[bold]",
        "[/]",
        "=1+1",
        "../../x",
        "#",
        "|",
    ),
    *("\x00", "\x1b[31m", "\r", "\u2028", "\ufeff", "é", "中文", "😀", "a" * 300, "b" * 70_000),
)
_PACKED = (
    *(struct.pack("<i", n) for n in (-1, 2**31 - 1, -(2**31))),
    *(struct.pack("<q", n) for n in (-1, 0, 2**62, 2**63 - 1, -(2**63), 2**32)),
    *(struct.pack("<f", x) for x in (float("nan"), float("inf"), 3.4e38)),
    *(struct.pack("<d", x) for x in (float("nan"), float("-inf"), 1e308)),
)
_TOKEN = re.compile(rb"[^\s,;:|=\"'{}\[\]()]+")
_SEPARATORS = (b",", b"\t", b" ", b";")


def flipped(rng: Random, data: bytes, _: bytes) -> bytes:
    """Some bits are the other way round."""
    changed = bytearray(data)
    for _time in range(rng.choice((1, 1, 1, 2, 8))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut(rng: Random, data: bytes, _: bytes) -> bytes:
    """The file ends early."""
    return data[: rng.randrange(len(data) + 1)]


def beheaded(rng: Random, data: bytes, _: bytes) -> bytes:
    """The file begins late."""
    return data[rng.randrange(len(data) + 1) :]


def without_a_piece(rng: Random, data: bytes, _: bytes) -> bytes:
    """Some bytes are missing."""
    start, stop = _span(rng, data)
    return data[:start] + data[stop:]


def with_a_piece_twice(rng: Random, data: bytes, _: bytes) -> bytes:
    """Some bytes come again, at once or elsewhere."""
    start, stop = _span(rng, data)
    place = rng.choice((stop, rng.randrange(len(data) + 1)))
    return data[:place] + data[start:stop] + data[place:]


def with_noise(rng: Random, data: bytes, _: bytes) -> bytes:
    """Some bytes are new."""
    start = rng.randrange(len(data) + 1)
    return data[:start] + rng.randbytes(rng.choice((1, 2, 4, 50))) + data[start:]


def blanked(rng: Random, data: bytes, _: bytes) -> bytes:
    """A piece is all zeros or all ones, as of a lost block."""
    start, stop = _span(rng, data)
    return data[:start] + rng.choice((b"\x00", b"\xff")) * (stop - start) + data[stop:]


def with_a_number(rng: Random, data: bytes, _: bytes) -> bytes:
    """A binary number is one of those that break sums."""
    number = rng.choice(_PACKED)
    if len(data) < len(number):
        return number
    start = rng.randrange(len(data) - len(number) + 1)
    start -= rng.choice((0, start % len(number)))
    return data[:start] + number + data[start + len(number) :]


def spliced(rng: Random, data: bytes, other: bytes) -> bytes:
    """The beginning of the file, and the end of another; or all of another."""
    if rng.random() < 0.1:
        return other
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def with_another_value(rng: Random, data: bytes, _: bytes) -> bytes:
    """A number or word is another one."""
    tokens = list(_TOKEN.finditer(data))
    if not tokens:
        return data
    token = rng.choice(tokens)
    value = rng.choice(rng.choice((NUMBERS, WORDS))).encode()
    return data[: token.start()] + value + data[token.end() :]


def with_lines_moved(rng: Random, data: bytes, _: bytes) -> bytes:
    """A line is missing, comes twice, or has changed places with another."""
    lines = data.splitlines(keepends=True)
    if len(lines) < 2:
        return data
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    what = rng.randrange(3)
    if what == 0:
        del lines[a]
    elif what == 1:
        lines.insert(b, lines[a])
    else:
        lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


def with_a_column_moved(rng: Random, data: bytes, _: bytes) -> bytes:
    """In one line or in all of them a value is missing, twice, or at another place."""
    separator = max(_SEPARATORS, key=data.count)
    rows = [line.split(separator) for line in data.split(b"\n")]
    a, b, what = rng.randrange(8), rng.randrange(8), rng.randrange(3)
    for row in rows if rng.random() < 0.5 else [rng.choice(rows)]:
        if max(a, b) >= len(row):
            continue
        if what == 0:
            del row[a]
        elif what == 1:
            row.insert(b, row[a])
        else:
            row[a], row[b] = row[b], row[a]
    return b"\n".join(separator.join(row) for row in rows)


def as_another_program_writes(rng: Random, data: bytes, _: bytes) -> bytes:
    """With a byte-order mark, other line ends, another encoding or another separator."""
    text = data.decode("utf-8", "replace")
    ways = (
        lambda: b"\xef\xbb\xbf" + data,
        lambda: data.replace(b"\n", b"\r\n"),
        lambda: data.replace(b"\n", b"\r"),
        lambda: text.encode("utf-16"),
        lambda: text.replace("e", "é").encode("latin-1", "replace"),
        lambda: data.replace(b",", b";"),
        lambda: data.replace(b"\n", b"\n\n"),
        lambda: data.rstrip(b"\n"),
    )
    return rng.choice(ways)()


BYTES: tuple[Mutation, ...] = (
    flipped,
    cut,
    beheaded,
    without_a_piece,
    with_a_piece_twice,
    with_noise,
    blanked,
    with_a_number,
    spliced,
)
TEXT: tuple[Mutation, ...] = (
    *BYTES,
    *(with_another_value,) * 5,
    *(with_lines_moved, with_a_column_moved, as_another_program_writes) * 2,
)


def mutate(
    rng: Random, mutations: tuple[Mutation, ...], data: bytes, other: bytes
) -> tuple[bytes, list[str]]:
    """One to three mutations after each other, at least one of which changed something."""
    changed, how = data, []
    for _try in range(20):
        mutation = rng.choice(mutations)
        after = mutation(rng, changed, other)
        if after != changed:
            changed = after
            how.append(getattr(mutation, "__name__", str(mutation)))
        if how and changed != data and (len(how) == 3 or rng.random() < 0.6):
            break
    return changed, how


def _span(rng: Random, data: bytes) -> tuple[int, int]:
    """Where a piece begins and ends: often short, sometimes long."""
    start = rng.randrange(len(data) + 1)
    length = rng.choice((1, 1, 2, 4, 8, 64, 512, 4096))
    return start, min(start + length, len(data))
