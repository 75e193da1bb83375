"""Text with queries and judgments, for the experiment with click models.

Each becomes a table of pages, which goes the way of any user's pages: fields, words, the 33
features. `stanford-web` has no bodies, only where the words of the queries stand in them, and how
long they are; its content is those words and as many others as are missing.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dualrank.data import Dataset
from dualrank.errors import DataError
from dualrank.pages import (
    FEATURE_NAMES,
    MAX_GRADE,
    HeldPages,
    Pairs,
    Queries,
    SmallWeb,
    Tokeniser,
    WebSize,
    extract,
    generate_web,
)
from dualrank.reproduce.experiment import require_known
from dualrank.sentences import reason_of

COLLECTIONS = ("small-web", "msrd-movies", "nfcorpus", "stanford-web")
CANDIDATES = 100
ENGINE = FEATURE_NAMES.index("bm25_whole")
_OTHERS = [f"other{i}" for i in range(1_000)]
TRAIN_QUERIES, TEST_QUERIES = 1_150, 300
_DAMAGE = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, OSError, StopIteration),
    *(RecursionError, TypeError, ValueError, zlib.error, pa.ArrowException),
)
"""What files end in that were cut or changed on their way here."""


@cache
def _english() -> Tokeniser:
    """Made when a collection is read: experiments without texts need no package for words."""
    return Tokeniser("english", stop_words=True)


@dataclass(frozen=True)
class TextCollection:
    """The generated small web, or a public collection below `root`."""

    name: str = "small-web"
    root: Path | None = None
    size: WebSize = field(default_factory=WebSize)

    def __post_init__(self) -> None:
        require_known("collection", [self.name], COLLECTIONS)
        if self.name != "small-web":
            folder = (self.root or Path()) / self.name.replace("-", "_")
            if self.root is None or not folder.is_dir():
                raise DataError(f"{folder}: the collection {self.name} is not there")

    @property
    def new_for_every_seed(self) -> bool:
        """Whether every seed is tested on other queries."""
        return self.name == "small-web"

    def load(self, seed: int) -> TextSplits:
        """Features and grades of the queries to learn from and to test on."""
        if self.name == "small-web":
            return split_web(generate_web(self.size, seed), seed)
        folder = self.root / self.name.replace("-", "_")  # type: ignore[operator]
        read = {"msrd-movies": _movies, "nfcorpus": _nfcorpus, "stanford-web": _stanford}
        try:
            return read[self.name](folder)
        except _DAMAGE as error:
            raise DataError(
                f"{folder}: not {self.name} as it was published ({reason_of(error)}); fetch it "
                "again"
            ) from error


@dataclass(frozen=True, eq=False)
class TextSplits:
    """Judged queries with their candidates."""

    train: Dataset
    test: Dataset


def engine_scores(dataset: Dataset) -> NDArray[np.float64]:
    """How the search engine scores pages: by BM25 on the whole document."""
    return dataset.features[:, ENGINE].astype(np.float64)


def split_web(web: SmallWeb, seed: int) -> TextSplits:
    """A fifth of the queries of a generated web test; candidates are BM25's best pages."""
    found = extract(web.pages, web.queries, CANDIDATES, jobs=1)
    pairs = found.candidates
    page = np.array([int(name.removeprefix("page")) for name in found.pages.doc_ids.tolist()])
    grades = web.grades(pairs.queries, page[pairs.documents])
    data = found.dataset().with_grades(grades, MAX_GRADE)
    order = np.random.default_rng([seed, 0x_5EB]).permutation(len(data))
    cut = len(data) * 8 // 10
    return TextSplits(data.take(order[:cut]), data.take(order[cut:]))


def _movies(folder: Path) -> TextSplits:
    rows = []
    with gzip.open(folder / "movies-corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        for movie in map(json.loads, lines):
            parts = [movie.get("overview"), movie.get("director"), str(movie.get("year", ""))]
            for name in ("tags", "genres", "actors", "characters"):
                parts += movie.get(name) or []
            content = " ".join(str(part) for part in parts if part)
            rows.append(
                {"doc_id": movie["id"], "title": movie.get("title") or "", "content": content}
            )
    with gzip.open(folder / "movies-judgments.tsv.gz", "rt", encoding="utf-8") as lines:
        next(lines)
        judged = [line.rstrip("\n").split("\t") for line in lines]
    texts = {query_id: text for query_id, text, _, _ in judged}
    return _from_judged(rows, texts, [(q, d, float(g)) for q, _, d, g in judged], 1.0)


def _stanford(folder: Path) -> TextSplits:
    bodies = {
        str(row["url"]): str(row["text"]) for row in _lines(folder / "matched_bodies.jsonl.zst")
    }
    pages: dict[str, dict[str, Any]] = {}
    hits: dict[str, dict[str, int]] = defaultdict(dict)
    judged, texts = [], {}
    for row in _lines(folder / "pairs.jsonl.zst"):
        url, query = str(row["url"]), str(row["query"])
        texts[query] = query
        judged.append((query, url, float(np.clip(np.round(row["rel"]), 0, 3))))
        hits[url] |= {word: len(places) for word, places in row["body_hits"].items()}
        pages[url] = {
            "doc_id": url,
            "url": url,
            "title": row["title"],
            "length": row["body_length"],
        }
    for url, page in pages.items():
        words = [word for word, count in hits[url].items() for _ in range(count)]
        missing = max(int(page.pop("length")) - len(words), 0)
        words += (_OTHERS * (missing // len(_OTHERS) + 1))[:missing]
        page["content"] = bodies.get(url, " ".join(words))
    return _from_judged(list(pages.values()), texts, judged, 3.0)


def _from_judged(
    rows: list[dict[str, Any]],
    texts: dict[str, str],
    judged: list[tuple[str, str, float]],
    max_grade: float,
) -> TextSplits:
    """The judged pages of each query are its candidates."""
    chosen = _chosen(texts)
    kept = sorted((row for row in judged if row[0] in chosen), key=lambda row: row[0])
    queries, documents, grades = zip(*kept, strict=True)
    wanted = Pairs(np.array(queries), np.array(documents), np.array(grades, np.float32))
    asked = Queries(list(chosen), list(chosen.values()))
    found = extract(HeldPages(rows), asked, wanted, _english(), jobs=1)
    return _split(found.dataset().with_grades(found.candidates.grades, max_grade), chosen)


def _nfcorpus(folder: Path) -> TextSplits:
    rows = [
        {"doc_id": name, "content": text}
        for part in ("dev", "test")
        for name, text in _columns(folder / f"{part}.docs.zst")
    ]
    texts: dict[str, str] = {}
    grades: dict[tuple[str, str], float] = {}
    for part in ("train", "dev", "test"):
        texts |= dict(_columns(folder / f"{part}.titles.queries.zst"))
        for query, _, document, grade in _columns(folder / f"{part}.3-2-1.qrel.zst"):
            grades[query, document] = float(grade)
    chosen = _chosen(texts)
    asked = Queries(list(chosen), list(chosen.values()))
    found = extract(HeldPages(rows), asked, CANDIDATES, _english(), jobs=1)
    data = found.dataset()
    graded = np.array([grades.get(pair, 0.0) for pair in data.pairs()])
    return _split(data.with_grades(graded, 3.0), chosen)


def _chosen(texts: dict[str, str]) -> dict[str, str]:
    """Some queries, in an order that is the same everywhere: that of the hashes of their names."""
    order = sorted(texts, key=lambda query: hashlib.sha256(query.encode()).digest())
    return {query: texts[query] for query in order[: TRAIN_QUERIES + TEST_QUERIES]}


def _split(data: Dataset, chosen: dict[str, str]) -> TextSplits:
    """The last of the chosen queries test; those without candidates are in neither part."""
    numbers = {name: n for n, name in enumerate(data.query_ids.tolist())}
    cut = len(chosen) * TRAIN_QUERIES // (TRAIN_QUERIES + TEST_QUERIES)
    order = list(chosen)
    train, test = (
        np.array([numbers[query] for query in part if query in numbers])
        for part in (order[:cut], order[cut:])
    )
    return TextSplits(data.take(train), data.take(test))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with pa.input_stream(path, compression="zstd") as stream:
        yield from map(json.loads, io.TextIOWrapper(stream, "utf-8"))


def _columns(path: Path) -> list[list[str]]:
    with pa.input_stream(path, compression="zstd") as stream:
        return [line.rstrip("\n").split("\t") for line in io.TextIOWrapper(stream, "utf-8")]
