"""LETOR text, block by block, into the arrays of a data set on disk.

Nothing here grows with the file but a few bytes per document: the parsed rows go straight to
disk, from where they are mapped into memory.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualrank.data.letor.arrays import IdColumn, MatrixFile
from dualrank.data.letor.kernels import copy_spans, parse_lines, widest_index
from dualrank.data.letor.lines import BLOCK_BYTES, LineBlocks
from dualrank.data.letor.rules import (
    DONE,
    FULL,
    GRADE_TOO_HIGH,
    LINE,
    LONGEST_ID,
    NEGATIVE_GRADE,
    TOO_LARGE,
    WIDER,
    Declared,
    sentence,
)
from dualrank.data.letor.source import SourceFile
from dualrank.errors import DataError

MATRIX_UNASKED = 1 << 30
MOST_SWOLLEN = 100
"""How many times its text a matrix may be, once it has more than `MATRIX_UNASKED` bytes."""


def parse_letor(
    source: SourceFile,
    declared: Declared,
    directory: Path,
    *,
    progress: Callable[[int, int], None] | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> None:
    """Parse a whole file and write `features.npy`, `grades.npy` and so on into a directory.

    `progress` is called after each block with the bytes read so far and the bytes in all.
    """
    blocks = LineBlocks(source, block_bytes)
    with MatrixFile(directory / "features.npy", declared.features or 0) as matrix:
        parser = _Parser(declared, blocks, matrix)
        for start, stop in blocks:
            parser.parse(start, stop)
            if progress is not None:
                progress(source.bytes_read, source.state.size)
        parser.save(directory)


class _Parser:
    """What is known after some blocks of the text."""

    def __init__(self, declared: Declared, blocks: LineBlocks, matrix: MatrixFile) -> None:
        self._declared = declared
        self._blocks = blocks
        self._block_bytes = len(blocks.buffer)
        self._matrix = matrix
        self._widest = 0
        self._text_bytes = 0
        self._max_grade = self._missing_above = float("inf")
        if declared.max_grade is not None:
            with np.errstate(over="ignore"):  # The grade 0.1 is not above 0.1, also in float32.
                self._max_grade = float(np.float32(declared.max_grade))
        if declared.missing_above is not None:
            self._missing_above = declared.missing_above
        self._grades: list[NDArray[np.float32]] = []
        self._doc_ids = IdColumn()
        self._query_ids = IdColumn()
        self._query_rows: list[NDArray[np.int64]] = []
        self._query_lines: list[NDArray[np.int64]] = []
        self._make_room()

    def _make_room(self) -> None:
        """The arrays that the kernel fills, with rows for about one block of memory."""
        width = self._matrix.width
        count = min(max(1, self._block_bytes // (4 * max(1, width))), 1 << 14)
        self._rows = np.empty((count, width), np.float32)
        self._row_grades = np.empty(count, np.float32)
        self._documents = np.empty((count, 2), np.int64)
        self._queries = np.empty((count, 4), np.int64)
        self._undecided = np.empty((width + 512, 5), np.int64)

    def parse(self, start: int, stop: int) -> None:
        """Parse the lines in this part of the buffer."""
        text = np.frombuffer(self._blocks.buffer, np.uint8)
        qid_start, qid_stop = 0, len(self._blocks.keep)
        outcome = FULL
        while outcome != DONE:
            line = self._blocks.line
            outcome, at, stop_line, rows, queries, undecided, self._widest, qid_start, qid_stop = (
                parse_lines(
                    text,
                    start,
                    stop,
                    line,
                    self._widest,
                    qid_start,
                    qid_stop,
                    self._declared.features is not None,
                    self._max_grade,
                    self._missing_above,
                    self._rows,
                    self._row_grades,
                    self._documents,
                    self._queries,
                    self._undecided,
                )
            )
            self._decide(self._undecided[:undecided])
            if outcome not in (DONE, FULL, WIDER):
                raise self._error(stop_line, self._sentence(outcome, at))
            self._take_ids(self._query_ids, text, self._queries[:queries, :2], start, line)
            self._take_ids(self._doc_ids, text, self._documents[:rows], start, line)
            self._query_rows.append(self._queries[:queries, 2] + self._matrix.rows)
            self._query_lines.append(self._queries[:queries, 3].copy())
            self._grades.append(self._row_grades[:rows].copy())
            self._matrix.append(self._rows[:rows])
            self._text_bytes += at - start
            self._refuse_swollen(self._matrix.width)
            if outcome == WIDER:
                self._widen(widest_index(text, at, stop))
            start, self._blocks.line = at, stop_line
        self._blocks.keep = bytes(self._blocks.buffer[qid_start:qid_stop])

    def _decide(self, undecided: NDArray[np.int64]) -> None:
        """Fill in the few numbers whose rounding the kernel could not decide."""
        for row, column, start, stop, line in undecided.tolist():
            token = bytes(self._blocks.buffer[start:stop])
            with np.errstate(over="ignore"):
                value = np.float32(float(token.rpartition(b":")[2]))
            outcome = DONE
            if column >= 0:
                missing = abs(value) > self._missing_above
                self._rows[row, column] = 0 if missing else value
                if np.isinf(value) and not missing:
                    outcome = TOO_LARGE
            else:
                self._row_grades[row] = abs(value)
                if value < 0:
                    outcome = NEGATIVE_GRADE
                elif value > self._max_grade or np.isinf(value):
                    outcome = GRADE_TOO_HIGH
            if outcome != DONE:
                raise self._error(line, self._sentence(outcome, start))

    def _take_ids(
        self,
        column: IdColumn,
        text: NDArray[np.uint8],
        spans: NDArray[np.int64],
        start: int,
        line: int,
    ) -> None:
        """Add the ids at these spans of lines that begin at `start`, the first being `line`."""
        lengths = spans[:, 1] - spans[:, 0]
        longest = int(lengths.max(initial=1))
        if longest > LONGEST_ID:
            bad: int | None = int(lengths.argmax())
            wrong = f"found an id of {longest} bytes; expected at most {LONGEST_ID}"
        else:
            letters = np.zeros((len(spans), longest), np.uint8)
            copy_spans(text, spans, letters)
            bad = column.append(letters)
            wrong = "found an id that is not UTF-8; expected UTF-8 text"
        if bad is not None:
            line += self._blocks.buffer.count(b"\n", start, int(spans[bad, 0]))
            raise self._error(line, wrong)

    def _widen(self, needed: int) -> None:
        """Make room for this feature index.

        Once rows are on disk they must be moved, so then some room is added for later lines;
        `save` takes it away again.
        """
        self._refuse_swollen(needed)
        spare = self._matrix.width // 4 if self._matrix.rows else 0
        self._matrix.relayout(max(needed, self._matrix.width + spare))
        self._make_room()

    def _refuse_swollen(self, width: int) -> None:
        """Refuse a matrix far larger than its text: a damaged index makes every row that wide."""
        size = 0 if self._declared.features else 4 * self._matrix.rows * width
        if size > max(MATRIX_UNASKED, MOST_SWOLLEN * self._text_bytes):
            raise DataError(
                f"{self._blocks.source.path}: with feature {width} the first {self._matrix.rows} "
                f"documents would take {size >> 20} MB, more than {MOST_SWOLLEN} times their text; "
                "expected indices without large gaps, or features=… where this is meant"
            )

    def save(self, directory: Path) -> None:
        """Check the text as a whole and write all arrays."""
        path = self._blocks.source.path
        if self._matrix.rows == 0:
            raise DataError(f"{path}: found no documents; {LINE}")
        if self._matrix.width == 0:
            raise DataError(f"{path}: found no features on any line; {LINE}")
        repeated = self._query_ids.first_repetition()
        if repeated is not None:
            number, name = repeated
            raise self._error(
                int(np.concatenate(self._query_lines)[number]),
                f"found query {name!r} again after another query; "
                "expected the lines of a query together",
            )
        if self._declared.features is None and self._widest < self._matrix.width:
            self._matrix.relayout(self._widest)
        offsets = np.concatenate([*self._query_rows, [self._matrix.rows]])
        np.save(directory / "offsets.npy", offsets.astype(np.int64))
        np.save(directory / "grades.npy", np.concatenate(self._grades))
        self._query_ids.save(directory / "query_ids.npy")
        if not self._doc_ids.all_empty:
            self._doc_ids.save(directory / "doc_ids.npy")

    def _sentence(self, outcome: int, at: int) -> str:
        return sentence(outcome, self._declared, self._blocks.buffer, at)

    def _error(self, line: int, wrong: str) -> DataError:
        return DataError(f"{self._blocks.source.path}:{line}: {wrong}")
