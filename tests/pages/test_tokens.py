import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualrank.errors import SettingsError
from dualrank.pages.tokens import Tokeniser


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, WORLD-wide web_page 3.14", ["hello", "world", "wide", "web", "page", "3", "14"]),
        ("Ｆｕｌｌ ｗｉｄｔｈ", ["full", "width"]),
        ("नमस्ते สวัสดี ١٢٣", ["नमस्ते", "สวัสดี", "١٢٣"]),
        ("naïve co\u0301rt", ["naïve", "córt"]),
        ("…!?", []),
        ("", []),
    ],
)
def test_words(text, words):
    assert Tokeniser().words(text) == words


def test_stemming_comes_after_stop_words():
    assert Tokeniser("english", stop_words=True).words("These were running dogs") == ["run", "dog"]


def test_chinese_is_cut_into_words():
    pytest.importorskip("rjieba")
    assert Tokeniser(chinese=True).words("我来到北京清华大学 today") == [
        *("我", "来到", "北京", "清华大学", "today")
    ]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://www.a-b.com/", ["a", "b", "com"]),
        ("HTTPS://docs.org/api/v2/UserGuide.html#top", ["docs", "org", "api", "v", "2"]),
        ("a/b.htm", ["a", "b"]),
        ("x.org/caf%C3%A9?id=7", ["x", "org", "café", "id", "7"]),
        ("", []),
    ],
)
def test_urls_are_cut_into_words(url, words):
    assert Tokeniser().url_words(url)[: len(words)] == words


def test_an_unknown_stemmer_is_refused():
    with pytest.raises(SettingsError, match="no stemmer 'klingon'"):
        Tokeniser("klingon")


@given(st.text())
def test_words_are_cut_only_once(text):
    words = Tokeniser().words(text)
    assert all(word == word.lower() and " " not in word for word in words if word.isascii())
    assert Tokeniser().words(" ".join(words)) == words or not " ".join(words).isascii()


def test_a_tokeniser_goes_to_other_processes():
    tokeniser = Tokeniser("english")
    assert tokeniser.words("dogs") == pickle.loads(pickle.dumps(tokeniser)).words("dogs")
