"""Bars tell how fast it goes and how long it takes, and only people see them."""

import time

import pytest

from dualrank.cli.terminal import one_bar
from dualrank.errors import DataError


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


@pytest.mark.parametrize(("rank", "speaks"), [("0", True), ("1", False)])
def test_of_several_workers_the_first_one_speaks(monkeypatch, capsys, rank, speaks):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("RANK", rank)
    run_bar()
    assert ("counting" in capsys.readouterr().err) == speaks
