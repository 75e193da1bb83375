"""An index of pages on disk, for finding the best by BM25."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dualrank.errors import DataError, SettingsError
from dualrank.extras import require
from dualrank.pages.documents import Unreadable, refuse_if_most_are_unreadable
from dualrank.pages.index_folder import has_index, is_free, next_directory, read_note
from dualrank.pages.sources import Batch, PageSource
from dualrank.pages.stream import map_stream
from dualrank.pages.tables import Queries
from dualrank.pages.tokens import Tokeniser
from dualrank.pages.word_counts import FIELDS, words_of

if TYPE_CHECKING:
    import tantivy

_WRITER_BYTES = 256 << 20
_LISTED = pa.schema(
    {"query_id": pa.string(), "doc_id": pa.string(), "rank": pa.int64(), "score": pa.float64()}
)


@dataclass(frozen=True)
class Hit:
    """A page that was found."""

    doc_id: str
    score: float
    url: str
    title: str


@dataclass(frozen=True)
class Indexed:
    """What became of the pages that were to be indexed."""

    pages: int
    in_index: int
    unreadable: tuple[Unreadable, ...]
    repeated: tuple[str, ...]


class PageIndex:
    """Pages on disk, searchable by word in each field and in the whole document.

    Words are cut by the tokeniser with which the index was made, on both sides; tantivy only sees
    them separated by spaces. Its BM25 has k1 = 1.2 and b = 0.75, and lengths rounded to one byte,
    so that scores differ a little from the exact ones of `retrieval`.
    """

    def __init__(self, path: Path, index: tantivy.Index | None, tokeniser: Tokeniser) -> None:
        self.path = path
        self.tokeniser = tokeniser
        self._index = index

    @classmethod
    def open(cls, path: str | Path) -> PageIndex:
        """An index that was made before."""
        folder = Path(path)
        note = read_note(folder)
        with _reading(folder):
            index = _tantivy().Index.open(str(note.place(folder)))
        return cls(folder, index, note.tokeniser)

    @classmethod
    def open_or_create(cls, path: str | Path, tokeniser: Tokeniser) -> PageIndex:
        """The index at this place, which must cut words in the same way, or an empty one.

        An empty one is written when pages are added to it.
        """
        folder = Path(path)
        if has_index(folder):
            found = cls.open(folder)
            if found.tokeniser != tokeniser:
                raise SettingsError(
                    f"{path}: the index was made with {found.tokeniser}, which cannot change now"
                )
            return found
        if not is_free(folder):
            raise DataError(f"{path}: there is something else; give a new or empty folder")
        _tantivy()
        return cls(folder, None, tokeniser)

    def __len__(self) -> int:
        return 0 if self._index is None else int(self._index.searcher().num_docs)

    def add(
        self,
        source: PageSource,
        *,
        jobs: int = 0,
        progress: Callable[[int, int], None] | None = None,
    ) -> Indexed:
        """Add the pages of a source; one that the index has already is replaced.

        Within one source the first page of a name counts. All pages of the source appear at once,
        when the last is read: an index is never half updated.
        """
        with next_directory(self.path, self.tokeniser) as place:
            result = self._add(place, source, jobs, progress)
        self._index = PageIndex.open(self.path)._index
        return Indexed(result.pages, len(self), result.unreadable, result.repeated)

    def _add(
        self,
        place: Path,
        source: PageSource,
        jobs: int,
        progress: Callable[[int, int], None] | None,
    ) -> Indexed:
        """Add pages to the files in this directory."""
        with _writing(self.path):
            index = _tantivy().Index(_schema(), str(place))
            writer = index.writer(_WRITER_BYTES, 1)
            replacing = index.searcher().num_docs > 0
        seen: set[str] = set()
        unreadable: list[Unreadable] = []
        repeated: list[str] = []
        for batch, pages in map_stream(_Cut(self.tokeniser), source.batches(), jobs=jobs):
            for page in pages:
                if isinstance(page, Unreadable):
                    unreadable.append(page)
                elif page["doc_id"] in seen:
                    repeated.append(page["doc_id"])
                else:
                    seen.add(page["doc_id"])
                    with _writing(self.path):
                        if replacing:
                            writer.delete_documents_by_term("doc_id", page["doc_id"])
                        writer.add_document(_tantivy().Document(**page))
            refuse_if_most_are_unreadable(source.name, unreadable, len(seen))
            if progress:
                progress(batch.done, source.total)
        if not seen:
            raise DataError(f"{source.name}: none of the {len(unreadable)} pages could be read")
        with _writing(self.path):
            writer.commit()
            writer.wait_merging_threads()
        return Indexed(len(seen), 0, tuple(unreadable), tuple(repeated))

    def search(self, query: str, k: int = 10, *, field: str = "whole") -> list[Hit]:
        """The k best pages for a query; none if the query has no words or none is anywhere."""
        if field not in FIELDS:
            raise SettingsError(f"the field is one of {', '.join(FIELDS)}, not {field!r}")
        words = dict.fromkeys(self.tokeniser.words(query))
        if self._index is None:
            return []
        schema, query_of = self._index.schema, _tantivy().Query
        should = _tantivy().Occur.Should
        terms = [(should, query_of.term_query(schema, field, word, "freq")) for word in words]
        if not terms:
            return []
        with _reading(self.path):
            searcher = self._index.searcher()
            found = searcher.search(query_of.boolean_query(terms), k, count=False)
            return [_hit(searcher.doc(address), score) for score, address in found.hits]

    def search_all(
        self,
        queries: Queries,
        k: int = 10,
        *,
        field: str = "whole",
        progress: Callable[[int, int], None] | None = None,
    ) -> tuple[pa.Table, list[str]]:
        """A table of query_id, doc_id, rank and score, and the queries that found no page."""
        rows: list[dict[str, Any]] = []
        empty = []
        for done, (query, text) in enumerate(zip(queries.query_ids, queries.texts, strict=True), 1):
            hits = self.search(text, k, field=field)
            if not hits:
                empty.append(query)
            for rank, hit in enumerate(hits, 1):
                found = {"doc_id": hit.doc_id, "rank": rank, "score": hit.score}
                rows.append({"query_id": query, **found})
            if progress:
                progress(done, len(queries))
        return pa.Table.from_pylist(rows, _LISTED), empty


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Of files that no digest vouches for, tantivy may make anything."""
    try:
        yield
    except BaseException as error:
        if not _is_tantivys(error):
            raise
        raise DataError(f"{path}: the index is damaged ({_reason(error)}); make it anew") from error


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        if not _is_tantivys(error):
            raise
        raise DataError(
            f"{path}: nothing was added, for the index cannot be written ({_reason(error)}); is "
            "the disk full?"
        ) from error


def _is_tantivys(error: BaseException) -> bool:
    """Whether tantivy raised this; its panics are derived from no common exception."""
    return isinstance(error, ValueError | OSError) or type(error).__name__ == "PanicException"


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def _tantivy() -> ModuleType:
    return require("pages", "tantivy")


def _schema() -> tantivy.Schema:
    builder = _tantivy().SchemaBuilder()
    builder.add_text_field("doc_id", stored=True, tokenizer_name="raw")
    for name in FIELDS:
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="freq")
    for name in ("shown_url", "shown_title"):
        builder.add_text_field(name, stored=True, tokenizer_name="raw")
    return builder.build()


def _hit(document: Any, score: float) -> Hit:
    url, title = (document.get_first(name) or "" for name in ("shown_url", "shown_title"))
    return Hit(document.get_first("doc_id"), float(score), url, title)


@dataclass(frozen=True)
class _Cut:
    """What a process does with a batch: pages to words per field."""

    tokeniser: Tokeniser

    def __call__(self, batch: Batch) -> list[dict[str, str] | Unreadable]:
        pages: list[dict[str, str] | Unreadable] = []
        for page in batch.read():
            if isinstance(page, Unreadable):
                pages.append(page)
                continue
            fields = page.fields
            texts = [" ".join(words) for words in words_of(fields, self.tokeniser)]
            by_field = dict(zip(FIELDS, [*texts[:-1], " ".join(texts)], strict=True))
            pages.append(
                {
                    "doc_id": page.doc_id,
                    **by_field,
                    "shown_url": fields.url[:2000],
                    "shown_title": fields.title[:500],
                }
            )
        return pages
