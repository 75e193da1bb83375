"""The API reference has every public name, and each has an example that `pytest` runs."""

import inspect
import re
from pathlib import Path

import pytest

import dualrank

API = Path(__file__).parents[2] / "docs" / "api"
PAGES = {page.name: page.read_text(encoding="utf-8") for page in API.glob("*.md")}
ROOMS = re.findall(r"`dualrank\.(\w+)`", PAGES["pieces.md"])


def test_every_public_name_has_its_place_once() -> None:
    documented = re.findall(r"^## `(\w+)`$", "".join(PAGES.values()), re.MULTILINE)
    assert sorted(documented) == sorted(dualrank.__all__)


@pytest.mark.parametrize("name", sorted(set(dualrank.__all__) - {"__version__"}))
def test_every_public_name_has_an_example(name: str) -> None:
    assert ">>>" in (inspect.getdoc(getattr(dualrank, name)) or "")


@pytest.mark.parametrize("room", ROOMS)
def test_pieces_lists_what_a_room_shows(room: str) -> None:
    text = PAGES["pieces.md"].split(f"`dualrank.{room}`")[1].split("\n## ")[0]
    named = set(re.findall(rf"dualrank\.{room}\.(\w+)$", text, re.MULTILINE))
    named |= set(re.findall(r"`(\w+)`", text))
    assert named == set(getattr(__import__(f"dualrank.{room}"), room).__all__)
