"""The 33 text features of the paper's Table 1, for many query–document pairs at once.

Eight for each of url, title, content and whole document, and the number of slashes in the url. The
formulas are those of LETOR (Qin, Liu, Xu, Li: LETOR, Information Retrieval 13, 2010), whose
methods the paper follows; each function below gives one. Their symbols, for one field:

    q_t    how often the query has the word t;       |q| = Σ q_t
    c_t    how often the document has t;             |d| its words, |d|_u its different words
    n_t    how many of the N pages have t
    C_t    how often t stands in all pages;          |C| all their words,  |d|_avg = |C| / N

Averages and language models go over all words of the query, a repeated one as often as it stands
there. A query without words (of stop words only, say) has 0 in all features that depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dualrank.errors import SettingsError
from dualrank.pages.word_counts import FIELDS, FieldCounts, PageCounts, QueryWords

Values = NDArray[np.float64]

KINDS = ("tf", "idf", "tfidf", "bm25", "lmabs", "lmdir", "lmjm", "length")
FEATURE_NAMES = (*(f"{kind}_{field}" for kind in KINDS for field in FIELDS), "slashes")


@dataclass(frozen=True)
class Parameters:
    """The constants of the formulas.

    BM25 has those of LETOR's web collections; the language models those that Zhai and Lafferty
    (A study of smoothing methods, TOIS 22, 2004) found best for keyword queries.
    """

    k1: float = 2.5
    b: float = 0.8
    k3: float = 0.0
    delta: float = 0.7
    mu: float = 2000.0
    lam: float = 0.1

    def __post_init__(self) -> None:
        for name in ("k1", "k3"):
            if getattr(self, name) < 0:
                raise SettingsError(f"{name} is 0 or more, not {getattr(self, name)}")
        for name in ("b", "delta", "lam"):
            if not 0 <= getattr(self, name) <= 1:
                raise SettingsError(f"{name} lies between 0 and 1, not {getattr(self, name)}")
        if self.lam == 0 or self.delta == 0 or not self.mu > 0:
            raise SettingsError("a language model without smoothing has no value for a new word")


@dataclass(frozen=True, eq=False)
class Occurrences:
    """All words of the queries of some pairs: word `t` of pair `pair`, and its numbers."""

    pairs: int
    pair: NDArray[np.int64]
    word: NDArray[np.int32]
    q: Values
    """q_t"""

    @classmethod
    def of(cls, words: QueryWords, queries: NDArray[np.integer]) -> Occurrences:
        """The words of these queries (indices), one after the other."""
        rows = words.counts[np.asarray(queries)]
        pair = np.repeat(np.arange(len(queries)), np.diff(rows.indptr))
        return cls(len(queries), pair, rows.indices, rows.data)

    def total(self, values: Values) -> Values:
        """Σ over the words of each pair."""
        return np.bincount(self.pair, values, self.pairs).astype(np.float64)

    def average(self, values: Values) -> Values:
        """1/|q| Σ q_t · value; 0 for a query without words."""
        return self.total(self.q * values) / np.maximum(self.total(self.q), 1)


def inverse_document_frequency(field: FieldCounts) -> Values:
    """idf_t = log(1 + (N − n_t + 0.5) / (n_t + 0.5)), for every word.

    LETOR has it without "1 +"; with it, a word that is in more than half of the pages does not
    count against a document that has it.
    """
    n = field.document_frequency
    return np.log1p((field.documents - n + 0.5) / (n + 0.5))


def bm25(
    c: Values, length: Values, mean_length: float, idf: Values, q: Values, p: Parameters
) -> Values:
    """idf_t · c_t (k1 + 1)/(c_t + k1 (1 − b + b |d|/|d|_avg)) · (k3 + 1) q_t/(k3 + q_t)."""
    relative = length / mean_length if mean_length > 0 else np.ones_like(length)
    saturation = c + p.k1 * (1 - p.b + p.b * relative)
    frequency = np.divide(c * (p.k1 + 1), saturation, where=c > 0, out=np.zeros_like(c))
    return idf * frequency * (p.k3 + 1) * q / (p.k3 + q)


def absolute_discounting(
    c: Values, length: Values, distinct: Values, background: Values, p: Parameters
) -> Values:
    """log( max(c_t − δ, 0)/|d| + δ |d|_u/|d| · C_t/|C| ).

    An empty field is as one whose words are all different and none is asked for: |d|_u/|d| = 1.
    """
    some = np.maximum(length, 1)
    share = np.where(length > 0, distinct / some, 1.0)
    return np.log(np.maximum(c - p.delta, 0) / some + p.delta * share * background)


def dirichlet(c: Values, length: Values, background: Values, p: Parameters) -> Values:
    """log( (c_t + μ C_t/|C|) / (|d| + μ) )."""
    return np.log((c + p.mu * background) / (length + p.mu))


def jelinek_mercer(c: Values, length: Values, background: Values, p: Parameters) -> Values:
    """log( (1 − λ) c_t/|d| + λ C_t/|C| )."""
    return np.log((1 - p.lam) * c / np.maximum(length, 1) + p.lam * background)


def field_features(
    field: FieldCounts,
    words: Occurrences,
    documents: NDArray[np.integer],
    parameters: Parameters,
) -> Values:
    """The eight features of one field, a row per pair.

    Language models leave out words that the field has in no page: they would be impossible in
    every document, and tell none from another.
    """
    row = np.asarray(documents)[words.pair]
    c = _entries(field.counts, row, words.word)
    idf = inverse_document_frequency(field)[words.word]
    length, distinct = field.lengths[row], field.distinct[row]
    background = field.collection_frequency[words.word] / max(field.tokens, 1)
    known = background > 0
    background = np.where(known, background, 1.0)
    weight = words.q * known
    return np.stack(
        [
            words.average(c),
            words.average(idf),
            words.average(c * idf),
            words.total(bm25(c, length, field.mean_length, idf, words.q, parameters)),
            words.total(weight * absolute_discounting(c, length, distinct, background, parameters)),
            words.total(weight * dirichlet(c, length, background, parameters)),
            words.total(weight * jelinek_mercer(c, length, background, parameters)),
            field.lengths[documents],
        ],
        axis=1,
    )


def _entries(
    matrix: sparse.csr_array, rows: NDArray[np.integer], columns: NDArray[np.integer]
) -> Values:
    """Single entries; scipy has returned them in several shapes, and none of an empty choice."""
    if len(rows) == 0:
        return np.zeros(0)
    values = matrix[rows, columns]
    dense = values.toarray() if sparse.issparse(values) else np.asarray(values)
    return dense.reshape(-1).astype(np.float64)


def features_of(
    pages: PageCounts,
    words: QueryWords,
    queries: NDArray[np.integer],
    documents: NDArray[np.integer],
    parameters: Parameters | None = None,
) -> NDArray[np.float32]:
    """The 33 features of each pair (index of a query, index of a page), named `FEATURE_NAMES`."""
    parameters = parameters or Parameters()
    occurrences = Occurrences.of(words, queries)
    by_field = [
        field_features(pages.fields[name], occurrences, documents, parameters) for name in FIELDS
    ]
    # Kind by kind, in the order of the names.
    table = np.stack(by_field, axis=2).reshape(len(queries), -1)
    return np.column_stack([table, pages.slashes[documents]]).astype(np.float32)
