import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualrank.pages.encoding import declared_in, decode

CHINESE = "我们在这里学习中文，这是一个很大的国家，人们说的话不一样。" * 4
TRADITIONAL = "我們在這裡學習中文，這是一個很大的國家，人們說的話不一樣。" * 4
JAPANESE = "これは日本語の文章です。東京にはたくさんの人がいます。" * 4
KOREAN = "이것은 한국어로 쓰인 문장입니다. 사람들이 서울에 살고 있다." * 4
RUSSIAN = "Это предложение написано на русском языке, чтобы проверить чтение." * 4
FRENCH = "Où est le café ? Il a été fermé à Noël, c'est bête." * 4


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (CHINESE, "gb18030"),
        (TRADITIONAL, "big5"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
        (JAPANESE, "iso2022_jp"),
        (KOREAN, "euc_kr"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"),
        (FRENCH, "latin-1"),
        (FRENCH, "utf-16-le"),
        (FRENCH, "utf-16-be"),
        (CHINESE, "utf-8"),
    ],
)
def test_text_is_recognised_without_a_declaration(text, encoding):
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_decides(encoding):
    assert decode(RUSSIAN.encode(encoding), declared="iso-8859-1") == RUSSIAN


@pytest.mark.parametrize(
    ("text", "said", "is_in"),
    [
        (CHINESE, "gb2312", "gb18030"),
        (FRENCH, "iso-8859-1", "cp1252"),
        (JAPANESE, "x-sjis", "shift_jis"),
        ("Καλημέρα κόσμε", "iso-8859-7", "iso-8859-7"),
    ],
)
def test_a_declaration_is_believed_where_it_fits(text, said, is_in):
    page = f'<html><head><meta charset="{said}"></head>{text}'
    assert text in decode(page.encode(is_in))
    assert decode(text.encode(is_in), declared=said) == text


@pytest.mark.parametrize(
    ("text", "said", "is_in"),
    [
        (FRENCH, "iso-8859-1", "utf-8"),
        (CHINESE, "utf-8", "gb18030"),
        (RUSSIAN, "utf-8", "cp1251"),
        (FRENCH, "no-such-encoding", "latin-1"),
        (FRENCH, "hex", "latin-1"),
        (FRENCH, "utf-16", "latin-1"),
    ],
)
def test_a_wrong_declaration_does_no_harm(text, said, is_in):
    assert decode(text.encode(is_in), declared=said) == text


def test_a_character_that_the_size_limit_cut_does_not_change_the_encoding():
    assert decode(CHINESE.encode("utf-8")[:-1])[:-1] == CHINESE[:-1]


def test_declarations_of_html_and_xml_are_found():
    assert declared_in(b'<meta http-equiv=x content="text/html; charset=Big5">') == "Big5"
    assert declared_in(b'<?xml version="1.0" encoding="koi8-r"?>') == "koi8-r"
    assert declared_in(b"<p>charset=none") is None


@given(st.binary(max_size=300), st.sampled_from([None, "utf-8", "gbk", "x", "utf-7", "rot13"]))
def test_any_bytes_become_text(data, declared):
    assert isinstance(decode(data, declared), str)
