"""What can become of a piece of LETOR text, and the sentence for each thing that is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dualrank.errors import DataError

# These numbers stand in kernels that numba has compiled and cached: a new meaning needs a new
# number.
DONE, FULL, WIDER = 0, 1, 2
BAD_GRADE, NEGATIVE_GRADE, GRADE_TOO_HIGH = 10, 11, 12
NO_QID, BAD_QID = 20, 21
BAD_FEATURE, INDEX_ZERO, NOT_ASCENDING, INDEX_OUT_OF_RANGE = 30, 31, 32, 33
BAD_VALUE, TOO_LARGE = 40, 41

WIDEST = 1_000_000
"""The largest feature index that is read when the number of features is not declared.

Features become a dense matrix, so an index far beyond this is a damaged line.
"""

LINE = "a line is 'grade qid:ID index:value ...'"


@dataclass(frozen=True)
class LetorText:
    """A LETOR file as its reader was told to see it."""

    path: Path
    features: int | None
    max_grade: float | None
    missing_above: float | None

    def error(self, line: int, sentence: str) -> DataError:
        """An error on this line."""
        return DataError(f"{self.path}:{line}: {sentence}")

    def complaint(self, outcome: int, line: int, text: bytearray, at: int) -> DataError:
        """The error for an outcome of the parser, which stopped at `text[at]`."""
        found = _token(text, at)
        return self.error(line, self._sentence(outcome, found, text, at))

    def _sentence(self, outcome: int, found: str, text: bytearray, at: int) -> str:
        if outcome == BAD_GRADE:
            return f"found {found!r}; expected a grade, a number of 0 or more, since {LINE}"
        if outcome == NEGATIVE_GRADE:
            return f"found the grade {found}; expected 0 or more"
        if outcome == GRADE_TOO_HIGH:
            if self.max_grade is None:
                return f"found the grade {found}; expected a number that float32 can hold"
            return f"found the grade {found}; expected at most {self.max_grade:g}"
        if outcome == NO_QID:
            where = f"found {found!r}" if found else "the line ends after the grade"
            return f"{where}; expected qid:ID, since {LINE}"
        if outcome == BAD_QID:
            return f"found {'qid:' + found!r}; expected an id after qid:"
        index, colon, value = found.partition(":")
        if outcome == INDEX_ZERO:
            return f"found the feature index 0 in {found!r}; expected indices from 1"
        if outcome == NOT_ASCENDING:
            before = _index_before(text, at)
            if int(index) == before:
                return f"found feature {index} twice; expected each index once"
            return f"found feature {index} after feature {before}; expected ascending indices"
        if outcome == INDEX_OUT_OF_RANGE:
            limit = WIDEST if self.features is None else self.features
            return f"found feature {index}; expected indices from 1 to {limit}"
        if outcome == BAD_FEATURE or not colon:
            return f"found {found!r}; expected index:value with an index from 1"
        if outcome == TOO_LARGE or value.lstrip("+-").lower() in {"nan", "inf", "infinity"}:
            return (
                f"found {value} as the value of feature {index}; "
                "expected a finite number that float32 can hold"
            )
        return f"found {value!r} as the value of feature {index}; expected a number"


def _token(text: bytearray, at: int) -> str:
    """What stands at this place up to the next blank, shortened if it is long."""
    line = text[at : at + 200].split(b"\n", 1)[0].decode("utf-8", "replace")
    words = line.split(maxsplit=1)
    word = words[0] if words and not line[0].isspace() else ""
    return word if len(word) <= 40 else word[:40] + "..."


def _index_before(text: bytearray, at: int) -> int:
    """The index of the feature that stands before this place on its line."""
    start = text.rfind(b"\n", 0, at) + 1
    return int(text[start:at].split()[-1].split(b":")[0])
