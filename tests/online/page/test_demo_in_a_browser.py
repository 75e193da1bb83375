"""A whole demo in a real browser: server, learner and users, as a person starts them."""

import json
import os
import re
import signal
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from ...forks import DUALRANK, end_forks, start_fork, wait_for_answer
from ...waiting import wait_until
from .conftest import Watched

PROGRAM = f"""
from dualrank.online.demo import demo, demo_start
demo.WAIT, demo.EVERY, demo_start.STEPS = 0.2, 2.0, 50
{DUALRANK}"""
"""`dualrank` with a demo that starts sooner and closes segments more often."""


def truth(page):
    return page.locator("#curve path.truth").get_attribute("d")


def learned(page):
    """The curve as the page tells it: the share of position 10."""
    said = page.locator("#curve figcaption").inner_text()
    return float(re.search(r"is examined ([\d.]+)%", said)[1])


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Where a demo is, and its token; gone at the end, with all that it started."""
    pytest.importorskip("uvicorn")
    folder = tmp_path_factory.mktemp("demo")
    files = {"output": folder / "output", "errors": folder / "errors"}
    words = ["serve", "--demo", "--port", "0", "--json", "--out", folder / "out"]
    started = start_fork(PROGRAM, *words, **files)
    yield wait_for_answer(started, **files)
    tasks = Path(f"/proc/{started.pid}/task").glob("*/children")
    children = [child for task in tasks for child in task.read_text().split()]
    os.kill(started.pid, signal.SIGINT)
    started.join()
    end_forks()
    assert started.exitcode == 0
    assert len(children) >= 2
    assert not any(os.path.exists(f"/proc/{child}") for child in children)


@pytest.fixture(scope="module")
def watched(demo, browser):
    """One page of the demo, that all tests look at."""
    watched = Watched(browser.new_page())
    watched.page.goto(demo["url"])
    watched.page.get_by_text("following").wait_for()
    yield watched
    watched.page.close()


def post(url, body, **headers):
    asked = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json", **headers}
    )
    try:
        with urllib.request.urlopen(asked) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_users_search_and_a_version_is_learned(watched):
    page = watched.page
    wait_until(lambda: page.locator("#made").inner_text() not in ("", "–", "0", "1"), pause=0.2)
    assert "a session" in page.locator("#clicks-about").inner_text()
    page.locator("#quality path.learned").wait_for()
    page.locator("#past path.learned").first.wait_for(state="attached")


def test_a_slider_changes_the_users_and_the_learned_curve_follows(watched):
    page = watched.page
    before, believed = truth(page), learned(page)
    slider = page.get_by_label("position bias η")
    slider.focus()
    page.keyboard.press("End")
    page.get_by_text("They changed their habits").wait_for()
    wait_until(lambda: truth(page) != before, pause=0.2)
    # (0.06 / 0.68)² of those who see the first result
    wait_until(lambda: "0.8%" in page.locator("#curve figcaption").inner_text(), pause=0.2)
    wait_until(lambda: learned(page) <= believed / 2, lambda: f"{learned(page)}%", pause=0.2)


def test_rollback_is_refused_with_another_token_and_done_with_the_right_one(watched, demo):
    page = watched.page
    page.get_by_role("button", name="Roll back").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Token").fill("another one that is long enough")
    put = dialog.get_by_role("button", name="Put it in front of users")
    put.click()
    dialog.get_by_text("another token than ours").wait_for()
    watched.complaints.clear()  # the browser tells of the refusal
    chosen = dialog.get_by_label("Go back to").input_value()
    dialog.get_by_label("Why").fill("<b>to see</b> what happens")
    dialog.get_by_label("Token").fill(demo["token"])
    put.click()
    dialog.wait_for(state="hidden")
    page.locator("li", has_text="<b>to see</b> what happens").first.wait_for()
    told = "\n".join(page.locator("#happened li, #earlier li").all_inner_texts())
    assert "<b>to see</b> what happens" in told
    assert f"Version {chosen}" in told


def test_nothing_came_from_another_host_and_nothing_was_complained_about(watched, demo):
    assert {f"http://{host}" for host in watched.hosts} == {demo["url"]}
    assert watched.complaints == []


def test_only_pages_of_the_demo_turn_its_knobs(demo):
    url = demo["url"] + "/demo"
    assert post(url, {"rate": 400})[0] == 200
    assert post(url, {"rate": 400}, Origin=demo["url"])[0] == 200
    for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
        status, said = post(url, {"rate": 400}, **headers)
        assert (status, said["error"]) == (403, "only a page of this service may ask for that")
    status, said = post(url, {"eta": 9})
    assert (status, said["error"]) == (422, "eta is 9; expected 0 to 2")
    status, said = post(demo["url"] + "/rollback", {"why": "without the token"})
    assert status == 401
