"""Queries whose numbers are read past Python: most of a request is features.

A request for a hundred documents brings thousands of numbers, and to make a Python object of each
takes a quarter of the time of scoring them. Here one pass over the bytes (compiled by numba) writes
the numbers into a matrix, and leaves JSON in which an array of n numbers is `[n]`: what is left is
small, and pydantic checks it by the same types (`python -m benchmarks.service_load` says what that
gains). Whatever is not plain, or wrong, is left to the slow way, which finds the words for it.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from pydantic import FailFast, Field, ValidationError, with_config
from typing_extensions import NotRequired, TypedDict

from dualrank.errors import DataError
from dualrank.online.bodies import RULES, Id, Query, adapter, refuse_names_twice

Features = NDArray[np.float32]

_U = np.uint64
_TEN, _ZERO = _U(10), _U(48)
_QUOTE, _BACKSLASH, _OPEN, _CLOSE, _COMMA = 34, 92, 91, 93, 44
_MINUS, _PLUS, _POINT, _BIG_E, _SMALL_E = 45, 43, 46, 69, 101
_FULL = _U(10**18)
_EXACT = _U(2**53)
_POWERS = np.array([float(f"1e{k}") for k in range(309)])
_SLACK = 2.0**-50


@njit(cache=True)
def _after_blanks(text, at):
    while text[at] == 32 or (9 <= text[at] <= 13 and text[at] != 11 and text[at] != 12):
        at += 1
    return at


@njit(cache=True)
def _number(text, at):
    """A number of JSON: its float32, the place after it, and whether that is certain.

    With m its digits as an integer, it is m · 10^q. Where m < 2^53 and |q| ≤ 22 both factors are
    exact in float64, and one operation rounds correctly; elsewhere the product is off by less than
    2^-50 of it, and is certain where both ends of that interval become the same float32.
    """
    nothing = np.float32(0)
    negative = text[at] == _MINUS
    if negative:
        at += 1
    first = _U(text[at]) - _ZERO
    if first >= _TEN:
        return nothing, at, False
    m = first
    at += 1
    digit = _U(text[at]) - _ZERO
    if first == 0 and digit < _TEN:
        return nothing, at, False
    while digit < _TEN:
        if m >= _FULL:
            return nothing, at, False
        m = m * _TEN + digit
        at += 1
        digit = _U(text[at]) - _ZERO
    q = 0
    if text[at] == _POINT:
        at += 1
        begun = at
        digit = _U(text[at]) - _ZERO
        while digit < _TEN:
            if m >= _FULL:
                return nothing, at, False
            m = m * _TEN + digit
            at += 1
            digit = _U(text[at]) - _ZERO
        q = begun - at
        if q == 0:
            return nothing, at, False
    if text[at] == _SMALL_E or text[at] == _BIG_E:
        at += 1
        downwards = text[at] == _MINUS
        if downwards or text[at] == _PLUS:
            at += 1
        digit = _U(text[at]) - _ZERO
        if digit >= _TEN:
            return nothing, at, False
        exponent = 0
        while digit < _TEN:
            if exponent < 10_000:
                exponent = exponent * 10 + int(digit)
            at += 1
            digit = _U(text[at]) - _ZERO
        q += -exponent if downwards else exponent
    if q < -308 or q > 308:
        return nothing, at, False
    y = -np.float64(m) if negative else np.float64(m)
    y = y / _POWERS[-q] if q < 0 else y * _POWERS[q]
    low = np.float32(y)
    if not (m < _EXACT and -22 <= q <= 22):
        low = np.float32(y * (1 - _SLACK))
        if low != np.float32(y * (1 + _SLACK)):
            return nothing, at, False
    return low, at, not np.isinf(low)


@njit(cache=True)
def _take_apart(text, left, numbers):
    """Numbers of arrays into `numbers`, all else into `left`; how much of each, or −1."""
    at, size, count, end = 0, 0, 0, len(text) - 1
    while at < end:
        sign = text[at]
        if sign == _QUOTE:
            left[size] = sign
            size += 1
            at += 1
            while at < end and text[at] != _QUOTE:
                if text[at] == _BACKSLASH:
                    return -1, 0
                left[size] = text[at]
                size += 1
                at += 1
            if at == end:
                return -1, 0
            left[size] = _QUOTE
            size += 1
            at += 1
            continue
        left[size] = sign
        size += 1
        at += 1
        if sign != _OPEN:
            continue
        next_at = _after_blanks(text, at)
        if text[next_at] != _MINUS and _U(text[next_at]) - _ZERO >= _TEN:
            continue
        before = count
        at = next_at
        while True:
            value, at, certain = _number(text, at)
            if not certain:
                return -1, 0
            numbers[count] = value
            count += 1
            at = _after_blanks(text, at)
            if text[at] == _CLOSE:
                break
            if text[at] != _COMMA:
                return -1, 0
            at = _after_blanks(text, at + 1)
        # So many numbers took more bytes than their number does.
        n, digits = count - before, 1
        while 10**digits <= n:
            digits += 1
        for place in range(digits):
            left[size + digits - 1 - place] = 48 + n % 10
            n //= 10
        size += digits
    return size, count


@with_config(RULES)
class _Document(TypedDict):
    doc_id: Id
    features: NotRequired[Annotated[list[int], Field(min_length=1, max_length=1)]]


@with_config(RULES)
class _Query(Query):
    documents: Annotated[list[_Document], FailFast(), Field(min_length=1)]  # type: ignore[misc]


@with_config(RULES)
class _Queries(TypedDict):
    queries: Annotated[list[_Query], FailFast(), Field(min_length=1)]


def quick_queries(body: bytes, inputs: int) -> tuple[Any, list[Features | None]] | None:
    """What a request says, with a matrix for every query, or None where it brought no features.

    None altogether where the slow way is to look. Of documents only ids are as they were sent.
    """
    text = np.frombuffer(body + b"\0", np.uint8)
    left = np.empty(len(text), np.uint8)
    numbers = np.empty(len(text) // 2 + 1, np.float32)
    size, count = _take_apart(text, left, numbers)
    if size < 0:
        return None
    rest = left[:size].tobytes()
    try:
        found = adapter(_Queries if b'"queries"' in rest else _Query).validate_json(rest)
        refuse_names_twice(rest, found)
    except (ValidationError, DataError):
        return None
    matrices: list[Features | None] = []
    used, expected = 0, [inputs]
    for query in found["queries"] if "queries" in found else (found,):
        documents = query["documents"]
        brought = [each["features"] for each in documents if "features" in each]
        if not brought:
            matrices.append(None)
            continue
        if len(brought) < len(documents) or brought.count(expected) < len(brought):
            return None
        stop = used + inputs * len(documents)
        matrices.append(numbers[used:stop].reshape(-1, inputs))
        used = stop
    return (found, matrices) if used == count else None
