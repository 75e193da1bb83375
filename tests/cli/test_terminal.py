"""Bars tell how fast it goes and how long it takes, and only people see them."""

import re
import time
from functools import partial

import pytest

from dualrank.cli.progress_lines import ProgressLines
from dualrank.cli.terminal import one_bar, task_bars
from dualrank.errors import DataError
from dualrank.progress import current_bars, no_bar, show_progress, shows_progress

from ..waiting import wait_until


def run_bar():
    with one_bar("counting") as report:
        for done in range(5):
            report(done, 5)
            time.sleep(0.01)


def test_a_bar_shows_name_count_rate_and_time_left(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    run_bar()
    shown = capsys.readouterr().err
    for part in ("counting", "4/5", "/s", "left"):
        assert part in shown


def test_in_a_file_there_is_no_bar_and_no_empty_line(monkeypatch, capsys):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    run_bar()
    with pytest.raises(DataError), one_bar("reading"):
        raise DataError("gone")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_of_work_without_end_a_file_gets_no_lines(monkeypatch, capsys, terminal):
    monkeypatch.setattr("dualrank.cli.progress_lines.FIRST", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    with one_bar("following", endless=True) as report:
        report(1, 5)
        time.sleep(0.15)
        assert (current_bars() is no_bar) != terminal
    assert ("following" in capsys.readouterr().err) == terminal


@pytest.mark.parametrize(("rank", "speaks"), [("0", True), ("1", False)])
def test_of_several_workers_the_first_one_speaks(monkeypatch, capsys, rank, speaks):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("RANK", rank)
    run_bar()
    assert ("counting" in capsys.readouterr().err) == speaks


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_in_a_file_a_line_comes_now_and_then():
    clock, said = Clock(), []
    lines = ProgressLines("reading [x]\x1b.parquet", said.append, clock)
    for second in range(0, 100, 5):
        clock.now = 100.0 + second
        lines.report(second, 100)
    lines.end()
    name = "reading [x]\\x1b.parquet"
    assert said == [
        f"{name}: 5% (5 of 100), 1.0/s, 5.0 s so far, about 1 min 35 s left",
        f"{name}: 35% (35 of 100), 1.0/s, 35 s so far, about 1 min 5 s left",
        f"{name}: 65% (65 of 100), 1.0/s, 1 min 5 s so far, about 35 s left",
        f"{name}: 95% (95 of 100), 1.0/s, 1 min 35 s so far, about 5.0 s left",
        f"{name}: done after 1 min 35 s",
    ]


def test_in_a_file_nothing_is_said_of_quick_work():
    clock, said = Clock(), []
    lines = ProgressLines("reading", said.append, clock)
    for second in range(5):
        clock.now = 100.0 + second
        lines.report(second, 4)
    lines.end()
    assert said == []


def test_in_a_file_work_without_a_count_tells_of_the_work_inside():
    clock, said = Clock(), []
    lines = ProgressLines("fitting", said.append, clock)
    clock.now += 2
    with lines.within("EM") as heard:
        heard(0, 100)
        clock.now += 4
        heard(40, 100)
        with lines.within("sorting"):
            clock.now += 30
            lines.speak()
    assert said == [
        "fitting, EM: 40% (40 of 100), 10/s, 4.0 s so far, about 6.0 s left",
        "fitting: 36 s so far",
    ]


def test_work_that_reports_nothing_is_heard_of_too(monkeypatch, capsys):
    for name in ("FIRST", "EVERY"):
        monkeypatch.setattr(f"dualrank.cli.progress_lines.{name}", 0.05)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    with one_bar("fitting ubm"):
        line = wait_until(lambda: capsys.readouterr().err).splitlines()[0]
    assert re.fullmatch(r"dualrank: fitting ubm: [\d.]+ s so far", line)


def test_many_tasks_are_added_up(monkeypatch, capsys):
    for name in ("FIRST", "EVERY"):
        monkeypatch.setattr(f"dualrank.cli.progress_lines.{name}", 0.0)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    with task_bars(["a", "b", "c", "d"]) as (report, finished):
        finished()
        report(1, 5, 10)
    assert "4 tasks: 38% (1 of 4)" in capsys.readouterr().err


@pytest.mark.parametrize("terminal", [True, False])
def test_later_workers_are_silent(monkeypatch, capsys, terminal):
    for name in ("FIRST", "EVERY"):
        monkeypatch.setattr(f"dualrank.cli.progress_lines.{name}", 0.0)
    monkeypatch.setenv("RANK", "1")
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    run_bar()
    with task_bars(["a"]) as (report, _):
        report(0, 1, 2)
    assert capsys.readouterr().err == ""


@shows_progress("looking deeper")
def look_deeper(wait, progress=None):
    progress(1, 5)
    wait()


@pytest.mark.parametrize(("patience", "seen"), [(0.0, True), (60.0, False)])
def test_long_work_that_no_command_names_shows_itself(monkeypatch, capsys, patience, seen):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("dualrank.cli.terminal.PATIENCE", patience)
    shown = []

    def is_shown():
        shown.append(capsys.readouterr().err)
        return "looking deeper" in "".join(shown)

    wait = partial(wait_until, is_shown) if seen else partial(time.sleep, 0.3)
    for bar in (one_bar("estimating"), show_progress(partial(one_bar, waits=True))):
        with bar:
            look_deeper(wait)
        assert is_shown() == seen
        shown.clear()


def test_the_bars_of_a_command_are_gone_when_it_has_ended(command, monkeypatch):
    assert command("--version")[0] == 0
    assert current_bars() is no_bar
