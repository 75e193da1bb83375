"""Bytes of a web page to text, whatever they say about themselves."""

from __future__ import annotations

import codecs
import re

# Pages declare these names and mean the larger set, as every browser reads them.
_MEANT = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
_NOT_FOR_PAGES = {"utf-7", "idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined"}
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARATION = re.compile(
    rb"""<meta[^>]{1,400}?charset\s*=\s*["']?\s*([\w.:-]+)|<\?xml[^>]{1,200}?encoding\s*=\s*["']([\w.:-]+)""",
    re.IGNORECASE,
)
_DECLARED_WITHIN = 4096
_UTF8_CHARACTER = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_NOT_ASCII = re.compile(rb"[\x80-\xff]+")

# The most frequent letters of languages whose encodings can be told from each other by them.
_FREQUENT = {
    "gb18030": "的一是不了人我在有他这中大来上个国和也子时道说们为你地出会自那得着下要可以学生",
    "big5hkscs": "的一是不了人我在有他這中大來上個國和也子時道說們為你地出會自那得著下要可以學生",
    "cp932": "のにはをたがでてとしれさいるなかもすらこりっくまうんスト",
    "euc_jp": "のにはをたがでてとしれさいるなかもすらこりっくまうんスト",
    "cp949": "이다는에을의가고하지은로한를사도기어있자리대서인시일나해",
    "cp1251": "оеаинтсрвлкмдпуяыьгзбчйх",
    "koi8-r": "оеаинтсрвлкмдпуяыьгзбчйх",
}
_ENOUGH = 0.15
_GUESSED_FROM = 20_000


def decode(data: bytes, declared: str | None = None) -> str:
    """The text of a page.

    In this order, evidence in the bytes before what the page says of itself: a byte order mark;
    the zero bytes of UTF-16; UTF-8, if nine of ten bytes beyond ASCII are well-formed UTF-8 (text
    in another encoding never is); the encoding that the server (`declared`) or the page's own
    `<meta>` names, if it fits the bytes; a guess by frequent letters among Chinese, Japanese,
    Korean and Russian encodings; and windows-1252. Bytes that do not fit become replacement
    characters; nothing here raises.

    >>> decode("Müller".encode("utf-8"), declared="iso-8859-1")
    'Müller'
    """
    for mark, name in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    if b"\0" in data and (wide := _wide(data)):
        return data.decode(wide, "replace")
    if data.isascii():
        if b"\x1b$" in data or b"\x1b(" in data:
            return data.decode("iso2022_jp", "replace")
        return data.decode("ascii")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        beyond = sum(map(len, _NOT_ASCII.findall(data)))
    if sum(map(len, _UTF8_CHARACTER.findall(data))) >= 0.9 * beyond:
        return data.decode("utf-8", "replace")
    for named in (declared, declared_in(data)):
        text = _decode_as(data, named)
        if text is not None and text.count("\N{REPLACEMENT CHARACTER}") <= 0.05 * beyond:
            return text
    return data.decode(_guess(data), "replace")


def declared_in(data: bytes) -> str | None:
    """The encoding that a page names in its head."""
    found = _DECLARATION.search(data, 0, _DECLARED_WITHIN)
    return (found[1] or found[2]).decode("ascii") if found else None


def _decode_as(data: bytes, name: str | None) -> str | None:
    try:
        known = codecs.lookup(name or "undefined").name
        if known in _NOT_FOR_PAGES or known.startswith(("utf-16", "utf-32")):
            return None
        return data.decode(_MEANT.get(known, known), "replace")
    except (LookupError, ValueError):  # an unknown name, or a codec that is not for text
        return None


def _wide(data: bytes) -> str | None:
    """UTF-16 without a mark: Latin text has a zero in every second byte."""
    head = data[:_DECLARED_WITHIN]
    even, odd = head[::2].count(0), head[1::2].count(0)
    if max(even, odd) < 0.4 * len(head) / 2 or min(even, odd) > 0.1 * max(even, odd):
        return None
    return "utf-16-be" if even > odd else "utf-16-le"


def _guess(data: bytes) -> str:
    """By the frequent letters of some languages; letters with accents stand alone among ASCII."""
    runs = _NOT_ASCII.findall(data, 0, _GUESSED_FROM)
    if len(runs) > 0.6 * sum(map(len, runs)):
        return "cp1252"
    # Runs keep pairs of bytes together, apart from trail bytes within ASCII, which are rare.
    sample = data[:_GUESSED_FROM]
    scores = {name: _share(sample, name, frequent) for name, frequent in _FREQUENT.items()}
    best = max(scores, key=scores.__getitem__)
    return best if scores[best] >= _ENOUGH else "cp1252"


def _share(sample: bytes, encoding: str, frequent: str) -> float:
    """How many of the characters beyond ASCII are frequent letters."""
    others = [c for c in sample.decode(encoding, "replace") if c > "\x7f"]
    wanted = set(frequent)
    return sum(c in wanted for c in others) / max(len(others), 1)
