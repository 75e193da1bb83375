"""The API reference has every public name, and each has an example that `pytest` runs."""

import inspect
import re
from pathlib import Path

import pytest

import dualrank

API = Path(__file__).parents[2] / "docs" / "api"
ROOMS = re.findall(r"`dualrank\.(\w+)`", (API / "pieces.md").read_text())


def documented() -> list[str]:
    pages = "".join(page.read_text() for page in API.glob("*.md"))
    return re.findall(r"^## `(\w+)`$", pages, re.MULTILINE)


def test_every_public_name_has_its_place_once() -> None:
    assert sorted(documented()) == sorted(dualrank.__all__)


@pytest.mark.parametrize("name", sorted(set(dualrank.__all__) - {"__version__"}))
def test_every_public_name_has_an_example(name: str) -> None:
    assert ">>>" in (inspect.getdoc(getattr(dualrank, name)) or "")


@pytest.mark.parametrize("room", ROOMS)
def test_pieces_lists_what_a_room_shows(room: str) -> None:
    text = (API / "pieces.md").read_text().split(f"`dualrank.{room}`")[1].split("\n## ")[0]
    named = set(re.findall(rf"dualrank\.{room}\.(\w+)$", text, re.MULTILINE))
    named |= set(re.findall(r"`(\w+)`", text))
    assert named == set(getattr(__import__(f"dualrank.{room}"), room).__all__)
