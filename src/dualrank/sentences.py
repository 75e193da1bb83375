"""Words that sentences share: numbers of things, and values that may be of any length."""

from __future__ import annotations

LONGEST_VALUE = 80


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
