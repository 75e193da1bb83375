"""A plan of swaps as a page and as a figure."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from dualrank.propensity.swap_plan import PlannedDesign, SwapPlan
from dualrank.report import precision_figure, swap_plan_sheet, write_swap_plan
from dualrank.report.theme import svg_file

SVG = "{http://www.w3.org/2000/svg}text"


def design(name, method, shares, sessions, lost):
    return PlannedDesign(
        name, method, shares, sessions, sessions / 1e5, lost, 1_000 * lost / sessions,
        lost / sessions / 0.8, np.array([0.0, 0.09, 0.1]), lambda n: 0.1 * np.sqrt(sessions / n),
    )  # fmt: skip


@pytest.fixture
def plan():
    designs = (
        design("first with k", "pair-swaps", {"1-2": 0.02, "1-3": 0.03}, 7e5, 2e3),
        design("neighbours", "harvest-adjacent", {"1-2": 0.02, "2-3": 0.03}, 7e6, 5e2),
        design("full shuffles", "randomisation", {"all": 0.05}, 8e5, 5e3),
    )
    curve = np.array([1.0, 0.6, 0.4])
    return SwapPlan(0.1, 0.05, curve, "the worst", np.inf, 0.0, 300_000, 0.8, 1e5, designs, None)


def texts(figure):
    return {"".join(e.itertext()) for e in ET.fromstring(svg_file(figure)).iter(SVG)}


def test_the_figure_has_a_line_and_a_mark_for_each_design(plan):
    found = texts(precision_figure(plan))
    assert {
        "first with k: 700,000 sessions",
        "neighbours: 7,000,000 sessions",
        "full shuffles: 800,000 sessions",
        "clicks lost in all (at most)",
        "±10%",
        "wanted: ±10%",
    } <= found


def test_designs_that_never_end_or_cost_nothing_are_not_drawn(plan):
    first, chain, shuffles = plan.designs
    never = replace(first, sessions=np.inf, lost=np.inf)
    free = replace(chain, lost=-3.0)
    found = texts(precision_figure(replace(plan, designs=(never, free, shuffles))))
    assert not any(word.startswith(("first with k", "neighbours")) for word in found)
    assert precision_figure(replace(plan, designs=(never, free))) is None


def test_the_page_says_what_to_swap_and_what_is_assumed(plan, tmp_path):
    sheet = swap_plan_sheet(plan, "<b>log", "dualrank plan-swaps log")
    written = write_swap_plan(plan, tmp_path, sheet)
    assert [path.name for path in written] == ["figure-precision.svg", "report.html", "plan.json"]
    page = (tmp_path / "report.html").read_text()
    for word in ("&lt;b&gt;log", "about 7 days; costs at most 0.36%", "1 with 3", "first with k ←"):
        assert word in page
    assert "the worst is assumed" in page
    assert plan.recommended is plan.designs[0]


def test_where_no_swaps_are_needed_none_is_recommended(plan):
    known = replace(plan, known=0.08, curve_by="harvested")
    page = swap_plan_sheet(known, "log").html()
    assert "No swaps are needed" in page
    assert "←" not in page
    assert "at most" not in page


def test_a_design_without_an_end_says_so(plan):
    never = tuple(replace(each, sessions=np.inf, lost=np.inf, days=np.inf) for each in plan.designs)
    page = swap_plan_sheet(replace(plan, designs=never, limit=0.3), "log").html()
    assert page.count("no number is enough") == 3
    assert "±30% is the best" in page
