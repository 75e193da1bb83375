"""Words that sentences share: numbers of things, times, and values that may be of any length."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
LONGEST_VALUE = 80
LONGEST_LIST = 200
LONGEST_REASON = 200


def counted(count: int, unit: str) -> str:
    """A number of things, whose name is given for several.

    >>> counted(1, "queries"), counted(1_200, "sessions")
    ('1 query', '1,200 sessions')
    """
    singular = unit.removesuffix("ies") + "y" if unit.endswith("ies") else unit.removesuffix("s")
    return f"{count:,} {singular if count == 1 else unit}"


def shortened(value: object, longest: int = LONGEST_VALUE) -> str:
    """A value from a file as part of a sentence: text in quotes, the end of a long one left out.

    >>> shortened("doc 1"), shortened([1] * 1000, longest=12)
    ("'doc 1'", '[1, 1, 1, 1,…')
    """
    # A long text is cut before it is quoted: a file may hold a word of a gigabyte.
    written = repr(value[: longest + 1] if isinstance(value, str) else value)
    return written if len(written) <= longest else f"{written[:longest]}…"


def absent(path: str | Path, expected: str = "file") -> str:
    """What is said of a name under which nothing is there.

    >>> absent("log.csv"), absent(Path("model"), "model directory")
    ('log.csv: there is no such file', 'model: there is no such model directory')
    >>> absent(Path("https://example.org/log.csv"))
    'https://example.org/log.csv: dualrank opens files of this machine, and no URLs; download it'
    """
    if URL.match(str(path)):
        # A path has lost one of the two slashes.
        whole = re.sub(r"^([^:]+):/+", r"\1://", str(path))
        return f"{whole}: dualrank opens files of this machine, and no URLs; download it"
    return f"{path}: there is no such {expected}"


def document_of(query: str, document: str) -> str:
    """A document as part of a sentence.

    >>> document_of("q1", "d2")
    "document 'd2' of query 'q1'"
    """
    return f"document {shortened(document)} of query {shortened(query)}"


def start_of(text: str, longest: int = LONGEST_VALUE) -> str:
    """A text of a file or a library as part of a sentence: on one line, the end left out.

    >>> start_of("2"), start_of("first\\nsecond", longest=10)
    ('2', 'first seco…')
    """
    # Of a gigabyte the first words are enough to look at.
    words = " ".join(text[: 10 * longest].split())
    return words if len(words) <= longest else f"{words[:longest]}…"


def listed(names: Iterable[str], longest: int = LONGEST_LIST) -> str:
    """Names that a file gives as part of a sentence: only the first where they are many.

    >>> listed(["query", "doc"]), listed(map(str, range(100)), longest=10), listed([])
    ('query, doc', '0, 1, 2, … (100 in all)', 'none')
    """
    every = list(names)
    shown, length = list[str](), 0
    for name in every:
        written = start_of(repr(name[: LONGEST_VALUE + 1])[1:-1])
        length += len(written) + 2
        if shown and length > longest:
            return f"{', '.join(shown)}, … ({len(every)} in all)"
        shown.append(written)
    return ", ".join(shown) or "none"


def reason_of(error: BaseException, longest: int = LONGEST_REASON) -> str:
    """What an error says, on one line and not too long; of one without words its kind.

    >>> reason_of(ValueError("not this\\n  but that")), reason_of(MemoryError())
    ('not this but that', 'MemoryError')
    """
    return start_of(str(error), longest) or type(error).__name__


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(0.42), duration(75), duration(3725)
    ('0.4 s', '1 min 15 s', '1 h 2 min')
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
