"""Every method and click model has a page of the same form, and no page is without its own."""

import re
from pathlib import Path

import pytest

from dualrank.clicks.models.registry import MODELS
from dualrank.learning.methods import METHODS

DOCS = Path(__file__).parents[2] / "docs"
ROOMS = {"methods": METHODS, "click-models": MODELS}
HEADINGS = [
    "Formula",
    "Assumptions",
    "When to use it",
    "What it costs",
    "Results",
    "Example",
    "References",
]
PAGES = [(room, name) for room, known in ROOMS.items() for name in known]


def read(room, name):
    return (DOCS / room / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("room", ROOMS)
def test_pages_are_those_of_what_is_registered(room):
    assert {path.stem for path in (DOCS / room).glob("*.md")} == set(ROOMS[room])


@pytest.mark.parametrize("room", ROOMS)
def test_the_overview_leads_to_every_page(room):
    overview = (DOCS / f"{room}.md").read_text(encoding="utf-8")
    tree = re.search(r"```\{toctree\}.*?```", overview, re.DOTALL)[0]
    assert re.findall(rf"^{room}/([\w-]+)$", tree, re.MULTILINE) == list(ROOMS[room])
    for name in ROOMS[room]:
        assert f"]({room}/{name}.md)" in overview, name


@pytest.mark.parametrize(("room", "name"), PAGES)
def test_a_page_has_the_form_of_the_others(room, name):
    page = read(room, name)
    assert page.startswith(f"# `{name}`: ")
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == HEADINGS
    parts = dict(zip(HEADINGS, re.split(r"^## .+$", page, flags=re.MULTILINE)[1:], strict=True))
    assert "$$" in parts["Formula"]
    assert "**Take it**" in parts["When to use it"]
    assert "**Do not**" in parts["When to use it"]
    assert "`dualrank " in parts["Results"]
    assert re.search(r"\d{4}", parts["References"]) or "](" in parts["References"]


@pytest.mark.parametrize(("room", "name"), PAGES)
def test_the_example_uses_what_the_page_is_about(room, name):
    page = read(room, name)
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    option = "method=" if room == "methods" else "click_model("
    assert f'{option}"{name}"' in example
    compile(example, f"{room}/{name}.md", "exec")
    flag = "--method" if room == "methods" else "--model"
    assert f"{flag} {name} " in " ".join(page.split())


@pytest.mark.parametrize(("room", "name"), PAGES)
def test_the_code_that_a_page_names_is_there(room, name):
    named = re.findall(r"`(src/dualrank/[\w/]+\.py)`", read(room, name))
    assert named
    assert all((DOCS.parent / path).is_file() for path in named)


def test_no_sentence_stands_in_an_overview_and_on_a_page():
    for room in ROOMS:
        pages = {name: " ".join(read(room, name).split()) for name in ROOMS[room]}
        overview = (DOCS / f"{room}.md").read_text(encoding="utf-8")
        overview = re.sub(r"```.*?```|^\|.*$", "", overview, flags=re.DOTALL | re.MULTILINE)
        for sentence in re.split(r"(?<=[.:;])\s+", " ".join(overview.split())):
            if len(sentence) > 60:
                assert [name for name, page in pages.items() if sentence in page] == [], sentence
