"""A small generated web: sites, pages in HTML, queries, and how relevant every page is to each.

Topics have words of their own, and subtopics a few key words among them, which other subtopics of
the topic share. A page is an article on a subtopic, an overview of a topic, a forum page, or spam
that repeats key words; its quality shows in its title, address and length as it does on the web,
and its boilerplate speaks of other things. Relevance comes from what a page is about and how good
it is, not from the words it happens to have, so that no feature is the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualrank.pages.sources import HeldPages
from dualrank.pages.tables import Queries

MAX_GRADE = 4
_TOPIC_WORDS, _KEY_WORDS, _COMMON_WORDS = 40, 4, 1_500
_ARTICLE, _OVERVIEW, _FORUM, _SPAM = range(4)
_SHARES = (0.5, 0.12, 0.2, 0.18)
_THRESHOLDS = (0.22, 0.4, 0.58, 0.74)
_SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]


@dataclass(frozen=True)
class WebSize:
    """How large the web is."""

    pages: int = 3_000
    queries: int = 1_000
    topics: int = 40
    subtopics: int = 12


@dataclass(frozen=True, eq=False)
class SmallWeb:
    """Pages, queries, and what each is about."""

    pages: HeldPages
    queries: Queries
    page_topic: NDArray[np.int64]
    page_subtopic: NDArray[np.int64]
    page_kind: NDArray[np.int64]
    page_quality: NDArray[np.float64]
    query_topic: NDArray[np.int64]
    query_subtopic: NDArray[np.int64]
    _taste: NDArray[np.float64]

    def grades(
        self, queries: NDArray[np.integer], pages: NDArray[np.integer]
    ) -> NDArray[np.float32]:
        """The grade, 0 to 4, of each page for each query (indices of both, pair by pair).

        Relevance is aboutness (an article on the subtopic 1, an overview of the topic 0.65, a forum
        page on the subtopic 0.7, the topic's other pages 0.25, spam a third of that) times
        0.4 + 0.6 quality, and a little that only the assessor knows.
        """
        topic = self.page_topic[pages] == self.query_topic[queries]
        subtopic = topic & (self.page_subtopic[pages] == self.query_subtopic[queries])
        kind = self.page_kind[pages]
        about = np.where(topic, 0.25, 0.0)
        about = np.where(subtopic & (kind == _ARTICLE), 1.0, about)
        about = np.where(subtopic & (kind == _FORUM), 0.7, about)
        about = np.where(topic & (kind == _OVERVIEW), 0.65, about)
        about = np.where(kind == _SPAM, about / 3, about)
        taste = self._taste[(np.asarray(queries) * 7_919 + np.asarray(pages)) % len(self._taste)]
        relevance = about * (0.4 + 0.6 * self.page_quality[pages]) + taste * (about > 0)
        return np.digitize(relevance, _THRESHOLDS).astype(np.float32)


def generate_web(size: WebSize | None = None, seed: int = 0) -> SmallWeb:
    """A web; another seed is another web with other words."""
    size = size or WebSize()
    rng = np.random.default_rng([seed, 0x_3EB])
    words = _invent_words(size.topics * _TOPIC_WORDS + _COMMON_WORDS, rng)
    topic_words = words[: size.topics * _TOPIC_WORDS].reshape(size.topics, _TOPIC_WORDS)
    keys = np.stack(
        [rng.permutation(_TOPIC_WORDS)[:_KEY_WORDS] for _ in range(size.topics * size.subtopics)]
    ).reshape(size.topics, size.subtopics, _KEY_WORDS)
    vocabulary = _Vocabulary(words[size.topics * _TOPIC_WORDS :], topic_words, keys)
    topic = rng.integers(size.topics, size=size.pages)
    subtopic = rng.integers(size.subtopics, size=size.pages)
    kind = rng.choice(4, size.pages, p=_SHARES)
    quality = rng.beta(2, 2, size.pages) * np.where(kind == _SPAM, 0.3, 1.0)
    about = zip(topic.tolist(), subtopic.tolist(), kind.tolist(), quality.tolist(), strict=True)
    rows = [_page(number, *each, vocabulary, rng) for number, each in enumerate(about)]
    query_topic = rng.integers(size.topics, size=size.queries)
    query_subtopic = rng.integers(size.subtopics, size=size.queries)
    texts = [vocabulary.query(t, s, rng) for t, s in zip(query_topic, query_subtopic, strict=True)]
    return SmallWeb(
        HeldPages(rows, "the small web"),
        Queries([f"q{i}" for i in range(size.queries)], texts),
        topic,
        subtopic,
        kind,
        quality,
        query_topic,
        query_subtopic,
        rng.normal(0, 0.06, 100_003),
    )


@dataclass(frozen=True, eq=False)
class _Vocabulary:
    common: NDArray[np.str_]
    topics: NDArray[np.str_]
    keys: NDArray[np.int64]

    def frequent(self, count: int, rng: np.random.Generator) -> NDArray[np.str_]:
        """Common words, the first far more often than the last."""
        places = (len(self.common) ** rng.random(count) - 1).astype(np.int64)
        return self.common[places]

    def key_words(self, topic: int, subtopic: int) -> NDArray[np.str_]:
        return self.topics[topic, self.keys[topic, subtopic]]

    def query(self, topic: int, subtopic: int, rng: np.random.Generator) -> str:
        """Two or three key words, at times with a common word."""
        chosen = rng.permutation(self.key_words(topic, subtopic))[: rng.integers(2, 4)]
        common = self.frequent(int(rng.random() < 0.3), rng)
        return " ".join([*chosen, *common])

    def text(
        self, length: int, topic: int, subtopic: int, focus: float, rng: np.random.Generator
    ) -> list[str]:
        """Words of which `focus` are key words, twice as many of the topic, the rest common."""
        source = rng.random(length)
        words = self.frequent(length, rng)
        about = rng.choice(self.topics[topic], length)
        key = rng.choice(self.key_words(topic, subtopic), length)
        return np.where(source < focus, key, np.where(source < 3 * focus, about, words)).tolist()


def _page(
    number: int,
    topic: int,
    subtopic: int,
    kind: int,
    quality: float,
    vocabulary: _Vocabulary,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """One page as its site would publish it."""
    key = vocabulary.key_words(topic, subtopic)
    focus = {_ARTICLE: 0.06 + 0.06 * quality, _OVERVIEW: 0.04, _FORUM: 0.07, _SPAM: 0.16}[kind]
    typical = {_ARTICLE: 260 + 300 * quality, _OVERVIEW: 450, _FORUM: 120, _SPAM: 220}[kind]
    length = int(typical * rng.lognormal(0, 0.35)) + 20
    words = vocabulary.text(length, topic, subtopic, focus, rng)
    if kind == _SPAM:
        # Stuffed with the key words of another subtopic too, to be found for both.
        other = vocabulary.key_words(topic, int(rng.integers(vocabulary.keys.shape[1])))
        words += rng.choice(other, length // 8).tolist()
    tells = rng.random() < 0.35 + 0.6 * quality
    title = [*rng.permutation(key)[: rng.integers(1, 4)]] if tells or kind == _SPAM else []
    if kind == _OVERVIEW:
        title = rng.choice(vocabulary.topics[topic], 2).tolist()
    title += vocabulary.frequent(int(rng.integers(1, 4)), rng).tolist()
    site = f"{vocabulary.topics[topic][number % 3]}{('.org', '.com', '.net')[number % 3]}"
    slug = (
        "-".join(rng.permutation(key)[:2]) if rng.random() < 0.3 + 0.5 * quality else f"p{number}"
    )
    depth = int(rng.integers(0, 2)) + (int(rng.integers(2, 5)) if kind in (_FORUM, _SPAM) else 0)
    path = "/".join([*vocabulary.frequent(depth, rng), slug])
    return {
        "doc_id": f"page{number}",
        "url": f"https://www.{site}/{path}.html",
        "html": _html(title, words, vocabulary, topic, rng),
    }


def _html(
    title: list[str],
    words: list[str],
    vocabulary: _Vocabulary,
    topic: int,
    rng: np.random.Generator,
) -> str:
    """Markup with navigation to other topics, links within the text, and a script."""
    others = rng.integers(len(vocabulary.topics), size=6)
    menu = "".join(
        f"<li><a href='/{name}/'>{name}</a></li>" for name in vocabulary.topics[others, 0]
    )
    paragraphs = []
    for start in range(0, len(words), 70):
        part = words[start : start + 70]
        link = rng.integers(len(part))
        part[link] = f"<a href='/page{rng.integers(10_000)}.html'>{part[link]}</a>"
        paragraphs.append(f"<p>{' '.join(part).capitalize()}.</p>")
    heading = " ".join(title).capitalize()
    return (
        f"<!DOCTYPE html><html><head><meta charset='utf-8'><title>{heading}</title>"
        f"<script>var page = {topic};</script></head><body><header><nav><ul>{menu}</ul></nav>"
        f"</header><main><h1>{heading}</h1>{''.join(paragraphs)}</main>"
        f"<footer>&copy; {' '.join(vocabulary.frequent(4, rng))}</footer></body></html>"
    )


def _invent_words(count: int, rng: np.random.Generator) -> NDArray[np.str_]:
    """So many different words of two to four syllables."""
    words: dict[str, None] = {}
    while len(words) < count:
        for length in rng.integers(2, 5, size=count):
            words["".join(rng.choice(_SYLLABLES, length))] = None
    return np.array(list(words)[:count])
