import numpy as np
import pytest

from dualrank.errors import DataError
from dualrank.pages.sources import HeldPages
from dualrank.pages.tables import Queries
from dualrank.pages.tokens import Tokeniser
from dualrank.pages.word_counts import FIELDS, QueryWords, count_words

TOKENISER = Tokeniser()
WORDS = QueryWords.of(Queries(["a", "b"], ["red cat", "red red dog"]), TOKENISER)
PAGES = [
    {"doc_id": "1", "url": "x.org/cat", "title": "Red", "content": "the red cat is red"},
    {"doc_id": "2", "url": "x.org/", "html": "<title>Dog</title><nav>cat</nav><p>a dog</p>"},
    {"doc_id": "3", "url": "", "title": "", "content": ""},
]


def dense(counts, name):
    return counts.fields[name].counts.toarray().tolist()


def test_words_of_queries_are_numbered_and_counted():
    assert WORDS.numbers == {"cat": 0, "dog": 1, "red": 2}
    assert WORDS.counts.toarray().tolist() == [[1, 0, 1], [0, 1, 2]]


def test_counts_of_fields_and_of_the_whole():
    counts = count_words(HeldPages(PAGES), WORDS, TOKENISER, jobs=1)
    assert dense(counts, "url") == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert dense(counts, "content") == [[1, 0, 2], [0, 1, 0], [0, 0, 0]]
    assert dense(counts, "whole") == [[2, 0, 3], [1, 2, 0], [0, 0, 0]]
    whole = counts.fields["whole"]
    assert whole.lengths.tolist() == [9, 6, 0]
    assert whole.distinct.tolist() == [6, 5, 0]
    assert whole.document_frequency.tolist() == [2, 1, 1]
    assert whole.collection_frequency.tolist() == [3, 2, 3]
    assert (whole.documents, whole.tokens) == (3, 15)
    assert counts.slashes.tolist() == [1, 1, 0]


def test_counts_can_be_kept_for_some_pages_with_statistics_of_all():
    everything = count_words(HeldPages(PAGES), WORDS, TOKENISER, jobs=1)
    some = count_words(HeldPages(PAGES), WORDS, TOKENISER, only={"2"}, jobs=1)
    assert some.doc_ids.tolist() == ["2"]
    for name in FIELDS:
        assert dense(some, name) == dense(everything, name)[1:2]
        ours, theirs = some.fields[name], everything.fields[name]
        assert ours.document_frequency.tolist() == theirs.document_frequency.tolist()
        assert (ours.documents, ours.tokens) == (theirs.documents, theirs.tokens)


def test_the_first_page_of_a_name_counts():
    again = [*PAGES, {"doc_id": "1", "url": "other", "content": "dog dog"}]
    counts = count_words(HeldPages(again), WORDS, TOKENISER, jobs=1)
    assert counts.repeated == ("1",)
    assert counts.pages == 3
    assert counts.fields["content"].collection_frequency.tolist() == [1, 1, 2]


def test_unreadable_pages_are_named():
    counts = count_words(HeldPages([{"title": "x"}, *PAGES]), WORDS, TOKENISER, jobs=1)
    assert [bad.place for bad in counts.unreadable] == ["the pages, row 1"]


def test_if_no_page_can_be_read_that_is_an_error():
    with pytest.raises(DataError, match="no page could be read; 1 could not"):
        count_words(HeldPages([{"title": "x"}]), WORDS, TOKENISER, jobs=1)


def test_processes_change_nothing():
    rng = np.random.default_rng(0)
    words = np.array(["red", "cat", "dog", "sun", "moon"])
    pages = [{"doc_id": str(i), "content": " ".join(rng.choice(words, 9))} for i in range(700)]
    done = []
    alone = count_words(HeldPages(pages), WORDS, TOKENISER, jobs=1)
    together = count_words(
        HeldPages(pages), WORDS, TOKENISER, jobs=2, progress=lambda *seen: done.append(seen)
    )
    assert dense(alone, "whole") == dense(together, "whole")
    assert alone.doc_ids.tolist() == together.doc_ids.tolist()
    assert done == [(250, 700), (500, 700), (700, 700)]
