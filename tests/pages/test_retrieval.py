import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dualrank.pages.retrieval import SEARCH, best_pages
from dualrank.pages.sources import HeldPages
from dualrank.pages.tables import Queries
from dualrank.pages.text_features import FEATURE_NAMES, features_of
from dualrank.pages.tokens import Tokeniser
from dualrank.pages.word_counts import QueryWords, count_words

TOKENISER = Tokeniser()
TEXTS = st.lists(
    st.lists(st.sampled_from(["red", "green", "blue", "one"]), max_size=6).map(" ".join),
    min_size=1,
    max_size=12,
)


def counted(contents, queries):
    pages = [{"doc_id": str(i), "content": text} for i, text in enumerate(contents)]
    words = QueryWords.of(Queries([str(i) for i in range(len(queries))], queries), TOKENISER)
    return count_words(HeldPages(pages), words, TOKENISER, jobs=1), words


@settings(max_examples=50, deadline=None)
@given(TEXTS, TEXTS, st.integers(1, 5))
def test_the_best_pages_are_those_with_the_highest_feature(contents, queries, k):
    pages, words = counted(contents, queries)
    found_queries, found = best_pages(pages, words, k)
    for q in range(len(queries)):
        everything = np.arange(len(contents))
        values = features_of(pages, words, np.full(len(contents), q), everything, SEARCH)
        scores = values[:, FEATURE_NAMES.index("bm25_whole")]
        order = [d for d in np.argsort(-scores, kind="stable") if scores[d] > 0][:k]
        np.testing.assert_allclose(scores[found[found_queries == q]], scores[order], rtol=1e-6)


def test_pages_without_a_word_of_the_query_are_not_found():
    pages, words = counted(["red", "green", "red red"], ["red", "", "black"])
    queries, found = best_pages(pages, words, 10)
    assert queries.tolist() == [0, 0]
    assert sorted(found.tolist()) == [0, 2]


def test_equal_scores_keep_the_order_of_the_collection():
    pages, words = counted(["red one"] * 9, ["red"])
    assert best_pages(pages, words, 4)[1].tolist() == [0, 1, 2, 3]
