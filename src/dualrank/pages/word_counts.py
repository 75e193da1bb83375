"""How often the words of queries stand in the pages of a collection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dualrank.errors import DataError
from dualrank.pages.documents import Unreadable, refuse_if_most_are_unreadable
from dualrank.pages.extraction import Fields
from dualrank.pages.sources import Batch, PageSource
from dualrank.pages.stream import map_stream
from dualrank.pages.tables import Queries
from dualrank.pages.tokens import Tokeniser

FIELDS = ("url", "title", "content", "whole")
_PARTS = 4
"""Url, title, content and surroundings; together they are the whole document."""


@dataclass(frozen=True, eq=False)
class QueryWords:
    """The words of all queries, numbered, and how often each query has them."""

    numbers: dict[str, int]
    counts: sparse.csr_array

    @classmethod
    def of(cls, queries: Queries, tokeniser: Tokeniser) -> QueryWords:
        """Cut the queries into words."""
        words = [Counter(tokeniser.words(text)) for text in queries.texts]
        numbers = {word: n for n, word in enumerate(sorted(set().union(*words)))}
        return cls(numbers, _matrix(words, numbers, np.float64))


@dataclass(frozen=True, eq=False)
class FieldCounts:
    """One field of the collection.

    `counts[d, w]` is how often document d has word w, `lengths` and `distinct` how many words and
    how many different ones it has. `document_frequency` and `collection_frequency` of the words
    and the sums are over all pages, also those whose counts were not kept.
    """

    counts: sparse.csr_array
    lengths: NDArray[np.float64]
    distinct: NDArray[np.float64]
    document_frequency: NDArray[np.float64]
    collection_frequency: NDArray[np.float64]
    documents: int
    tokens: float

    @property
    def mean_length(self) -> float:
        """Words per document."""
        return self.tokens / max(self.documents, 1)


@dataclass(frozen=True, eq=False)
class PageCounts:
    """What features need to know of a collection."""

    doc_ids: NDArray[np.str_]
    fields: dict[str, FieldCounts]
    slashes: NDArray[np.float64]
    pages: int
    unreadable: tuple[Unreadable, ...] = ()
    repeated: tuple[str, ...] = ()


def count_words(
    source: PageSource,
    words: QueryWords,
    tokeniser: Tokeniser,
    *,
    only: Container[str] | None = None,
    jobs: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> PageCounts:
    """Read all pages once, and count the words of the queries in them.

    Statistics are over all pages; counts are kept of those in `only`, if given, so that memory
    depends on the candidates and not on the collection. A name that comes again is left out (the
    first page of a name counts), and named in `repeated`.
    """
    kept: list[_Counted] = []
    size = max(len(words.numbers), 1)
    document_frequency, collection_frequency = np.zeros((2, len(FIELDS), size))
    tokens = np.zeros(len(FIELDS))
    unreadable: list[Unreadable] = []
    repeated: list[str] = []
    seen: set[str] = set()
    pages = 0
    work = _Count(tokeniser, words.numbers)
    for batch, counted in map_stream(work, source.batches(), jobs=jobs):
        new = []
        for row, name in enumerate(counted.doc_ids):
            if name in seen:
                repeated.append(name)
            else:
                seen.add(name)
                new.append(row)
        counted = counted.take(new)
        unreadable += counted.unreadable
        pages += len(new)
        tokens += counted.lengths.sum(axis=0)
        for f, matrix in enumerate(counted.counts):
            document_frequency[f] += np.bincount(matrix.indices, minlength=size)
            collection_frequency[f] += np.bincount(matrix.indices, matrix.data, size)
        if only is not None:
            counted = counted.take([r for r, name in enumerate(counted.doc_ids) if name in only])
        kept.append(counted)
        refuse_if_most_are_unreadable(source.name, unreadable, pages)
        if progress:
            progress(batch.done, source.total)
    if pages == 0:
        named = f", the first being {unreadable[0].place}" if unreadable else ""
        raise DataError(f"{source.name}: no page could be read; {len(unreadable)} could not{named}")
    lengths = np.concatenate([c.lengths for c in kept]).astype(np.float64)
    distinct = np.concatenate([c.distinct for c in kept]).astype(np.float64)
    return PageCounts(
        np.array([name for c in kept for name in c.doc_ids], np.str_),
        {
            name: FieldCounts(
                sparse.vstack([c.counts[f] for c in kept], format="csr"),
                lengths[:, f],
                distinct[:, f],
                document_frequency[f],
                collection_frequency[f],
                pages,
                float(tokens[f]),
            )
            for f, name in enumerate(FIELDS)
        },
        np.concatenate([c.slashes for c in kept]).astype(np.float64),
        pages,
        tuple(unreadable),
        tuple(repeated),
    )


@dataclass(frozen=True, eq=False)
class _Counted:
    """The pages of a batch; a matrix of counts per field, a column of the others per field."""

    doc_ids: list[str]
    counts: list[sparse.csr_array]
    lengths: NDArray[np.int32]
    distinct: NDArray[np.int32]
    slashes: NDArray[np.int32]
    unreadable: list[Unreadable]

    def take(self, rows: Sequence[int]) -> _Counted:
        """These pages only."""
        if len(rows) == len(self.doc_ids):
            return self
        return _Counted(
            [self.doc_ids[row] for row in rows],
            [matrix[list(rows)] for matrix in self.counts],
            self.lengths[rows],
            self.distinct[rows],
            self.slashes[rows],
            self.unreadable,
        )


@dataclass(frozen=True)
class _Count:
    """What a process does with a batch: pages to counts of the words that queries have."""

    tokeniser: Tokeniser
    numbers: dict[str, int] = field(repr=False)

    def __call__(self, batch: Batch) -> _Counted:
        doc_ids, unreadable = [], []
        lengths, distinct, slashes = [], [], []
        asked: list[list[Counter[str]]] = [[] for _ in range(_PARTS)]
        for page in batch.read():
            if isinstance(page, Unreadable):
                unreadable.append(page)
                continue
            counters = [Counter(words) for words in words_of(page.fields, self.tokeniser)]
            for part, counter in zip(asked, counters, strict=True):
                kept = counter.keys() & self.numbers.keys()
                part.append(Counter({word: counter[word] for word in kept}))
            doc_ids.append(page.doc_id)
            sizes = [counter.total() for counter in counters]
            lengths.append([*sizes[:-1], sum(sizes)])
            distinct.append([*map(len, counters[:-1]), len(set().union(*counters))])
            slashes.append(page.fields.url.count("/"))
        matrices = [_matrix(part, self.numbers, np.float32) for part in asked]
        return _Counted(
            doc_ids,
            [*matrices[:-1], sum(matrices[1:], start=matrices[0])],
            np.array(lengths, np.int32).reshape(-1, len(FIELDS)),
            np.array(distinct, np.int32).reshape(-1, len(FIELDS)),
            np.array(slashes, np.int32),
            unreadable,
        )


def words_of(fields: Fields, tokeniser: Tokeniser) -> list[list[str]]:
    """The words of url, title, content and surroundings."""
    texts = (fields.title, fields.content, fields.surroundings)
    return [tokeniser.url_words(fields.url), *map(tokeniser.words, texts)]


def _matrix(
    counters: Sequence[Counter[str]], numbers: dict[str, int], kind: type[np.floating]
) -> sparse.csr_array:
    """A row per counter, with the count of each word in the column of its number."""
    words = [sorted(counter) for counter in counters]
    columns = np.fromiter((numbers[w] for row in words for w in row), np.int32)
    pairs = zip(counters, words, strict=True)
    values = np.fromiter((counter[w] for counter, row in pairs for w in row), kind)
    ends = np.concatenate([[0], np.cumsum([len(row) for row in words])]).astype(np.int64)
    shape = (len(words), max(len(numbers), 1))
    return sparse.csr_array((values, columns, ends), shape=shape)
