"""Every picture of the docs is used, and made by a command that is written down with it."""

import importlib
import re
import shlex
from pathlib import Path

import pytest
import typer

from dualrank.cli.app import app

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("**/*.md"), *(ROOT / "docs").glob("**/*.ipynb")]
ROWS = {
    image: (command, source)
    for image, command, source in re.findall(
        r"^\| (\S+\.\w+) \| `([^`]+)` \| (\S*) ?\|$",
        (IMAGES / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
}


def test_every_image_is_in_the_table_and_every_row_has_its_image():
    there = {path.name for path in IMAGES.iterdir() if path.suffix != ".md"}
    assert set(ROWS) == there


def test_every_image_is_shown_by_some_page():
    written = [
        path.read_text(encoding="utf-8")
        for path in PAGES
        if path.parent != IMAGES and "_build" not in path.parts
    ]
    shown = {
        name for text in written for name in re.findall(r"images/([\w.-]+\.(?:svg|png))", text)
    }
    assert set(ROWS) - shown == set()


@pytest.mark.parametrize("command", sorted({command for command, _ in ROWS.values()}))
def test_the_command_exists_with_its_options(command, monkeypatch):
    words = shlex.split(command)
    if words[0] == "dualrank":
        found, rest = typer.main.get_command(app), words[1:]
        while hasattr(found, "commands"):
            found, rest = found.commands[rest[0]], rest[1:]
        found.make_context("dualrank", rest)
        return
    assert words[:2] == ["python", "-m"]
    monkeypatch.syspath_prepend(str(ROOT))
    module = importlib.import_module(words[2])
    source = Path(module.__file__).read_text(encoding="utf-8")
    assert "def main" in source
    assert all(f'"{word}"' in source for word in words[3:] if word.startswith("--"))


def test_the_command_names_the_image_or_the_row_a_file_of_its_folder():
    for image, (command, source) in ROWS.items():
        if source:
            assert shlex.split(command)[-1].rstrip("/") == source.split("/")[0]
        elif f"docs/images/{image}" not in command:
            module = ROOT / (shlex.split(command)[2].replace(".", "/") + ".py")
            # Named whole, or put together of the name of the figure and its ending.
            names = (image, image.rsplit(".", 1)[0], image.rsplit("-", 1)[0])
            assert any(name in module.read_text(encoding="utf-8") for name in names), image


def test_the_figures_of_the_concepts_are_those_that_their_command_draws(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    drawn = importlib.import_module("benchmarks.concept_figures").FIGURES
    assert {f"{name}.svg" for name in drawn} == {n for n in ROWS if n.startswith("concept-")}


def test_a_figure_of_the_concepts_is_the_same_when_it_is_drawn_again(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(ROOT))
    module = importlib.import_module("benchmarks.concept_figures")
    from dualrank.report.theme import svg_file

    for name in ("concept-map", "concept-weights"):
        once, twice = (svg_file(module.FIGURES[name]()) for _ in range(2))
        assert once == twice
        kept = (IMAGES / f"{name}.svg").read_text(encoding="utf-8")
        # Other versions of matplotlib write other paths, but the same words.
        assert re.findall(r"<text.*?>(.*?)</text>", once) == re.findall(
            r"<text.*?>(.*?)</text>", kept
        )
