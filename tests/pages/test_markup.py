import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from dualrank.pages.markup import MAX_DEPTH, simplify


def text_of(page: bytes) -> str:
    body = LexborHTMLParser(page).body
    return " ".join((body.text(separator=" ") if body else "").split())


def depth_of(page: bytes) -> int:
    deepest = 0
    for node in LexborHTMLParser(page).root.traverse():
        if not node.child:
            depth = 0
            while node is not None:
                node, depth = node.parent, depth + 1
            deepest = max(deepest, depth)
    return deepest


@pytest.mark.parametrize(
    ("page", "simple"),
    [
        (b"a < b &lt; c <3", b"a < b &lt; c <3"),
        (b"wo<B CLASS=x>r</b>d", b"word"),
        (b"<a href='>'>x</a>y", b" x y"),
        (b"<<font>a>x", b"< a>x"),
        (b"<</b>!-- x", b"< !-- x"),
        (b"x<!-- <p> -->y<!-- open", b"x y "),
        (b"x<SCRIPT>if (a<b) '</p>'</script >y<style>p{}", b"x y "),
        (b"<svg><path/></svg>x<svg>y", b" x y"),
        (b"<p class=a>x</p><br/>", b"<p class=a>x</p><br/>"),
        (b"<div/>x<x-y>z</x-y>", b" x<x-y>z</x-y>"),
        (b"x<p class='open", b"x "),
        (b"<body a=1>x<body b=2>y", b"<body a=1>x y"),
        (b"</div>x", b" x"),
        (b"", b""),
    ],
)
def test_examples(page, simple):
    assert simplify(page) == simple


def test_an_element_with_too_many_attributes_loses_them():
    many = " ".join(f"a{i}='>'" for i in range(1000)).encode()
    assert simplify(b"<p " + many + b">x") == b"<p>x"
    assert simplify(b"<img src='data:" + b"A" * 100_000 + b"'>").startswith(b"<img src=")


@pytest.mark.parametrize(
    "piece", [b"<div>", b"<x></y>", b"<x><div></x>", b"<div/>", b"<ul><li>", b"<font a=%d><p>"]
)
def test_trees_stay_shallow(piece):
    page = b"".join(piece.replace(b"%d", b"%d" % i) for i in range(5_000)) + b"end"
    simple = simplify(page)
    assert depth_of(simple) < 5 * MAX_DEPTH
    assert text_of(simple) == "end"


NAMES = ["div", "p", "b", "a", "x", "li", "table", "td", "script", "svg", "body", "font"]
TAGS = st.builds(
    lambda close, name, rest: f"<{close}{name}{rest}>",
    st.sampled_from(["", "/"]),
    st.sampled_from(NAMES),
    st.sampled_from(["", " a=b", ' a="<"', "/"]),
)
WORDS = st.text("abc &<>!-'\"", max_size=6)


@given(st.lists(st.one_of(TAGS, WORDS)).map("".join))
def test_no_formatting_is_left(page):
    simple = simplify(page.encode())
    assert len(simple) <= len(page)
    assert not LexborHTMLParser(simple).css("a, b, font, script")


@given(st.lists(st.sampled_from(["<div>", "</div>", "<p>", "<b>", "</b>", "one", " ", "<br>"])))
def test_text_is_that_of_the_page(pieces):
    page = "".join(pieces).encode()
    assert re.sub(r"\s", "", text_of(simplify(page))) == re.sub(r"\s", "", text_of(page))


@given(st.binary(max_size=200))
def test_any_bytes_are_survived(page):
    assert len(simplify(page)) <= len(page)
