from __future__ import annotations

import re
import sys
from html.parser import HTMLParser

import pytest

from dualrank.errors import SettingsError
from dualrank.report import (
    Cell,
    Exhibit,
    Explanation,
    Results,
    Row,
    Run,
    Section,
    Sheet,
    Table,
    propensity_figure,
    results_sheet,
)
from dualrank.report.drawing import new_figure
from dualrank.sentences import duration

VOID = {"meta", "br", "link", "img", "hr", "input"}


class Page(HTMLParser):
    """Checks that every element is closed in order; collects ids, links and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self._take(tag, attrs)

    def handle_startendtag(self, tag, attrs):
        self._take(tag, attrs)

    def _take(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href", "srcset", "action", "data"):
                self.links.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def render_page(results: Results) -> str:
    return results_sheet(results, "Learning to rank", verdict=["DLA gains.", "So it does."]).html()


@pytest.fixture(scope="module")
def html(make) -> str:
    return render_page(make())


def test_page_is_well_formed_with_unique_ids(html):
    page = Page(html)
    assert len(page.ids) == len(set(page.ids))
    assert page.tags.count("svg") == 4
    assert {link[1:] for link in page.links} <= set(page.ids)


def test_page_needs_nothing_from_outside(html):
    assert not re.search(r"https?://|//\w+\.\w+|@import|@font-face", html)
    assert all(link.startswith("#") for link in Page(html).links)
    assert not set(re.findall(r"url\(([^)])", html)) - {"#"}


def test_page_says_what_was_found_run_and_how_to_read_it(html):
    text = Page(html).text
    for part in [
        "Learning to rank",
        "DLA gains. So it does.",
        "How to read this",
        "A gain on these test queries is not yet a gain on your users",
        "Fisher’s randomisation test with 100,000 permutations at the level 0.05",
        "about 5 would be marked",
        "ideal order over all documents of the query",
        "train 8,000, valid 800, test 2,000",
        "dualrank reproduce oracle-mode --seeds 5",
        "0.1.0",
    ]:
        assert part in text


def test_hostile_names_and_settings_are_escaped(make):
    attack = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
    results = make(ndcg={"dla": 0.7, "naive": 0.6, attack: 0.65}, command=attack, data=attack)
    results.settings[attack] = {attack: attack}
    results.significance["test"] = attack
    html = render_page(results)
    page = Page(html)
    assert page.tags.count("script") == 1
    assert "img" not in page.tags
    assert "alert(1)" in page.text


def test_sections_without_data_are_left_out(make):
    results = make(seeds=1)
    results.settings, results.significance = {}, {}
    for run in results.runs:
        run.propensity = None
        run.__pydantic_extra__.clear()
    page = Page(render_page(results))
    assert page.tags.count("svg") == 1
    for absent in ("Plus and minus", "The inverse propensity weight", "To repeat it"):
        assert absent not in page.text


@pytest.mark.parametrize(
    "runs", [[], [Run(method="dla", seed=0, metrics={}, seconds=1)]], ids=["none", "no metrics"]
)
def test_almost_nothing_still_makes_a_page(runs):
    page = Page(render_page(Results(experiment="demo", settings={}, runs=runs)))
    assert "table" not in page.tags
    assert "svg" not in page.tags


def test_a_sweep_makes_a_page(sweep):
    assert Page(render_page(sweep)).tags.count("svg") == 3


def test_duration_carries_over():
    assert duration(59.6) == "1 min 0 s"
    assert duration(9.96) == "10 s"


def test_one_list_of_exhibits_makes_files_and_page(tmp_path):
    def draw():
        figure, (ax,) = new_figure(1)
        ax.plot([0, 1], [1, 2])
        return figure

    table = Table(("x",), (Row("<a>", (Cell(1.5),)),), remark="Said below.")
    figures = (
        Exhibit("both", draw, "Both.", as_png=True, panels=(Exhibit("left", draw, "Left half."),)),
        Exhibit("none", lambda: None, "Nothing to draw."),
        Exhibit("wide", draw, "Wide.", wide=True),
    )
    sheet = Sheet(
        "A sheet",
        sections=(
            Section("Numbers", "They are few.", table=table, file="table.md"),
            Section("More", table=table, file="table.md", exhibits=figures),
            Section("Empty", exhibits=figures[1:2]),
        ),
        explanations=(Explanation("Words", terms=[("x", "unknown")], items=["one", "two"]),),
    )
    names = [path.name for path in sheet.write(tmp_path)]
    assert names == [
        "table.md",
        "figure-both.svg",
        "figure-both.png",
        "figure-wide.svg",
        "report.html",
    ]
    assert (tmp_path / "table.md").read_text().count("| &lt;a&gt; | 1.500 |") == 2
    assert "They are few." in (tmp_path / "table.md").read_text()
    page = Page((tmp_path / "report.html").read_text())
    assert page.tags.count("svg") == 2
    for part in ("Left half.", "Wide.", "Said below.", "<a>", "unknown", "two"):
        assert part in page.text
    for absent in ("Both.", "Nothing to draw.", "Empty", "What was run"):
        assert absent not in page.text


def test_without_matplotlib_reports_leave_figures_out_and_say_so(
    results, tmp_path, monkeypatch, caplog
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    names = [path.name for path in results_sheet(results, "Methods").write(tmp_path)]
    assert names == ["table.md", "report.html"]
    assert "figures are left out: charts need" in caplog.text
    with pytest.raises(SettingsError, match="pip install matplotlib"):
        propensity_figure(results)
