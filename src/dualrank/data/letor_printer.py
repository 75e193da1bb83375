"""Feature values as short text that reads back as the identical float32."""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

MOST_BYTES = 32
"""No `index:value` with its blank is longer than this."""

_SLACK = 2.0**-48
_POWERS = np.array([10.0**k for k in range(23)])
_POINT, _MINUS, _ZERO, _COLON, _BLANK, _E = 46, 45, 48, 58, 32, 101


def print_rows(features: NDArray[np.float32]) -> list[str]:
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
