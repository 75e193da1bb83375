"""The page of an interleaving: what it holds, and what it leaves out."""

import numpy as np
import pytest

from dualrank.decisions.interleaving_log import InterleavedLog
from dualrank.decisions.preference import compare
from dualrank.report.interleaving_report import (
    interleaving_sheet,
    preference_figure,
    preference_table,
)


def made(arms, days):
    rng = np.random.default_rng(1)
    return InterleavedLog(
        arms,
        np.array(["<b>q</b>", "other"], object),
        rng.integers(2, size=900),
        np.arange(900) // 100 if days else np.full(900, -1),
        rng.integers(0, 2, size=(900, len(arms))).astype(float),
        np.ones(900, np.int64),
        notes=("a thing to know",),
    )


@pytest.mark.parametrize("arms", [("A", "<script>B"), ("A", "B", "C")])
def test_the_page_has_every_pair_and_is_escaped(arms):
    log = made(arms, days=True)
    found = compare(log)
    page = interleaving_sheet(found, log, "clicks").html()
    assert page.count("<svg") == len(found.pairs)
    assert "<script>B" not in page
    assert "<b>q</b>" not in page
    assert "A thing to know." in page
    assert ("Queries that prefer one of them most" in page) == (len(arms) == 2)
    assert len(preference_table(found).rows) == len(found.pairs)


def test_without_days_there_is_no_figure():
    log = made(("A", "B"), days=False)
    found = compare(log)
    assert preference_figure(found.pairs[0], "clicks") is None
    assert "Day by day" not in interleaving_sheet(found, log, "clicks").html()
