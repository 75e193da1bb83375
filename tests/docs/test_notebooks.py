"""The notebooks as they are stored; test_printed_blocks.py runs their cells."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from .printed_blocks import NOTEBOOKS, ROOT, blocks

SOURCE = ROOT / "src" / "dualrank"
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path: Path, kind: str) -> list[dict[str, Any]]:
    book = json.loads(path.read_text(encoding="utf-8"))
    return [cell for cell in book["cells"] if cell["cell_type"] == kind]


def text(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def title(path: Path) -> str:
    first = json.loads(path.read_text(encoding="utf-8"))["cells"][0]
    assert first["cell_type"] == "markdown"
    found = re.match(r"# (.+)\n", text(first))
    assert found is not None, f"{path.name} starts without a title"
    return found[1]


def test_there_are_six_of_them() -> None:
    assert len(NOTEBOOKS) == 6


@every_notebook
def test_what_it_printed_is_not_stored(path: Path) -> None:
    for cell in cells(path, "code"):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None


@every_notebook
def test_cells_have_ids_of_their_own_and_it_runs_on_any_python(path: Path) -> None:
    book = json.loads(path.read_text(encoding="utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert book["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in book["cells"]]
    assert len(set(ids)) == len(ids)


@every_notebook
def test_the_index_lists_it_by_its_title(path: Path) -> None:
    index = path.with_name("index.md").read_text(encoding="utf-8")
    assert f"| [{title(path)}]({path.name}) |" in index
    assert f"\n{path.stem}\n" in index


@every_notebook
def test_it_uses_public_names_only(path: Path) -> None:
    """Those of `dualrank`, as `dr`, and what a room lists for strangers."""
    names = _listed(SOURCE / "__init__.pyi")
    used = set()
    for cell in blocks(path):
        for node in ast.walk(ast.parse(cell.text)):
            if isinstance(node, ast.Import):
                for each in node.names:
                    if each.name.split(".")[0] == "dualrank":
                        assert (each.name, each.asname) == ("dualrank", "dr")
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dualrank"):
                room = SOURCE / str(node.module).partition(".")[2] / "__init__.pyi"
                assert {each.name for each in node.names} <= _listed(room)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used |= {node.attr} if node.value.id == "dr" else set()
                assert not node.attr.startswith("_")
    assert used
    assert used <= names


@every_notebook
def test_it_says_what_to_install_and_where_the_own_log_goes(path: Path) -> None:
    assert "pip install '.[" in text(cells(path, "markdown")[0])
    assert sum("**With " in text(cell) for cell in cells(path, "markdown")) == 1


@every_notebook
def test_it_writes_into_temporary_folders_only(path: Path) -> None:
    code = "\n".join(cell.text for cell in blocks(path))
    for writes in ("dr.train(", "dr.export(", ".save("):
        assert writes not in code or "tempfile.TemporaryDirectory()" in code
    assert not re.search(r"[\"'](/|~|C:)", code)


def _listed(stub: Path) -> set[str]:
    """Return the names that a stub lists."""
    text = stub.read_text(encoding="utf-8")
    return set(re.findall(r"^from \S+ import \w+ as (\w+)$", text, re.MULTILINE))
