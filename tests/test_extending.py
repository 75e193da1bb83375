"""The examples of docs/extending.md run as they are printed, each section a program of its own."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"
HEADING, BLOCK = re.compile(r"^## (.+)$"), re.compile(r"^```(\w*)$")


def sections():
    """The blocks of Python before the first heading, and those of every section, as code.

    Lines of code stand where they stand in the page, so that an error names its line there.
    """
    shared, found, inside = [], {}, False
    current = shared
    lines = PAGE.read_text(encoding="utf-8").splitlines() if PAGE.exists() else []
    for number, line in enumerate(lines):
        fence = BLOCK.match(line)
        if fence:
            inside = fence[1] == "python" and not inside
            if inside:
                current.append("\n" * (number + 1))
        elif inside:
            current[-1] += line + "\n"
        elif heading := HEADING.match(line):
            current = found.setdefault(heading[1], [])
    return shared, {name: blocks for name, blocks in found.items() if blocks}


SHARED, SECTIONS = sections()


def test_the_page_has_examples():
    if not PAGE.exists():
        pytest.skip("docs/extending.md is not written yet")
    assert SECTIONS, "docs/extending.md has no block of Python"
    about = " ".join(SECTIONS).lower()
    for piece in ("ranker", "correction", "click model", "estimator", "experiment"):
        assert piece in about


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_runs_as_it_is_printed(section, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # A module, as a user's file would be: dataclasses look their types up there.
    program = ModuleType("extending_example")
    monkeypatch.setitem(sys.modules, program.__name__, program)
    for block in (*SHARED, *SECTIONS[section]):
        exec(compile(block, str(PAGE), "exec"), program.__dict__)
