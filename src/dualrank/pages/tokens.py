"""Text to words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated
from urllib.parse import unquote

from dualrank.errors import SettingsError
from dualrank.extras import require

# Signs that are written upon or around a letter are part of the word: Arabic, Indic, Thai …
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u064b-\u065f"
    "\u0900-\u0963\u0966-\u0fff\u102b-\u103e\u17b4-\u17d3"
)
_WORD = re.compile(rf"[^\W_](?:[^\W_]|[{_MARKS}])*")
_ASCII_WORDS = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}
_PIECE = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]+")

_ENGLISH = """
    a about above after again against all am an and any are as at be because been before being
    below between both but by can could did do does doing down during each few for from further
    had has have having he her here hers him his how i if in into is it its itself just me more
    most my no nor not now of off on once only or other our out over own same she should so some
    such than that the their them then there these they this those through to too under until up
    very was we were what when where which while who whom why will with would you your yours
"""
STOP_WORDS = frozenset(_ENGLISH.split())
"""English words that are in every text."""


@dataclass(frozen=True)
class Tokeniser:
    """How text becomes words; pages and queries must go the same way.

    Words are runs of letters and digits in any script, in normal form (NFKC, so that full-width
    letters and ligatures are as plain ones) and lower case. `stemmer` is one of Snowball's
    languages, such as `english`; `stop_words` leaves English ones out; `chinese` cuts runs of
    Chinese characters into words (it needs the extra `chinese`), which otherwise stay
    whole.

    >>> Tokeniser().words("Crème brûlée, ﬁve €5.50")
    ['crème', 'brûlée', 'five', '5', '50']
    >>> Tokeniser(stemmer="english", stop_words=True).words("The rankers are ranking")
    ['ranker', 'rank']
    """

    stemmer: Annotated[
        str | None, "Cut words to their stems, such as english, german, russian."
    ] = None
    stop_words: Annotated[bool, "Leave English stop words out."] = False
    chinese: Annotated[bool, "Cut Chinese into words (extra dualrank\\[chinese])."] = False

    def __post_init__(self) -> None:
        if self.stemmer is not None:
            known = require("pages", "Stemmer").algorithms()
            if self.stemmer not in known:
                raise SettingsError(
                    f"there is no stemmer {self.stemmer!r}; known are {', '.join(known)}"
                )
        if self.chinese:
            require("chinese", "rjieba")

    def words(self, text: str) -> list[str]:
        """The words of a text, in their order."""
        if text.isascii():
            words = text.translate(_ASCII_WORDS).split()
        else:
            text = unicodedata.normalize("NFKC", text).lower()
            if self.chinese:
                text = _HAN.sub(lambda run: f" {' '.join(self._cut(run[0]))} ", text)
            words = _WORD.findall(text)
        if self.stop_words:
            words = [word for word in words if word not in STOP_WORDS]
        return self._stem(words) if self.stemmer is not None else words

    def url_words(self, url: str) -> list[str]:
        """The words of a url: cut at every sign, between letters and digits, and at capitals.

        The scheme, `www`, and the endings of pages are not words of it.

        >>> Tokeniser().url_words("https://www.example.org/userGuide/page%20two2.html?q=a+b")
        ['example', 'org', 'user', 'guide', 'page', 'two', '2', 'q', 'a', 'b']
        """
        address = re.sub(r"^[a-zA-Z][a-zA-Z0-9+.-]*://(www\.)?", "", url.strip())
        address = re.sub(r"\.(x?html?|php|aspx?|jsp)(?=$|[?#])", "", address)
        pieces = _PIECE.findall(_CAMEL.sub(" ", unquote(address)))
        return self.words(" ".join(pieces))

    @cached_property
    def _stem(self) -> Callable[[list[str]], list[str]]:
        return require("pages", "Stemmer").Stemmer(self.stemmer).stemWords

    @cached_property
    def _cut(self) -> Callable[[str], list[str]]:
        return require("chinese", "rjieba").cut

    def __reduce__(self) -> tuple[type[Tokeniser], tuple[str | None, bool, bool]]:
        return Tokeniser, (self.stemmer, self.stop_words, self.chinese)
