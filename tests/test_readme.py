"""The README's Python example runs as printed, at a smaller size."""

import re
from pathlib import Path

import numpy as np
import pytest

README = Path(__file__).parents[1] / "README.md"


def test_python_example_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 1
    smaller = blocks[0].replace('"laptop"', '"tiny"').replace("500_000", "20_000")
    assert smaller != blocks[0]
    names: dict[str, object] = {}
    exec(compile(smaller, str(README), "exec"), names)
    assert np.isfinite(names["scores"]).all()
    assert "ndcg@10" in capsys.readouterr().out


def test_links_of_the_docs_lead_somewhere() -> None:
    pages = [README, *README.parent.glob("docs/**/*.md"), README.parent / "CONTRIBUTING.md"]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
