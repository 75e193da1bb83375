"""Queries whose numbers are read past Python: most of a request is features.

A request for a hundred documents brings thousands of numbers, and to make a Python object of each
takes a quarter of the time of scoring them. Here one pass over the bytes (compiled by numba) writes
the numbers into a matrix, and leaves JSON in which an array of n numbers is `[n]`: what is left is
small, and pydantic checks it by the same types (`python -m benchmarks.service_load` says what that
gains). Whatever is not plain, or wrong, is left to the slow way, which finds the words for it.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from typing import Annotated, Any, NotRequired

import numpy as np
from numba import njit
from numpy.typing import NDArray
from pydantic import FailFast, Field, ValidationError, with_config
from typing_extensions import TypedDict

from dualrank.online.service.bodies import RULES, Id, Query, adapter

Features = NDArray[np.float32]

_U = np.uint64
_NONE, _ONE, _TEN, _ZERO = _U(0), _U(1), _U(10), _U(48)
_NOTHING = np.float32(0)
_QUOTE, _BACKSLASH, _OPEN, _CLOSE, _COMMA = 34, 92, 91, 93, 44
_MINUS, _PLUS, _POINT, _BIG_E, _SMALL_E = 45, 43, 46, 69, 101
_MOST_DIGITS = _U(19)
_EXACT = _U(2**53)
_POWERS = np.array([float(f"1e{k}") for k in range(309)])
_SLACK = 2.0**-50


@njit(cache=True, forceinline=True)
def _after_blanks(text, at):
    while text[at] == 32 or text[at] == 10 or text[at] == 13 or text[at] == 9:
        at += _ONE
    return at


@njit(cache=True, forceinline=True)
def _digits(text, at, m):
    """Append the digits from here on to the integer m; the place after them."""
    digit = _U(text[at]) - _ZERO
    while digit < _TEN:
        m = m * _TEN + digit
        at += _ONE
        digit = _U(text[at]) - _ZERO
    return m, at


@njit(cache=True)
def _fits(text, start, stop):
    """Whether an integer of 64 bits holds these digits, around a point, without leading zeros."""
    while start < stop and (text[start] == _ZERO or text[start] == _POINT):
        start += _ONE
    return stop - start <= _MOST_DIGITS


@njit(cache=True, forceinline=True)
def _number(text, at):
    """A number of JSON: its float32, the place after it, and whether that is certain.

    With m its digits as an integer, it is m · 10^q. Where m < 2^53 and |q| ≤ 22 both factors are
    exact in float64, and one operation rounds correctly; elsewhere the product is off by less than
    2^-50 of it, and is certain where both ends of that interval become the same float32.
    """
    negative = text[at] == _MINUS
    if negative:
        at += _ONE
    start = at
    m, at = _digits(text, at, _NONE)
    whole = at - start
    if whole == _NONE or (whole > _ONE and text[start] == _ZERO):
        return _NOTHING, at, False
    q = np.int64(0)
    if text[at] == _POINT:
        begun = at + _ONE
        m, at = _digits(text, begun, m)
        q = np.int64(begun) - np.int64(at)
        if q == 0:
            return _NOTHING, at, False
    if at - start > _MOST_DIGITS and not _fits(text, start, at):
        return _NOTHING, at, False
    if text[at] == _SMALL_E or text[at] == _BIG_E:
        at += _ONE
        downwards = text[at] == _MINUS
        if downwards or text[at] == _PLUS:
            at += _ONE
        begun = at
        exponent, at = _digits(text, at, _NONE)
        if at == begun or at - begun > _U(4):
            return _NOTHING, at, False
        q += -np.int64(exponent) if downwards else np.int64(exponent)
    if q < -308 or q > 308:
        return _NOTHING, at, False
    y = -np.float64(m) if negative else np.float64(m)
    y = y / _POWERS[_U(-q)] if q < 0 else y * _POWERS[_U(q)]
    low = np.float32(y)
    if m >= _EXACT or q < -22 or q > 22:
        low = np.float32(y * (1 - _SLACK))
        if low != np.float32(y * (1 + _SLACK)):
            return _NOTHING, at, False
    return low, at, not np.isinf(low)


@njit(cache=True)
def _take_apart(text, left, numbers):
    """Numbers of arrays into `numbers`, all else into `left`; how much of each, or −1.

    Positions are unsigned, because numba then leaves out the check for indices counted from the
    end. The text ends in a byte that is no part of it, at which every loop stops.
    """
    at, size, count, end = _NONE, _NONE, _NONE, _U(len(text) - 1)
    while at < end:
        sign = text[at]
        left[size] = sign
        size += _ONE
        at += _ONE
        if sign == _QUOTE:
            while at < end and text[at] != _QUOTE:
                if text[at] == _BACKSLASH:
                    return -1, 0
                left[size] = text[at]
                size += _ONE
                at += _ONE
            if at == end:
                return -1, 0
            left[size] = _QUOTE
            size += _ONE
            at += _ONE
            continue
        if sign != _OPEN:
            continue
        begun = _after_blanks(text, at)
        if text[begun] != _MINUS and _U(text[begun]) - _ZERO >= _TEN:
            continue
        before = count
        at = begun
        while True:
            value, at, certain = _number(text, at)
            if not certain:
                return -1, 0
            numbers[count] = value
            count += _ONE
            at = _after_blanks(text, at)
            if text[at] == _CLOSE:
                break
            if text[at] != _COMMA:
                return -1, 0
            at = _after_blanks(text, at + _ONE)
        # So many numbers took more bytes than their number does.
        n, power = count - before, _ONE
        while power * _TEN <= n:
            power *= _TEN
        while power > _NONE:
            left[size] = _ZERO + n // power % _TEN
            size += _ONE
            power //= _TEN
    return np.int64(size), np.int64(count)


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
    except ValidationError:
        return None
    queries = found.get("queries", (found,))
    # Every quote begins or ends a string: more of them than were understood are names that stood
    # twice (`bodies.refuse_names_twice` says it).
    strings = sum(map(_strings, queries)) + ("queries" in found)
    if rest.count(b'"') != 2 * strings:
        return None
    matrices: list[Features | None] = []
    used, expected = 0, [inputs]
    for query in queries:
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


def _strings(query: Any) -> int:
    """How many strings a query has, names included; of a document its names and its id."""
    documents = query["documents"]
    own = len(query) + ("query_id" in query) + ("client" in query)
    return own + sum(map(len, documents)) + len(documents)
