"""Every promise of docs/reliability.md names a test that exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
CITED = re.compile(r"`(tests/[\w/]+\.py)`|`(test_\w+)`")


def test_every_test_that_the_page_names_exists():
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    file, named = None, 0
    for path, test in CITED.findall(page):
        if path:
            file = ROOT / path
            assert file.is_file(), path
        else:
            assert file is not None, f"{test} stands without its file"
            assert f"def {test}(" in file.read_text(encoding="utf-8"), f"{test} in {file}"
            named += 1
    assert named > 20
