"""Which pages stand for which query, and their features as a table or a data set."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dualrank.data.dataset import Dataset
from dualrank.errors import DataError
from dualrank.pages.retrieval import best_pages
from dualrank.pages.sources import PageSource
from dualrank.pages.tables import Pairs, Queries
from dualrank.pages.text_features import FEATURE_NAMES, Parameters, features_of
from dualrank.pages.tokens import Tokeniser
from dualrank.pages.word_counts import PageCounts, QueryWords, count_words
from dualrank.storage import atomic_file, marked

BLOCK_PAIRS = 20_000
_NAMED = 3

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs by the indices of query and page, those of a query together.

    `without` are the queries that have none, `unknown` the pairs whose page or query is not there.
    """

    queries: NDArray[np.int64]
    documents: NDArray[np.int64]
    grades: NDArray[np.float32] | None
    without: list[str]
    unknown: list[tuple[str, str]]


@dataclass(frozen=True, eq=False)
class Extraction:
    """Pages read for some queries, with the pairs whose features are wanted."""

    asked: Queries
    words: QueryWords
    pages: PageCounts
    candidates: Candidates
    parameters: Parameters

    def dataset(self) -> Dataset:
        """All features at once."""
        pairs = self.candidates
        return Dataset.from_arrays(
            np.concatenate([values for _, values in self._blocks()]),
            np.array(self.asked.query_ids)[pairs.queries],
            pairs.grades,
            doc_ids=self.pages.doc_ids[pairs.documents],
            feature_names=FEATURE_NAMES,
        )

    def warn(self) -> None:
        """Name what was left out: pages, queries, candidates."""
        unreadable = [f"{each.place} ({each.reason})" for each in self.pages.unreadable]
        unknown = [f"{document} of query {query}" for query, document in self.candidates.unknown]
        warn_of("pages that cannot be read", unreadable)
        warn_of(
            "pages that come again under a doc_id, of which the first counts", self.pages.repeated
        )
        warn_of("queries without any candidate", self.candidates.without)
        warn_of("candidates that are not there, and left out", unknown)

    def write(self, path: Path, progress: Callable[[int, int], None] | None = None) -> None:
        """Write Parquet keyed by `query_id, doc_id` with a column per feature, block by block."""
        pairs = self.candidates
        query_ids = np.array(self.asked.query_ids)
        judged = [] if pairs.grades is None else [("grade", pa.float32())]
        schema = pa.schema(
            [
                ("query_id", pa.string()),
                ("doc_id", pa.string()),
                *judged,
                *((name, pa.float32()) for name in FEATURE_NAMES),
            ]
        )
        schema = marked(schema, "text features")
        with atomic_file(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as out:
            for block, values in self._blocks():
                names = query_ids[pairs.queries[block]], self.pages.doc_ids[pairs.documents[block]]
                grades = [] if pairs.grades is None else [pairs.grades[block]]
                columns = [*names, *grades, *values.T]
                out.write_table(pa.Table.from_arrays([pa.array(c) for c in columns], schema=schema))
                if progress:
                    progress(min(block.stop, len(pairs.queries)), len(pairs.queries))

    def _blocks(self) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """The features of some thousand pairs at a time."""
        queries, documents = self.candidates.queries, self.candidates.documents
        for start in range(0, len(queries), BLOCK_PAIRS):
            block = slice(start, start + BLOCK_PAIRS)
            part = self.pages, self.words, queries[block], documents[block]
            yield block, features_of(*part, self.parameters)


def warn_of(what: str, names: Sequence[str]) -> None:
    """Say how many there are, and name the first."""
    if names:
        more = ", …" if len(names) > _NAMED else ""
        logger.warning("%s: %d in all (%s%s)", what, len(names), ", ".join(names[:_NAMED]), more)


def extract(
    source: PageSource,
    queries: Queries,
    wanted: Pairs | int,
    tokeniser: Tokeniser | None = None,
    *,
    parameters: Parameters | None = None,
    jobs: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Extraction:
    """Read the pages once for these queries; `wanted` are pairs, or the best pages by BM25."""
    tokeniser = tokeniser or Tokeniser()
    words = QueryWords.of(queries, tokeniser)
    only = None if isinstance(wanted, int) else frozenset(wanted.doc_ids.tolist())
    pages = count_words(source, words, tokeniser, only=only, jobs=jobs, progress=progress)
    candidates = (
        _best(pages, words, queries, wanted)
        if isinstance(wanted, int)
        else _given(pages, queries, wanted)
    )
    return Extraction(queries, words, pages, candidates, parameters or Parameters())


def _best(pages: PageCounts, words: QueryWords, asked: Queries, k: int) -> Candidates:
    queries, documents = best_pages(pages, words, k)
    if len(queries) == 0:
        raise DataError(f"none of the {len(asked)} queries has a word that any page has")
    return Candidates(queries, documents, None, _without(asked, queries), [])


def _given(pages: PageCounts, asked: Queries, pairs: Pairs) -> Candidates:
    query_numbers = {name: n for n, name in enumerate(asked.query_ids)}
    page_numbers = {name: n for n, name in enumerate(pages.doc_ids.tolist())}
    queries = np.array([query_numbers.get(name, -1) for name in pairs.query_ids.tolist()])
    documents = np.array([page_numbers.get(name, -1) for name in pairs.doc_ids.tolist()])
    known = (queries >= 0) & (documents >= 0)
    if not known.any():
        query, document = pairs.query_ids[0], pairs.doc_ids[0]
        raise DataError(
            f"none of the {len(known)} candidates is there: for the first, "
            f"{f'no query {str(query)!r}' if queries[0] < 0 else f'no page {str(document)!r}'}"
        )
    missing = np.flatnonzero(~known)
    return Candidates(
        queries[known],
        documents[known],
        None if pairs.grades is None else pairs.grades[known],
        _without(asked, queries[known]),
        [(str(pairs.query_ids[i]), str(pairs.doc_ids[i])) for i in missing],
    )


def _without(asked: Queries, queries: NDArray[np.integer]) -> list[str]:
    has = np.bincount(queries, minlength=len(asked)) > 0
    return [name for name, found in zip(asked.query_ids, has, strict=True) if not found]
