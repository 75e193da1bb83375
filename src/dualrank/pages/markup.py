"""Markup made harmless before it is parsed, in one pass over the bytes.

HTML's rules for broken markup let a page of 200 kB keep a parser busy for minutes: formatting
elements that are never closed open again in every block, every start tag looks through all open
elements, every attribute through those before it. `simplify` bounds all three, and drops what is
never shown, which most of the time makes the parser's work smaller.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

MAX_DEPTH = 512
"""Elements nest no deeper; browsers stop here too."""

MAX_ATTRIBUTES = 256
"""An element with more loses them all."""

MAX_MISPLACED = 1_000
"""After so many end tags that do not close the innermost element, tags are only taken out."""

_ORDINARY, _GLUED, _SPACED, _RAW, _HIDDEN, _UNPAIRED, _ONCE = range(7)
_KINDS = {
    # Formatting: taken out without a trace, so that it does not cut words either.
    _GLUED: "b big code em font i nobr s small strike strong tt u wbr",
    # A link is formatting too, but neighbours in a menu are different words.
    # Options outside a list of choices keep parsers busy.
    _SPACED: "a option optgroup",
    # Text up to the end tag is no markup. If there is none, all the rest of the page.
    _RAW: "script style",
    # Never shown, or not text. If there is no end tag, only the start tag goes.
    _HIDDEN: "noscript template svg math iframe object select",
    # No end tag, or none that is needed.
    _UNPAIRED: "area base br col embed hr img input link meta param source track p li dt dd "
    "tr td th thead tbody tfoot colgroup rp rt",
    # Every further one would add its attributes to the first.
    _ONCE: "html head body frameset",
}


def _key(name: str) -> int:
    key = 0
    for letter in name.encode():
        key = (key * 131 + letter) & 0x_FFFF_FFFF_FFFF
    return key


_TABLE = sorted((_key(name), kind) for kind, names in _KINDS.items() for name in names.split())
_NAMES = np.array([key for key, _ in _TABLE], np.int64)
_KIND_OF_NAME = np.array([kind for _, kind in _TABLE], np.int64)


def simplify(page: bytes) -> bytes:
    """An equivalent page (UTF-8) for reading text, that every parser is quick with.

    >>> simplify(b"<p>te<b>x</b>t<!-- no --> <a href=x>link</a><script>1 < 2</script>")
    b'<p>text   link  '
    """
    out = np.empty(len(page), np.uint8)
    length = _simplify(np.frombuffer(page, np.uint8), out, _NAMES, _KIND_OF_NAME)
    return out[:length].tobytes()


@numba.njit(cache=True)
def _simplify(
    page: NDArray[np.uint8],
    out: NDArray[np.uint8],
    names: NDArray[np.int64],
    kinds: NDArray[np.int64],
) -> int:
    """Copy `page` to `out`, tag by tag; what is taken out leaves at most as much behind."""
    stack = np.zeros(MAX_DEPTH, np.int64)
    never_closed = np.zeros(len(names), np.bool_)
    seen = np.zeros(len(names), np.bool_)
    depth = misplaced = written = at = 0
    while at < len(page):
        if page[at] != 60:  # <
            out[written] = page[at]
            written += 1
            at += 1
            continue
        if at + 3 < len(page) and page[at + 1] == 33 and page[at + 2] == page[at + 3] == 45:
            at = _after_comment(page, at + 4)
            out[written] = 32
            written += 1
            continue
        closing = at + 1 < len(page) and page[at + 1] == 47  # /
        start = at + 1 + closing
        if start >= len(page) or not _is_letter(page[start]):
            out[written] = page[at]
            written += 1
            at += 1
            continue
        key, name_end = _read_name(page, start)
        tag_end, attributes, alone = _read_attributes(page, name_end)
        place = np.searchsorted(names, key)
        known = place < len(names) and names[place] == key
        kind = kinds[place] if known else _ORDINARY
        kept = True
        if kind in (_GLUED, _SPACED):
            kept = False
        elif kind == _ONCE:
            kept = closing or not seen[place]
            seen[place] |= not closing
        elif closing:
            if kind != _UNPAIRED:
                above = depth - 1
                while above >= 0 and stack[above] != key:
                    above -= 1
                misplaced += above != depth - 1
                kept = above >= 0
                if kept:
                    depth = above
        elif kind in (_RAW, _HIDDEN) and not never_closed[place]:
            found = _find_end_tag(page, tag_end, page[start:name_end])
            if found < len(page) or kind == _RAW:
                at = found
                while at < len(page) and page[at] != 62:  # >
                    at += 1
                at += 1
                out[written] = 32
                written += 1
                continue
            never_closed[place] = True
            kept = False
        elif kind == _HIDDEN or (alone and kind != _UNPAIRED):
            kept = False
        elif kind != _UNPAIRED:
            kept = depth < MAX_DEPTH
            if kept:
                stack[depth] = key
                depth += 1
        if kept and misplaced <= MAX_MISPLACED and tag_end <= len(page):
            stop = name_end if attributes > MAX_ATTRIBUTES else tag_end - 1
            for i in range(at, stop):
                out[written] = page[i]
                written += 1
            out[written] = 62
            written += 1
        elif kind != _GLUED or (written > 0 and _may_open_markup(out[written - 1])):
            out[written] = 32
            written += 1
        at = tag_end
    return written


@numba.njit(cache=True)
def _may_open_markup(byte: int) -> bool:
    """Whether text that ends so, joined to what follows, could begin a tag or a comment."""
    return byte in (60, 47, 33, 63, 45)  # < / ! ? -


@numba.njit(cache=True)
def _is_letter(byte: int) -> bool:
    return 65 <= byte <= 90 or 97 <= byte <= 122


@numba.njit(cache=True)
def _is_space(byte: int) -> bool:
    return byte in (32, 9, 10, 12, 13)


@numba.njit(cache=True)
def _read_name(page: NDArray[np.uint8], at: int) -> tuple[int, int]:
    """The key of the name that begins here, and where it ends."""
    key = 0
    while at < len(page) and not (_is_space(page[at]) or page[at] in (47, 62)):
        letter = page[at] + 32 if 65 <= page[at] <= 90 else page[at]
        key = (key * 131 + letter) & 0x_FFFF_FFFF_FFFF
        at += 1
    return key, at


@numba.njit(cache=True)
def _read_attributes(page: NDArray[np.uint8], at: int) -> tuple[int, int, bool]:
    """Where the tag ends, how many attributes it has, and whether it closes itself.

    A tag that the page's end cuts off ends beyond the page.
    """
    attributes, inside, after_equals = 0, False, False
    while at < len(page):
        byte = page[at]
        if byte == 62:
            return at + 1, attributes, page[at - 1] == 47
        if _is_space(byte) or byte == 47:
            inside = False
        elif after_equals and byte in (34, 39):
            at += 1
            while at < len(page) and page[at] != byte:
                at += 1
            inside = after_equals = False
        else:
            attributes += not inside and not after_equals and byte != 61
            inside, after_equals = True, byte == 61
        at += 1
    return len(page) + 1, attributes, False


@numba.njit(cache=True)
def _after_comment(page: NDArray[np.uint8], at: int) -> int:
    """Where a comment ends: at `-->`, or at the end of the page."""
    while at + 2 < len(page):
        if page[at] == 45 and page[at + 1] == 45 and page[at + 2] == 62:
            return at + 3
        at += 1
    return len(page)


@numba.njit(cache=True)
def _find_end_tag(page: NDArray[np.uint8], at: int, name: NDArray[np.uint8]) -> int:
    """Where `</name` stands next, or the length of the page."""
    while at + 2 + len(name) <= len(page):
        if page[at] == 60 and page[at + 1] == 47:
            same = True
            for i in range(len(name)):
                same &= (page[at + 2 + i] | 32) == (name[i] | 32)
            if same:
                return at
        at += 1
    return len(page)
