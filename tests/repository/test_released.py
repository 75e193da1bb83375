"""What is said of a release in several places is the same in all of them."""

import re
import tomllib
from collections import Counter
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from dualrank.extras import _EXTRAS
from dualrank.version import __version__

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SDIST = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
EXTRAS = PROJECT["optional-dependencies"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
YAML = sorted([*ROOT.glob(".github/**/*.yml"), ROOT / ".pre-commit-config.yaml"])


def of_yaml(path):
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_the_newest_entry_of_the_changelog_is_this_version():
    newest, date = re.findall(r"^## (\d\S*) - (\d{4}-\d\d-\d\d)$", CHANGELOG, re.MULTILINE)[0]
    assert newest == __version__
    assert str(of_yaml("CITATION.cff")["date-released"]) == date


def test_entries_of_the_changelog_are_kinds_of_changes_that_people_know():
    entry = CHANGELOG.split(f"## {__version__} - ")[1].split("\n## ")[0]
    headings = re.findall(r"^### (.+)$", entry, re.MULTILINE)
    known = ["Breaking, and how to move", "Added", "Changed", "Deprecated", "Fixed", "Removed"]
    assert headings == [each for each in known if each in headings]


def test_the_citation_is_of_this_version_and_cites_the_paper():
    citation = of_yaml("CITATION.cff")
    assert citation["version"] == __version__
    assert citation["license"] == PROJECT["license"]
    assert [each["doi"] for each in citation["references"]] == ["10.1145/3209978.3209986"]


def test_the_versions_of_python_that_are_claimed_are_those_that_are_tested():
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    tested = of_yaml(".github/workflows/test.yml")["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert claimed == tested
    assert PROJECT["requires-python"] == f">={claimed[0]}"


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_what_a_forge_reads_is_yaml(path):
    assert isinstance(of_yaml(path), dict)


def test_workflows_run_nothing_but_targets_of_make():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.search(r"\.PHONY: (.*)", makefile)[1].split())
    ran = [step["run"] for path in YAML for step in _steps_of(path) if "run" in step]
    assert ran
    for line in ran:
        command, target, *_ = line.split()
        assert command == "make"
        assert target in targets


def _steps_of(path):
    return steps(of_yaml(path)) if path.parent.name == "workflows" else []


def test_hooks_before_a_commit_are_the_steps_of_make_check():
    check = re.search(r"^check:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    (repository,) = of_yaml(".pre-commit-config.yaml")["repos"]
    hooks = [hook["entry"].removeprefix(".venv/bin/").split() for hook in repository["hooks"]]
    programs = [line.split()[0].removeprefix("$(BIN)/") for line in check.strip().splitlines()]
    assert [hook[0] for hook in hooks] == programs


def test_templates_of_issues_ask_for_what_is_needed_to_see_the_same():
    for name in ("bug", "question", "method"):
        template = of_yaml(f".github/ISSUE_TEMPLATE/{name}.yml")
        assert template.keys() >= {"name", "description", "body"}
        ids = [field["id"] for field in template["body"] if "id" in field]
        assert len(ids) == len(set(ids))
    bug = (ROOT / ".github/ISSUE_TEMPLATE/bug.yml").read_text()
    assert "dualrank --version" in bug
    assert "dualrank diagnose LOG --json" in bug


def test_every_requirement_has_a_pin_that_it_allows():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    pins = {_plain(name): Version(version) for name, version in pins.items()}
    wanted = [*PROJECT["dependencies"], *(each for extra in EXTRAS.values() for each in extra)]
    for requirement in map(Requirement, wanted):
        if requirement.name != "dualrank":
            pin = pins[_plain(requirement.name)]
            assert pin in requirement.specifier, f"{requirement} is pinned to {pin}"


def _plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_table_of_extras_names_each_with_what_it_brings():
    pages = [ROOT / "README.md", ROOT / "docs/install.md"]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    rows = [row for text in texts for row in re.findall(r"^\| `(\w+)` \|.*\| (.+) \|$", text, re.M)]
    table = {extra: brings.split(", ") for extra, brings in rows if extra in _EXTRAS}
    assert table == {extra: packages.split() for extra, (_, packages) in _EXTRAS.items()}


def test_all_that_the_sdist_names_is_there():
    for path in SDIST["sdist"]["only-include"]:
        assert (ROOT / path).exists(), path


def test_no_file_name_is_in_two_rooms():
    names = Counter(path.name for path in ROOT.glob("src/dualrank/**/*.py"))
    assert [name for name, times in names.items() if times > 1 and name != "__init__.py"] == []


def test_pinned_versions_install_on_the_oldest_python_that_is_claimed():
    """One that did not left whoever had that Python with an error of the installer alone."""
    oldest = PROJECT["requires-python"].removeprefix(">=") + ".0"
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    asks = {}
    for name, version in (line.split("==") for line in lines if not line.startswith("#")):
        with suppress(PackageNotFoundError):
            found = metadata(name)
            if found["Version"] == version:
                asks[name] = found.get("Requires-Python", "")
    assert len(asks) > 100
    wrong = {name: said for name, said in asks.items() if oldest not in SpecifierSet(said)}
    assert wrong == {}
