"""LETOR text to numbers: the loops over bytes, compiled by numba.

Positions are unsigned, because numba then leaves out the check for indices counted from the
end. A text given to a kernel ends in a newline, so no loop needs to look for the end of the
buffer. The kernels share a file because numba's cache of one does not notice a change of another
that lies elsewhere.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit

from dualrank.data.letor.rules import (
    BAD_FEATURE,
    BAD_GRADE,
    BAD_VALUE,
    DONE,
    FULL,
    GRADE_TOO_HIGH,
    INDEX_OUT_OF_RANGE,
    INDEX_ZERO,
    NEGATIVE_GRADE,
    NO_ID,
    NO_QID,
    NOT_ASCENDING,
    TOO_LARGE,
    WIDER,
    WIDEST,
)

_U = np.uint64
_ZERO, _ONE, _TEN = _U(0), _U(1), _U(10)
_TAB, _NEWLINE, _RETURN, _BLANK, _HASH, _COLON, _DIGIT_ZERO = 9, 10, 13, 32, 35, 58, _U(48)
_PLUS, _MINUS, _POINT, _BIG_E, _SMALL_E = 43, 45, 46, 69, 101
_NINETEEN_DIGITS = _U(10**18)
_EXACT_INTEGERS = _U(2**53)
_POWERS = np.array([float(f"1e{k}") for k in range(309)])
_SLACK = 2.0**-50

NOT_A_NUMBER, NUMBER, UNDECIDED = 0, 1, 2


@njit(cache=True, forceinline=True)
def _digit(text, at):
    """The digit at this place, or something above 9."""
    return _U(text[at]) - _DIGIT_ZERO


@njit(cache=True, forceinline=True)
def _digits(text, at, m):
    """Append the digits from here on to the integer m; the place after them."""
    digit = _digit(text, at)
    while digit < _TEN:
        m = m * _TEN + digit
        at += _ONE
        digit = _digit(text, at)
    return m, at


@njit(cache=True, forceinline=True)
def _index(text, at):
    """Parse a feature index: the number, which stops growing above WIDEST, and the place after."""
    index = _ZERO
    digit = _digit(text, at)
    while digit < _TEN:
        if index <= _U(WIDEST):
            index = index * _TEN + digit
        at += _ONE
        digit = _digit(text, at)
    return index, at


@njit(cache=True)
def _first_digits(text, at):
    """The first nineteen digits that count, as an integer, and the power of ten it lacks."""
    m = _ZERO
    power = 0
    after_point = False
    digit = _digit(text, at)
    while digit < _TEN or (text[at] == _POINT and not after_point):
        if digit >= _TEN:
            after_point = True
        elif m < _NINETEEN_DIGITS:
            m = m * _TEN + digit
            power -= 1 if after_point else 0
        else:
            power += 0 if after_point else 1
        at += _ONE
        digit = _digit(text, at)
    return m, power


@njit(cache=True, forceinline=True)
def _number(text, at):
    """Parse a decimal number: its float32 value, the place after it, and how that went.

    The value equals `np.float32(float(text))`. With the first nineteen digits as the integer m,
    the number is x = m · 10^q up to 10^-18 of it. Where m < 2^53 and |q| ≤ 22, both factors are
    exact in float64 and one operation rounds correctly. Elsewhere y = m · 10^q in float64 is off
    by less than 2^-50 of it; rounding is monotonic, so if y(1 - 2^-50) and y(1 + 2^-50) become
    the same float32, x becomes it too. Where they do not (about once in 2^26 numbers), the
    number is UNDECIDED and is left to Python.
    """
    negative = text[at] == _MINUS
    if negative or text[at] == _PLUS:
        at += _ONE
    start = at
    m, at = _digits(text, at, _ZERO)
    digits = at - start
    q = np.int64(0)
    if text[at] == _POINT:
        point = at
        m, at = _digits(text, at + _ONE, m)
        q = np.int64(point) + 1 - np.int64(at)
        digits = at - start - _ONE
    if digits > _U(19):
        m, q = _first_digits(text, start)
    if digits == _ZERO:
        return np.float32(0), at, NOT_A_NUMBER
    if text[at] == _SMALL_E or text[at] == _BIG_E:
        at += _ONE
        downwards = text[at] == _MINUS
        if downwards or text[at] == _PLUS:
            at += _ONE
        digit = _digit(text, at)
        if digit >= _TEN:
            return np.float32(0), at, NOT_A_NUMBER
        exponent = 0
        while digit < _TEN:
            if exponent < 1_000_000_000:
                exponent = exponent * 10 + int(digit)
            at += _ONE
            digit = _digit(text, at)
        q += -exponent if downwards else exponent
    y = -np.float64(m) if negative else np.float64(m)
    if q < -308 or q > 308:
        return np.float32(y), at, NUMBER if m == _ZERO else UNDECIDED
    y = y / _POWERS[_U(-q)] if q < 0 else y * _POWERS[_U(q)]
    if m < _EXACT_INTEGERS and -22 <= q <= 22:
        return np.float32(y), at, NUMBER
    low = np.float32(y * (1 - _SLACK))
    high = np.float32(y * (1 + _SLACK))
    return low, at, NUMBER if low == high else UNDECIDED


@njit(cache=True, forceinline=True)
def _after_blanks(text, at):
    """The next place that holds neither blank, tab nor carriage return."""
    while text[at] <= _BLANK and text[at] in (_BLANK, _TAB, _RETURN):
        at += _ONE
    return at


@njit(cache=True, forceinline=True)
def _ends_token(text, at):
    """Whether a number may end before this byte."""
    return text[at] <= _BLANK or text[at] == _HASH


@njit(cache=True, forceinline=True)
def _document_id(text, at):
    """The span of X in a comment that begins with `docid = X`; empty if it does not."""
    at = _after_blanks(text, at + _ONE)
    for letter in (100, 111, 99, 105, 100):
        if text[at] != letter:
            return at, at
        at += _ONE
    at = _after_blanks(text, at)
    if text[at] != 61:
        return at, at
    at = _after_blanks(text, at + _ONE)
    start = at
    while text[at] > _BLANK:
        at += _ONE
    return start, at


@njit(cache=True, forceinline=True)
def _leave_open(undecided, count, row, column, start, stop, line):
    """Note a number that Python must decide; the new count of such numbers."""
    undecided[count, 0], undecided[count, 1] = row, column
    undecided[count, 2], undecided[count, 3] = start, stop
    undecided[count, 4] = line
    return count + _ONE


@njit(cache=True)
def parse_lines(
    text,
    start,
    stop,
    line,
    widest,
    qid_start,
    qid_stop,
    fixed_width,
    max_grade,
    missing_above,
    matrix,
    grades,
    documents,
    queries,
    undecided,
):
    """Parse whole lines `text[start:stop]` until done, full, or something is wrong.

    `text[qid_start:qid_stop]` is the query id of the document before. Into row r of `documents`
    goes the span of the document's id; into rows of `queries` the span of each new query's id,
    the row of its first document and its line; into `undecided` the row, column (-1 for the
    grade), span of the token and line of numbers that Python must decide. An index beyond the
    matrix is an error if the matrix has a `fixed_width`. Of an unfinished line nothing counts, so
    after FULL or WIDER it is parsed again from its start.

    Returns the outcome, where and on which line parsing stopped (for an error: the offending
    token), the number of documents, queries and undecided numbers, the largest feature index so
    far, and the span of the last query's id.
    """
    at, end = _U(start), _U(stop)
    previous, previous_end = _U(qid_start), _U(qid_stop)
    width, capacity = _U(matrix.shape[1]), _U(matrix.shape[0])
    row, query, open_numbers = _ZERO, _ZERO, _ZERO
    room = _U(undecided.shape[0])
    outcome = DONE
    while at < end:
        line_start = at
        at = _after_blanks(text, at)
        if text[at] == _NEWLINE or text[at] == _HASH:
            while text[at] != _NEWLINE:
                at += _ONE
            at += _ONE
            line += 1
            continue
        open_before = open_numbers
        if row == capacity or open_numbers + width + _ONE > room:
            at, outcome = line_start, FULL
            break

        token = at
        grade, at, status = _number(text, at)
        if status == NOT_A_NUMBER or not _ends_token(text, at):
            at, outcome = token, BAD_GRADE
            break
        if status == UNDECIDED:
            open_numbers = _leave_open(undecided, open_numbers, row, -1, token, at, line)
        elif grade < 0:
            at, outcome = token, NEGATIVE_GRADE
            break
        elif grade > max_grade or np.isinf(grade):
            at, outcome = token, GRADE_TOO_HIGH
            break

        at = _after_blanks(text, at)
        qid = at
        for letter in (113, 105, 100, _COLON):
            if text[at] != letter:
                outcome = NO_QID
                break
            at += _ONE
        if outcome != DONE:
            at = qid
            break
        qid = at
        while text[at] > _BLANK:
            at += _ONE
        if at == qid:
            at, outcome = qid, NO_ID
            break
        qid_end = at

        last = _ZERO
        while True:
            at = _after_blanks(text, at)
            if text[at] == _NEWLINE or text[at] == _HASH:
                break
            token = at
            index, at = _index(text, at)
            if at == token or text[at] != _COLON:
                outcome = BAD_FEATURE
                break
            if index <= last:
                outcome = INDEX_ZERO if index == _ZERO else NOT_ASCENDING
                break
            if index > width:
                outcome = INDEX_OUT_OF_RANGE if fixed_width or index > _U(WIDEST) else WIDER
                break
            value, at, status = _number(text, at + _ONE)
            if status == NOT_A_NUMBER or not _ends_token(text, at):
                outcome = BAD_VALUE
                break
            if status == UNDECIDED:
                column = index - _ONE
                open_numbers = _leave_open(undecided, open_numbers, row, column, token, at, line)
            elif abs(value) > missing_above:
                value = np.float32(0)
            elif np.isinf(value):
                outcome = TOO_LARGE
                break
            index -= _ONE
            while last < index:
                matrix[row, last] = 0
                last += _ONE
            matrix[row, last] = value
            last += _ONE
        if outcome == WIDER:
            at, open_numbers = line_start, open_before
            break
        if outcome != DONE:
            at = token
            break
        widest = max(widest, np.int64(last))
        while last < width:
            matrix[row, last] = 0
            last += _ONE

        documents[row, 0] = documents[row, 1] = 0
        if text[at] == _HASH:
            id_start, at = _document_id(text, at)
            documents[row, 0], documents[row, 1] = id_start, at
            while text[at] != _NEWLINE:
                at += _ONE
        at += _ONE

        same = qid_end - qid == previous_end - previous
        offset = _ZERO
        while same and qid + offset < qid_end:
            same = text[qid + offset] == text[previous + offset]
            offset += _ONE
        if not same:
            queries[query, 0], queries[query, 1] = qid, qid_end
            queries[query, 2], queries[query, 3] = row, line
            query += _ONE
        previous, previous_end = qid, qid_end
        grades[row] = abs(grade)
        row += _ONE
        line += 1
    return (
        outcome,
        np.int64(at),
        line,
        np.int64(row),
        np.int64(query),
        np.int64(open_numbers),
        widest,
        np.int64(previous),
        np.int64(previous_end),
    )


@njit(cache=True)
def widest_index(text, start, stop):
    """The largest number before a colon in whole lines, comments and query ids left out."""
    at, end = _U(start), _U(stop)
    widest = _ZERO
    while at < end:
        token = at
        index, at = _index(text, at)
        if at > token:
            if text[at] == _COLON and widest < index <= _U(WIDEST):
                widest = index
            while not _ends_token(text, at):
                at += _ONE
        elif text[at] != _HASH:
            while text[at] > _BLANK:
                at += _ONE
        if text[at] == _HASH:
            while text[at] != _NEWLINE:
                at += _ONE
        at += _ONE
    return np.int64(widest)


@njit(cache=True)
def copy_spans(text, spans, out):
    """Copy `text[spans[i, 0]:spans[i, 1]]` to the start of row i of `out`."""
    for row in range(len(spans)):
        start = spans[row, 0]
        for column in range(spans[row, 1] - start):
            out[row, column] = text[start + column]
