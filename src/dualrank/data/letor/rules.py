"""What LETOR text may hold, and the sentence for each thing that is wrong."""

from __future__ import annotations

from dataclasses import dataclass

# These numbers stand in kernels that numba has compiled and cached: a new meaning needs a new
# number.
DONE, FULL, WIDER = 0, 1, 2
BAD_GRADE, NEGATIVE_GRADE, GRADE_TOO_HIGH = 10, 11, 12
NO_QID, NO_ID = 20, 21
BAD_FEATURE, INDEX_ZERO, NOT_ASCENDING, INDEX_OUT_OF_RANGE = 30, 31, 32, 33
BAD_VALUE, TOO_LARGE = 40, 41

WIDEST = 1_000_000
"""The largest feature index that is read when the number of features is not declared.

Features become a dense matrix, so an index far beyond this is a damaged line.
"""

LONGEST_ID = 1000
"""The most bytes that an id may have.

Ids become an array in which each takes the room of the longest, so a damaged one would fill it.
"""

LINE = "a line is 'grade qid:ID index:value ...'"


@dataclass(frozen=True)
class Declared:
    """What the reader of a text was told of it; None where nothing was said."""

    features: int | None = None
    max_grade: float | None = None
    missing_above: float | None = None


def sentence(outcome: int, declared: Declared, text: bytearray, at: int) -> str:
    """What is wrong, for an outcome of the parser, which stopped at `text[at]`."""
    found = _token(text, at)
    if outcome == BAD_GRADE:
        return f"found {found!r}; expected a grade, a number of 0 or more, since {LINE}"
    if outcome == NEGATIVE_GRADE:
        return f"found the grade {found}; expected 0 or more"
    if outcome == GRADE_TOO_HIGH:
        if declared.max_grade is None:
            return f"found the grade {found}; expected a number that float32 can hold"
        return f"found the grade {found}; expected at most {declared.max_grade:g}"
    if outcome == NO_QID:
        where = f"found {found!r}" if found else "the line ends after the grade"
        return f"{where}; expected qid:ID, since {LINE}"
    if outcome == NO_ID:
        return "found 'qid:'; expected an id after qid:"
    if outcome == NOT_ASCENDING:
        index, before = _index(text[at:]), _index_before(text, at)
        if index == before:
            return f"found feature {index} twice; expected each index once"
        return f"found feature {index} after feature {before}; expected ascending indices"
    name, colon, value = found.partition(":")
    if outcome == INDEX_ZERO:
        return f"found the feature index 0 in {found!r}; expected indices from 1"
    if outcome == INDEX_OUT_OF_RANGE:
        limit = WIDEST if declared.features is None else declared.features
        return f"found feature {name}; expected indices from 1 to {limit}"
    if outcome == BAD_FEATURE or not colon:
        return f"found {found!r}; expected index:value with an index from 1"
    if outcome == TOO_LARGE or value.lstrip("+-").lower() in {"nan", "inf", "infinity"}:
        return (
            f"found {value} as the value of feature {name}; "
            "expected a finite number that float32 can hold"
        )
    return f"found {value!r} as the value of feature {name}; expected a number"


def _token(text: bytearray, at: int) -> str:
    """What stands at this place up to the next blank, shortened if it is long."""
    line = text[at : at + 200].split(b"\n", 1)[0].decode("utf-8", "replace")
    words = line.split(maxsplit=1)
    word = words[0] if words and not line[0].isspace() else ""
    return word if len(word) <= 40 else word[:40] + "..."


def _index(token: bytearray) -> int:
    """The index of `index:value`, however many zeros stand before it."""
    return int(token.split(b":", 1)[0].lstrip(b"0"))


def _index_before(text: bytearray, at: int) -> int:
    """The index of the feature that stands before this place on its line."""
    start = text.rfind(b"\n", 0, at) + 1
    return _index(text[start:at].split()[-1])
