"""What maintainers run finds what is wrong before users do."""

import doctest
import importlib
import sys
import tomllib
import zipfile
from contextlib import nullcontext
from pathlib import Path

import pytest

from dualrank.version import __version__

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: importlib.import_module(f"tools.{name}")


def test_the_oldest_versions_are_the_lower_bounds(tool):
    oldest = tool("oldest")
    assert doctest.testmod(oldest).failed == 0
    lines = oldest.oldest((ROOT / "pyproject.toml").read_text())
    assert {"torch==2.4", "pandas==2.2"} <= {*lines}
    assert not any(line.startswith(("ruff", "sphinx")) for line in lines)


def test_a_requirement_without_a_lower_bound_is_named(tool):
    pyproject = '[project]\ndependencies = ["torch"]\n[project.optional-dependencies]\ndev = []'
    with pytest.raises(ValueError, match=r"'torch' in pyproject\.toml has no lower bound"):
        tool("oldest").oldest(pyproject)


@pytest.fixture
def wheel(tool, tmp_path):
    """Write a wheel of this repository with some files more, or fewer."""

    def write(more=(), fewer=()):
        files = tool("wheel_contents").package_files(ROOT / "src")
        about = f"dualrank-{__version__}.dist-info"
        names = ("WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
        path = tmp_path / "dualrank.whl"
        lines = ["Requires-Python: >=3.11", *(f"Provides-Extra: {extra}" for extra in EXTRAS)]
        with zipfile.ZipFile(path, "w") as opened:
            for name in {*files, *(f"{about}/{name}" for name in names), *more} - {*fewer}:
                opened.writestr(name, "")
            opened.writestr(f"{about}/METADATA", "\n".join(lines))
        return path

    return write


def test_a_wheel_of_all_that_is_there_is_taken(tool, wheel):
    tool("wheel_contents").check_wheel(wheel(), ROOT)


@pytest.mark.parametrize("lost", ["dualrank/py.typed", "dualrank/report/templates/page.html"])
def test_what_a_wheel_lacks_is_named(tool, wheel, lost):
    with pytest.raises(SystemExit, match=f"the wheel lacks.*{lost}"):
        tool("wheel_contents").check_wheel(wheel(fewer=[lost]), ROOT)


def test_what_a_wheel_should_not_hold_is_named(tool, wheel):
    with pytest.raises(SystemExit, match=r"has.*tests/conftest\.py"):
        tool("wheel_contents").check_wheel(wheel(more=["tests/conftest.py"]), ROOT)


def test_a_command_that_does_not_name_its_extra_is_found(tool):
    base = tool("base_install")

    def run(*words, code=0):
        said = f"dualrank {__version__}" if "--version" in words else ""
        line = " ".join(words)
        wanted = [extra for extra, command in base.WANTING.items() if command == line]
        return said if wanted in ([], ["trees"]) else base.install_lines(wanted[0])

    with pytest.raises(SystemExit, match="does not name the extra trees"):
        base.try_base_install(run, lambda what: nullcontext())


def test_a_tag_that_is_not_the_version_is_refused(tool, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["dist", "--tag", "v9.9.9"])
    with pytest.raises(SystemExit, match=f"the tag is v9.9.9.* is {__version__}"):
        tool("dist").main()
