import io
import json

import numpy as np
import pytest
from rich.console import Console

from dualrank.diagnostics.diagnosis import Diagnosis
from dualrank.diagnostics.point import Point
from dualrank.report import diagnosis_sheet, write_diagnosis


@pytest.fixture
def diagnosis():
    curve = {"examination": np.array([1.0, 0.5]), "low": None, "high": None}
    learned = {"examination": np.array([1.0, 0.6]), "low": np.array([1, 0.5]), "high": [1, 0.7]}
    return Diagnosis(
        "use harvested propensities",
        ("Because.",),
        (
            Point("connectivity", "good", {"pairs": 1_234}, "All is joined."),
            Point(
                "curves", "failed", {"raw": curve, "learned": learned}, "They <differ>.", "Swap."
            ),
            Point("drift", "not measured", {}, "No time."),
            Point("sample", "warning", {"share": 0.25, "known": True}, "Few."),
        ),
    )


def printed(diagnosis, encoding="utf-8", files=()):
    output = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    diagnosis_sheet(diagnosis, "log").show(Console(file=output, width=70), files)
    output.seek(0)
    return output.read()


def test_the_verdict_stands_on_top_and_every_point_below(diagnosis):
    text = printed(diagnosis)
    assert text.startswith("Use harvested propensities. Because.")
    for word in ("✓ connectivity", "✗ curves", "· drift", "! sample", "They <differ>.", "→ Swap."):
        assert word in text
    assert "1 good, 1 warning, 1 failed, 1 not measured" in text


def test_a_terminal_without_unicode_is_served(diagnosis):
    assert "x curves" in printed(diagnosis, encoding="ascii")


def test_the_page_needs_nothing_but_itself(diagnosis):
    page = diagnosis_sheet(diagnosis, "a<b>.parquet").html()
    assert "a&lt;b&gt;.parquet" in page
    assert "They &lt;differ&gt;." in page
    assert "Use harvested propensities." in page
    assert "<svg" in page
    assert "1,234" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page


def test_a_log_without_curves_has_a_page_without_figure(diagnosis):
    bare = Diagnosis(diagnosis.verdict, (), (Point("curves", "not measured", {}, "None."),))
    assert "<svg" not in diagnosis_sheet(bare, "log").html()


def test_both_files_are_written(diagnosis, tmp_path):
    written = write_diagnosis(diagnosis, tmp_path / "out", "log")
    assert [path.name for path in written] == ["diagnosis.html", "diagnosis.json"]
    assert json.loads(written[1].read_text())["verdict"] == "use harvested propensities"
    text = printed(diagnosis, files=written)
    assert text.index("diagnosis.html") < text.index("Beside it: diagnosis.json")
