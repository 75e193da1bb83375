"""Pages of reports on a phone and by night."""

import pytest

from dualrank.report import results_sheet

from ..waiting import PATIENCE


@pytest.fixture(scope="module")
def page(browser, make, tmp_path_factory):
    written = tmp_path_factory.mktemp("page") / "report.html"
    html = results_sheet(make(), "Learning to rank", verdict=["DLA gains."]).html()
    written.write_text(html, encoding="utf-8")
    context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme="light")
    page = context.new_page()
    page.set_default_timeout(1_000 * PATIENCE)
    page.goto(written.as_uri())
    yield page
    context.close()


def test_nothing_is_wider_than_a_phone(page):
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    figures = "[...document.querySelectorAll('svg')].map(each => each.getBoundingClientRect())"
    widths = page.evaluate(f"{figures}.map(each => each.width)")
    assert len(widths) == 4
    # Small print on a small screen: a figure may be scrolled, and is not shrunk to nothing.
    assert min(widths) > 300


def test_a_button_turns_the_light_off(page):
    paper = "getComputedStyle(document.body).backgroundColor"
    by_day = page.evaluate(paper)
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate(paper) != by_day
    page.get_by_role("button", name="Light").click()
    assert page.evaluate(paper) == by_day
