"""The features against the same formulas, written plainly, word by word and page by page."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualrank.errors import SettingsError
from dualrank.pages.sources import HeldPages
from dualrank.pages.tables import Queries
from dualrank.pages.text_features import FEATURE_NAMES, Parameters, features_of
from dualrank.pages.tokens import Tokeniser
from dualrank.pages.word_counts import QueryWords, count_words

TOKENISER = Tokeniser()


def all_features(pages, queries, parameters=None):
    asked = Queries([str(i) for i in range(len(queries))], queries)
    words = QueryWords.of(asked, TOKENISER)
    counts = count_words(HeldPages(pages), words, TOKENISER, jobs=1)
    pairs = [(q, d) for q in range(len(queries)) for d in range(len(pages))]
    chosen = np.array(pairs)
    return pairs, features_of(counts, words, chosen[:, 0], chosen[:, 1], parameters)


def slowly(pages, query, page, p):
    fields = [
        {
            "url": TOKENISER.url_words(each["url"]),
            "title": TOKENISER.words(each["title"]),
            "content": TOKENISER.words(each["content"]),
        }
        for each in pages
    ]
    for each in fields:
        each["whole"] = each["url"] + each["title"] + each["content"]
    asked = TOKENISER.words(query)
    values = {}
    for name in ("url", "title", "content", "whole"):
        texts = [each[name] for each in fields]
        d = texts[page]
        total = sum(map(len, texts))
        mean = total / len(texts)

        def idf(t, texts=texts):
            n = sum(t in text for text in texts)
            return math.log(1 + (len(texts) - n + 0.5) / (n + 0.5))

        sums = Counter(tf=0, idf=0, tfidf=0, bm25=0, lmabs=0, lmdir=0, lmjm=0)
        for t in asked:
            c = d.count(t)
            sums["tf"] += c / len(asked)
            sums["idf"] += idf(t) / len(asked)
            sums["tfidf"] += c * idf(t) / len(asked)
            in_all = sum(text.count(t) for text in texts)
            if in_all == 0:
                continue
            background = in_all / total
            share = len(set(d)) / len(d) if d else 1
            seen = max(c - p.delta, 0) / len(d) if d else 0
            sums["lmabs"] += math.log(seen + p.delta * share * background)
            sums["lmdir"] += math.log((c + p.mu * background) / (len(d) + p.mu))
            sums["lmjm"] += math.log(((1 - p.lam) * c / len(d) if d else 0) + p.lam * background)
        for t in set(asked):
            c, q = d.count(t), asked.count(t)
            if c:
                saturated = c * (p.k1 + 1) / (c + p.k1 * (1 - p.b + p.b * len(d) / mean))
                sums["bm25"] += idf(t) * saturated * (p.k3 + 1) * q / (p.k3 + q)
        values |= {f"{kind}_{name}": value for kind, value in sums.items()}
        values[f"length_{name}"] = len(d)
    values["slashes"] = pages[page]["url"].count("/")
    return [values[name] for name in FEATURE_NAMES]


TEXT = st.lists(st.sampled_from(["red", "green", "blue", "one", "two"]), max_size=8).map(" ".join)
PAGES = st.lists(
    st.tuples(TEXT, TEXT, TEXT.map(lambda text: text.replace(" ", "/"))), min_size=1, max_size=5
).map(
    lambda rows: [
        {"doc_id": str(i), "title": title, "content": content, "url": url}
        for i, (title, content, url) in enumerate(rows)
    ]
)
QUERIES = st.lists(
    st.lists(st.sampled_from(["red", "green", "blue", "one", "black"]), max_size=4).map(" ".join),
    min_size=1,
    max_size=3,
)


@settings(max_examples=25, deadline=None)
@given(PAGES, QUERIES, st.sampled_from([Parameters(), Parameters(1.2, 0.75, 7, 0.5, 50, 0.7)]))
def test_features_are_those_of_the_formulas(pages, queries, parameters):
    pairs, values = all_features(pages, queries, parameters)
    assert values.shape == (len(pairs), 33)
    expected = [slowly(pages, queries[q], d, parameters) for q, d in pairs]
    np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-6)


def test_names_are_33_and_different():
    assert len(set(FEATURE_NAMES)) == 33


def test_a_query_without_words_has_nothing_but_lengths_and_slashes():
    pages = [{"doc_id": "a", "url": "x.org/a/b", "title": "one two", "content": "three"}]
    _, values = all_features(pages, ["?!"])
    by_name = dict(zip(FEATURE_NAMES, values[0].tolist(), strict=True))
    some = {name: value for name, value in by_name.items() if value != 0}
    assert some == {
        "length_url": 4,
        "length_title": 2,
        "length_content": 1,
        "length_whole": 7,
        "slashes": 2,
    }


def test_an_empty_page_has_finite_features():
    pages = [
        {"doc_id": "empty", "html": ""},
        {"doc_id": "b", "url": "b", "title": "one", "content": "one two"},
    ]
    _, values = all_features(pages, ["one two"])
    assert np.isfinite(values).all()
    assert values[1].sum() != values[0].sum()


def test_a_page_with_the_words_scores_higher():
    pages = [
        {"doc_id": "a", "url": "x/y", "title": "blue", "content": "blue one"},
        {"doc_id": "b", "url": "red/y", "title": "red", "content": "red one"},
    ]
    _, values = all_features(pages, ["red"])
    rising = [i for i, name in enumerate(FEATURE_NAMES) if name[:2] in ("tf", "bm", "lm")]
    assert (values[1, rising] > values[0, rising]).all()


@pytest.mark.parametrize("wrong", [{"b": 2}, {"k1": -1}, {"lam": 0}, {"mu": 0}, {"delta": 1.5}])
def test_parameters_out_of_range_are_refused(wrong):
    with pytest.raises(SettingsError):
        Parameters(**wrong)
