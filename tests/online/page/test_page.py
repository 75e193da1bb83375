"""The page in a real browser, in front of a stand-in for the service."""

import re

import pytest

from ...waiting import wait_until

expect = pytest.importorskip("playwright.sync_api").expect

MARKUP = '<img src=x onerror="document.title=1"><script>document.title=2</script>'


def lines(page, figure):
    return page.locator(f"#{figure} path.line, #{figure} path.steps").evaluate_all(
        "all => all.map(each => each.getAttribute('d'))"
    )


def text(page, place):
    return page.locator(place).inner_text()


def test_it_says_what_is_live_and_draws_everything_from_one_host_without_complaint(service, watch):
    watched = watch(service.address)
    page = watched.page
    page.get_by_role("heading", name="Version 10 is live").wait_for()
    assert "held-out clicks say so of 10" in text(page, "#why")
    assert text(page, "#sessions") == "75,312"
    assert text(page, "#clicks-about") == "0.82 a session"
    assert text(page, "#delay") == "5.5 s"
    for figure, several in {"curve": 3, "quality": 2, "past": 8, "worth": 1}.items():
        drawn = lines(page, figure)
        assert len(drawn) == several
        assert all(len(each) > 20 and "NaN" not in each for each in drawn), figure
    assert page.locator("#ribbon rect").count() == 9
    assert page.locator("li.refused b").all_text_contents() == ["Version 4"]
    assert watched.complaints == []
    assert {f"http://{host}/" for host in watched.hosts} == {service.address}


def test_it_follows_the_stream(service, watch):
    page = watch(service.address).page
    before = lines(page, "curve")
    latest = {**service.state["rounds"][-1], "examination": [1 / (i + 1) for i in range(10)]}
    service.tell(
        live={**service.state["live"], "number": 11, "why": "users like it"},
        rounds=[*service.state["rounds"], latest],
    )
    page.get_by_role("heading", name="Version 11 is live").wait_for()
    assert "users like it" in text(page, "#why")
    assert lines(page, "curve") != before
    assert "Position 10 is examined 10% as often as the first" in text(page, "#curve figcaption")


def test_it_says_when_it_is_cut_off_and_comes_back(service, watch):
    page = watch(service.address).page
    page.context.set_offline(True)
    service.hang_up()
    page.get_by_text("disconnected, trying again").wait_for()
    service.state["counts"] = {"impressions": 99, "events": 11}
    page.context.set_offline(False)
    page.get_by_text("following").wait_for()
    expect(page.locator("#sessions")).to_have_text("99")


def test_what_comes_from_data_is_shown_as_text(service, watch):
    state = service.state
    state["live"] = {**state["live"], "why": MARKUP}
    state["happened"][-1]["why"] = MARKUP
    state["alarms"].append({**state["alarms"][-1], "said": MARKUP, "kind": MARKUP})
    watched = watch(service.address)
    for place in ("#why", "#happened", "#alarms", "#past-alarms"):
        assert "<img src=x onerror=" in text(watched.page, place)
    assert watched.page.locator("img").count() == 0
    assert re.fullmatch(r"Version 10 · dualrank, live", watched.page.title())
    assert watched.complaints == []


def test_rollback_is_refused_without_the_token_and_done_with_it(service, watch):
    watched = watch(service.address)
    page = watched.page
    page.get_by_role("button", name="Roll back").click()
    dialog = page.get_by_role("dialog", name="Roll back")
    put = dialog.get_by_role("button", name="Put it in front of users")
    put.click()
    assert service.asked == []  # the browser asks for the token first
    dialog.get_by_label("Token").fill("a guess")
    put.click()
    page.get_by_role("alert").get_by_text("needs the token").wait_for()
    dialog.get_by_label("Token").fill("a secret")
    dialog.get_by_label("Why").fill("worse for shoes")
    dialog.get_by_label("Go back to").select_option("7")
    put.click()
    dialog.wait_for(state="hidden")
    asked = {"to": 7, "why": "worse for shoes"}
    assert service.asked[-1] == ("/rollback", asked, "Bearer a secret")
    kept = page.evaluate("[...Object.values(localStorage), ...Object.values(sessionStorage)]")
    assert kept == []
    assert "secret" not in page.url + page.evaluate("document.cookie")
    refused = "the server responded with a status of 401"
    assert [each for each in watched.complaints if refused not in each] == []


def test_rollback_names_versions_that_stood_and_not_the_others(service, watch):
    page = watch(service.address).page
    page.get_by_role("button", name="Roll back").click()
    offered = page.locator("#rollback option").evaluate_all("all => all.map(each => each.value)")
    assert offered == ["9", "8", "7", "6", "5", "3", "2", "1"]
    page.keyboard.press("Escape")
    for each in service.state["versions"]:
        each["state"] = "refused"
    service.tell(versions=service.state["versions"])
    page.locator("#back:disabled").wait_for()


def test_sliders_ask_for_other_habits_once_they_rest(service, watch):
    page = watch(service.address).page
    slider = page.get_by_label("position bias η")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    wait_until(lambda: service.asked)
    slider.evaluate(
        "(slider) => [0.9, 1.3].forEach((value) => {"
        "slider.value = value; slider.dispatchEvent(new Event('input')) })"
    )
    expect(page.locator("#knobs output").first).to_have_text("1.3")
    assert slider.get_attribute("aria-valuetext") == "1.3"
    wait_until(lambda: len(service.asked) > 1)
    assert service.asked == [("/demo", {"eta": 1.4}, None), ("/demo", {"eta": 1.3}, None)]


def test_a_slider_goes_where_users_are(service, watch):
    page = watch(service.address).page
    demo = service.state["demo"]
    service.tell(demo={**demo, "knobs": {**demo["knobs"], "rate": 100}})
    expect(page.locator("#knob-rate")).to_have_value("100")


def test_a_coming_change_is_announced_and_one_that_came_is_told(service, watch):
    demo = service.state["demo"]
    soon = service.state["rounds"][-1]["time"] + 60
    service.state["demo"] = {
        **demo,
        "truths": demo["truths"][:1],
        "knobs": {**demo["knobs"], "eta": 0.5},
        "next_change": {"time": soon, "eta": 1.5},
    }
    page = watch(service.address).page
    page.get_by_text("they will change their habits and look less far down").wait_for()
    service.tell(demo=demo)
    page.get_by_text("They changed their habits").wait_for()
    assert page.locator("#quality .labels").get_by_text("users change").count() == 1


def test_without_a_demo_there_are_no_simulated_users(service, watch):
    service.state["demo"] = None
    watched = watch(service.address)
    assert not watched.page.get_by_text("These users are simulated").is_visible()
    assert not watched.page.locator("#quality").is_visible()
    assert len(lines(watched.page, "past")) == 4
    assert watched.complaints == []


def test_a_service_that_has_just_started_has_a_page_too(service, watch):
    first = {**service.state["versions"][0], "state": "live", "why": "the model given at start"}
    empty = {"live": first, "versions": [first], "happened": [], "rounds": [], "alarms": []}
    service.state = {**empty, "counts": {"impressions": 0, "events": 0}, "demo": None}
    watched = watch(service.address)
    watched.page.get_by_role("heading", name="Version 1 is live").wait_for()
    assert "has not ended yet" in text(watched.page, "#curve figcaption")
    assert watched.page.get_by_role("button", name="Roll back").is_disabled()
    assert watched.complaints == []


def test_nothing_is_wider_than_the_screen(service, watch):
    page = watch(service.address).page
    edges = """[document.documentElement.scrollWidth,
        ...[...document.querySelectorAll("svg")].map(each => each.getBoundingClientRect().right)]"""
    for width in (1200, 800, 375, 320):
        page.set_viewport_size({"width": width, "height": 800})
        wait_until(
            lambda width=width: max(page.evaluate(edges)) <= width,
            lambda width=width: f"{page.evaluate(edges)} of {width}",
        )


def test_dark_is_dark(service, watch):
    page = watch(service.address).page
    paper = "getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(paper) == "rgb(20, 24, 29)"
    page.emulate_media(color_scheme="light")
    assert page.evaluate(paper) == "rgb(255, 255, 255)"


def test_who_cannot_see_is_told_the_same(service, watch):
    page = watch(service.address).page
    for figure in ("curve", "quality", "past", "worth", "ribbon"):
        assert len(page.locator(f"#{figure} svg").get_attribute("aria-label")) > 40
    assert page.locator("#alarms").get_attribute("aria-live") == "polite"
    assert "the curve moved" in text(page, "#alarms").lower()
    named = "all => all.every(each => each.labels.length === 1)"
    assert page.locator("input, select").evaluate_all(named)
    page.get_by_text("In numbers").click()
    page.locator("#curve tbody tr").nth(9).wait_for()
    assert "truth" in text(page, "#curve thead")


def test_an_alarm_is_read_out_once_and_can_be_put_away(service, watch):
    page = watch(service.address).page
    page.locator(".alarm").wait_for()
    page.get_by_role("button", name="Seen").click()
    service.tell(counts={"impressions": 80_000, "events": 62_000})
    expect(page.locator("#sessions")).to_have_text("80,000")
    assert page.locator(".alarm").count() == 0
    assert page.locator("#past-alarms li").count() == 1
