"""LETOR text, block by block, into the arrays of a data set on disk.

Nothing here grows with the file but a few bytes per document: the parsed rows go straight to
disk, from where they are mapped into memory.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from dualrank.data.letor.arrays import IdColumn, write_header
from dualrank.data.letor.kernels import copy_spans, parse_lines, widest_index
from dualrank.data.letor.lines import BLOCK_BYTES, line_blocks
from dualrank.data.letor.rules import (
    DONE,
    FULL,
    GRADE_TOO_HIGH,
    LINE,
    LONGEST_ID,
    NEGATIVE_GRADE,
    TOO_LARGE,
    Declared,
    sentence,
)
from dualrank.data.letor.source import SourceFile
from dualrank.errors import DataError


def parse_letor(
    source: SourceFile,
    declared: Declared,
    directory: Path,
    *,
    progress: Callable[[int, int], None] | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> None:
    """Parse a whole file and write `features.npy`, `grades.npy` and so on into a directory.

    Where the number of features is not declared, a first reading of the text finds it.
    `progress` is called after each block with the bytes read so far and the bytes in all.
    """
    size, before, width = source.state.size, 0, declared.features or 0
    if declared.features is None:
        before = size
        with SourceFile(source.path) as first:
            for _, block in line_blocks(first, block_bytes):
                width = max(width, widest_index(np.frombuffer(block, np.uint8)))
                if progress is not None:
                    progress(first.bytes_read, before + size)
    with (directory / "features.npy").open("wb") as matrix:
        write_header(matrix, (0, width), np.dtype("<f4"))
        parser = _Parser(source.path, declared, matrix, width)
        for line, block in line_blocks(source, block_bytes):
            parser.parse(line, block)
            if progress is not None:
                progress(before + source.bytes_read, before + size)
        write_header(matrix, (parser.documents, width), np.dtype("<f4"))
    parser.save(directory)


class _Parser:
    """What is known after some blocks of the text."""

    def __init__(self, path: Path, declared: Declared, matrix: BinaryIO, width: int) -> None:
        self._path = path
        self._declared = declared
        self._matrix = matrix
        self._text = self._last_query = b""
        self.documents = 0
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
        # The arrays that the kernel fills, with rows for about one block of memory.
        count = min(max(1, BLOCK_BYTES // (4 * max(1, width))), 1 << 14)
        self._rows = np.empty((count, width), np.float32)
        self._row_grades = np.empty(count, np.float32)
        self._doc_spans = np.empty((count, 2), np.int64)
        self._queries = np.empty((count, 4), np.int64)
        self._undecided = np.empty((width + 512, 5), np.int64)

    def parse(self, line: int, block: bytes) -> None:
        """Parse these lines, of which the first has this number."""
        self._text = self._last_query + block
        text = np.frombuffer(self._text, np.uint8)
        qid_start, qid_stop = 0, len(self._last_query)
        outcome, start = FULL, qid_stop
        while outcome != DONE:
            outcome, at, stop_line, rows, queries, undecided, qid_start, qid_stop = parse_lines(
                text,
                start,
                line,
                qid_start,
                qid_stop,
                self._max_grade,
                self._missing_above,
                self._rows,
                self._row_grades,
                self._doc_spans,
                self._queries,
                self._undecided,
            )
            self._decide(self._undecided[:undecided])
            if outcome not in (DONE, FULL):
                raise self._error(stop_line, self._sentence(outcome, at))
            self._take_ids(self._query_ids, text, self._queries[:queries, :2], start, line)
            self._take_ids(self._doc_ids, text, self._doc_spans[:rows], start, line)
            self._query_rows.append(self._queries[:queries, 2] + self.documents)
            self._query_lines.append(self._queries[:queries, 3].copy())
            self._grades.append(self._row_grades[:rows].copy())
            self._matrix.write(self._rows[:rows].tobytes())
            self.documents += rows
            start, line = at, stop_line
        self._last_query = self._text[qid_start:qid_stop]

    def _decide(self, undecided: NDArray[np.int64]) -> None:
        """Fill in the few numbers whose rounding the kernel could not decide."""
        for row, column, start, stop, line in undecided.tolist():
            with np.errstate(over="ignore"):
                value = np.float32(float(self._text[start:stop].rpartition(b":")[2]))
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
            line += self._text.count(b"\n", start, int(spans[bad, 0]))
            raise self._error(line, wrong)

    def save(self, directory: Path) -> None:
        """Check the text as a whole and write all arrays but the matrix."""
        if self.documents == 0:
            raise DataError(f"{self._path}: found no documents; {LINE}")
        if self._rows.shape[1] == 0:
            raise DataError(f"{self._path}: found no features on any line; {LINE}")
        repeated = self._query_ids.first_repetition()
        if repeated is not None:
            number, name = repeated
            raise self._error(
                int(np.concatenate(self._query_lines)[number]),
                f"found query {name!r} again after another query; "
                "expected the lines of a query together",
            )
        offsets = np.concatenate([*self._query_rows, [self.documents]])
        np.save(directory / "offsets.npy", offsets.astype(np.int64))
        np.save(directory / "grades.npy", np.concatenate(self._grades))
        self._query_ids.save(directory / "query_ids.npy")
        if not self._doc_ids.all_empty:
            self._doc_ids.save(directory / "doc_ids.npy")

    def _sentence(self, outcome: int, at: int) -> str:
        return sentence(outcome, self._declared, self._text, at)

    def _error(self, line: int, wrong: str) -> DataError:
        return DataError(f"{self._path}:{line}: {wrong}")
