"""Text whose lines are words: TREC runs and judgments, plain, gzip or zstd."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from dualrank.data.letor.source import SourceFile
from dualrank.errors import DataError

LONGEST_LINE = 1 << 20
MOST_EMPTY_LINES = 100_000
"""So many in a row are no text; a small packed file can hold them for hours."""
_BLANK = re.compile("[\\x00-\\x20\\x7f]")


def text_lines(path: str | Path, longest: int = LONGEST_LINE) -> Iterator[tuple[int, bytes]]:
    """The lines of a text with their numbers from 1; one without an end is not read to it."""
    with SourceFile(Path(path)) as source:
        stream = io.BufferedReader(source, 1 << 20)
        number = empty = 0
        while line := stream.readline(longest + 1):
            number += 1
            empty = empty + 1 if line == b"\n" else 0
            if empty > MOST_EMPTY_LINES:
                raise DataError(f"{path}:{number}: {empty} empty lines, one after the other")
            if len(line) > longest:
                raise DataError(
                    f"{path}:{number}: the line is longer than {longest} bytes; "
                    "expected text with line ends"
                )
            yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def read_words(path: str | Path, expected: str) -> Iterator[tuple[int, list[str]]]:
    """The words of every line that has any, with its number; each line has those of `expected`.

    Words end at blanks of ASCII and nowhere else: other signs that look blank may stand in an id.
    """
    count = len(expected.split())
    for number, line in text_lines(path):
        try:
            words = [word.decode() for word in line.split()]
        except UnicodeDecodeError:
            raise DataError(f"{path}:{number}: the line is not UTF-8 text") from None
        if words and len(words) != count:
            raise DataError(
                f"{path}:{number}: found {len(words)} words; a line has {count}, '{expected}'"
            )
        if words:
            yield number, words


def require_words(what: str, ids: Iterable[str]) -> None:
    """Refuse ids that would be no word, or several, in a text of words."""
    for name in ids:
        if not name or _BLANK.search(name):
            raise DataError(
                f"the {what} id {name!r} is empty or has a blank, which a TREC file cannot hold; "
                "write .parquet or .csv"
            )
