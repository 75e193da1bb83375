"""Every block of shell and Python in a page, and every cell of a notebook, runs in its order.

Blocks that begin with `# on your own data` (or `server`, …), `# takes about N minutes` or
`# installs` are parsed only (their commands in tests/cli/test_printed_commands.py); all others are
run in an empty folder, with small files under the names of a reader's own (`pantry.sh`), and
trainings of a few steps (`make_small`).
"""

import json
import re
import subprocess
from collections import Counter
from pathlib import Path
from shutil import which

import pytest

from .pantry import take
from .printed_blocks import NOTEBOOKS, PAGES, ROOT, blocks
from .warm_python import warm_python

ALL = [block for page in PAGES for block in blocks(page)]
RUN = [block for block in ALL if block.mark is None]
SHARE = 0.6
"""How many of all blocks are run, at least."""


def named(page):
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    with warm_python(tmp_path_factory.mktemp("warm")) as environment:
        yield environment


def run(command, folder, environment):
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr[-6_000:]


@pytest.fixture(scope="module")
def pantry(environment, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pantry")
    run(["bash", Path(__file__).with_name("pantry.sh")], folder, environment)
    return folder


@pytest.mark.parametrize("page", [*dict.fromkeys(b.page for b in RUN), *NOTEBOOKS], ids=named)
def test_every_block_of_a_page_runs(page, pantry, environment, tmp_path):
    printed = [block for block in blocks(page) if block.mark is None]
    if any("curl " in block.text for block in printed) and which("curl") is None:
        pytest.skip("curl is not installed: the blocks of this page are not run")
    take(pantry, page.name, "\n".join(block.text for block in printed), tmp_path)
    asked = tmp_path.with_suffix(".json")
    asked.write_text(json.dumps([(str(b), b.kind, b.code) for b in printed]), encoding="utf-8")
    run(["page", asked], tmp_path, environment)


def test_marked_blocks_are_python_and_shell_nevertheless():
    for block in ALL:
        if block.kind in ("sh", "bash"):
            checked = subprocess.run(
                ["bash", "-n", "-c", block.text], capture_output=True, text=True
            )
            assert checked.returncode == 0, f"{block}: {checked.stderr}"
        else:
            compile(block.code, str(block), "exec")


def test_what_marked_blocks_call_exists():
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    for block in ALL:
        for module in re.findall(r"python -m ((?:benchmarks|tests)[.\w]*)", block.text):
            path = ROOT / module.replace(".", "/")
            assert path.is_dir() or path.with_suffix(".py").exists(), f"{block}: no module {module}"
        for target in re.findall(r"^make ([\w-]+)", block.text, re.M):
            assert target in targets, f"{block}: no target {target}"


def test_most_blocks_are_run():
    marks = Counter(block.mark or "run" for block in ALL)
    assert marks["run"] > SHARE * len(ALL), dict(marks)
