import pytest

from dualrank.pages.extraction import Fields, extract_fields

PAGE = """<!DOCTYPE html><html><head><title> Growing
 tomatoes &mdash; Garden </title><style>p {}</style><link rel=canonical href="https://g.org/t">
</head><body><header><h1>The Garden</h1><nav>Home</nav></header>
<main><article><header><h2>Tomatoes</h2></header><p>Plant them in M<b>a</b>y &amp; June.</p>
<div hidden>secret</div><script>var x = "<p>no</p>";</script></article></main>
<div class="sidebar">More <div class="menu">links</div></div>
<footer>© 2020</footer></body></html>"""


def test_fields_of_a_page():
    assert extract_fields(PAGE) == Fields(
        url="https://g.org/t",
        title="Growing tomatoes — Garden",
        content="Tomatoes Plant them in May & June.",
        surroundings="Home More links © 2020 The Garden",
    )


def test_a_given_url_is_kept():
    assert extract_fields(PAGE, "https://other.org/").url == "https://other.org/"


@pytest.mark.parametrize("page", ["", " ", "<html></html>", "<!-- -->", "<title></title>"])
def test_an_empty_page_has_empty_fields(page):
    assert extract_fields(page) == Fields()


def test_a_page_of_navigation_only_keeps_it_as_content():
    assert extract_fields("<nav>Home <p>News</nav>") == Fields(content="Home News")


@pytest.mark.parametrize(
    ("page", "content"),
    [
        ("<p>one<p>two", "one two"),
        ("<td>one</td><td>two</td>", "onetwo"),
        ("<table><td>one</td><td>two</td>", "one two"),
        ("<p>&#x4e2d;&eacute;&nbsp;&lt;b&gt;&unknown;", "中é <b>&unknown;"),
        ("plain words", "plain words"),
        ("</p></div><p>x</b></i>y", "xy"),
        ("<p>a\ud800b", "a?b"),
    ],
)
def test_broken_markup(page, content):
    assert extract_fields(page).content.replace("\ufffd", " ") == content
