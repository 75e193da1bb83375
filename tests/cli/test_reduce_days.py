"""`dualrank reduce --append`: a folder of days, from the command line."""

import errno
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from dualrank.data.log.days import LogFolder
from dualrank.data.log.read_log import read_log

DAYS = [f"2026-11-0{day}" for day in (1, 2, 3)]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Logs of three days, the last of them in a folder as warehouses write it."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in DAYS:
        sessions = np.repeat(np.arange(30), 3)
        table = {
            "session_id": [f"{name}/{session}" for session in sessions],
            "query_id": [f"q{session % 4}" for session in sessions],
            "doc_id": [f"d{(row + row // 12) % 3}" for row in range(90)],
            "position": [1, 2, 3] * 30,
            "clicked": rng.integers(0, 2, 90),
            "device": ["phone" if session % 2 else "desk" for session in sessions],
        }
        pyarrow.csv.write_csv(pa.table(table), tmp_path / f"{name}.csv")
    (tmp_path / "day=2026-11-03").mkdir()
    os.replace(tmp_path / "2026-11-03.csv", tmp_path / "day=2026-11-03" / "part-0.csv")
    os.replace(tmp_path / "2026-11-02.csv", tmp_path / "yesterday.csv")
    return tmp_path


@pytest.fixture
def days(here, command):
    """The folder of all three."""
    for words in (["2026-11-01.csv"], ["yesterday.csv", "day=2026-11-02"], ["day=2026-11-03"]):
        code, _, err = command("reduce", "--append", "log/", *words)
        assert code == 0, err
    return LogFolder(here / "log")


def test_days_are_added_and_every_command_takes_the_folder(days, command, here):
    assert days.names == DAYS
    whole = read_log(["2026-11-01.csv", "yesterday.csv", "day=2026-11-03"], periods=0)
    added = read_log("log", periods=0)
    assert np.array_equal(added.counts, whole.counts)
    assert np.array_equal(added.lists.documents, whole.lists.documents)
    for words in (
        ("propensity", "log/", "--methods", "pbm"),
        ("diagnose", "log", "--out", "d"),
        ("judge", "log", "--out", "j.csv", "--by", "pbm"),
        ("reduce", "log/", "--out", "all.parquet", "--periods", 3),
        ("reduce", "log/2026-11-0[12].parquet", "--out", "some.parquet"),
    ):
        code, _, err = command(*words)
        assert code == 0, (words, err)
    assert read_log("all.parquet").columns["period"].names == tuple(DAYS)
    assert read_log("some.parquet").sessions == 60


def test_what_was_added_and_what_is_there_is_said(here, command):
    _, out, _ = command("reduce", "2026-11-01.csv", "--append", "log")
    assert "2026-11-01.csv: 90 rows, 30 sessions" in out
    assert "log/2026-11-01.parquet: 30 sessions, 12 lists" in out
    assert out.strip().endswith("log: 1 day from 2026-11-01 to 2026-11-01")
    words = ("yesterday.csv", "day=2026-11-02", "--append", "log", "--keep", 1, "--json")
    content = json.loads(command("reduce", *words)[1])
    assert content["log"] == "log"
    assert content["day"] == "2026-11-02"
    assert content["days"] == ["2026-11-02"]
    assert content["dropped"] == ["2026-11-01"]
    assert content["sessions"] == content["reading"]["kept"] == 30


def test_days_are_dropped_by_name_and_by_age(days, command):
    code, out, _ = command("reduce", "--append", "log", "--drop", "day=2026-11-02")
    assert code == 0
    assert "dropped: 2026-11-02" in out
    assert "log: 2 days from 2026-11-01 to 2026-11-03" in out
    assert read_log("log").sessions == 60
    content = json.loads(command("reduce", "--append", "log", "--keep", 1, "--json")[1])
    assert content == {
        "log": "log", "day": None, "days": ["2026-11-03"], "dropped": ["2026-11-01"]
    }  # fmt: skip
    assert command("reduce", "--append", "log", "--keep", 5)[0] == 0
    assert days.names == ["2026-11-03"]
    assert "log: 0 days" in command("reduce", "--append", "log", "--drop", "2026-11-03")[1]
    assert command("reduce", "2026-11-01.csv", "--append", "log")[0] == 0


def test_a_day_is_replaced_where_that_is_said(days, command):
    before = days.path("2026-11-02").read_bytes()
    words = ("reduce", "2026-11-01.csv", "day=2026-11-02", "--append", "log")
    code, _, err = command(*words)
    assert code == 2
    assert "log: the day 2026-11-02 is there already; give --force to replace it" in err
    assert days.path("2026-11-02").read_bytes() == before
    assert command(*words, "--force")[0] == 0
    assert days.path("2026-11-02").read_bytes() != before
    assert days.names == DAYS


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["2026-11-01.csv"], "give --out for a reduced log, or --append for a folder of days"),
        (["2026-11-01.csv", "--out", "r.parquet", "--append", "log"], "give --out for a reduced"),
        (["--append", "log"], "give the LOG that is to be reduced"),
        (["--out", "r.parquet"], "give the LOG that is to be reduced"),
        (["a.csv", "b.csv", "--out", "r.parquet"], "'b.csv' is one LOG too many; several files"),
        (["a.csv", "day=x", "--out", "r.parquet"], "days are those of a folder; give it as --app"),
        (["a.csv", "--keep", "3", "--out", "r.parquet"], "days are those of a folder"),
        (["a.csv", "--drop", "x", "--out", "r.parquet"], "days are those of a folder"),
        (["yesterday.csv", "--append", "log"], "yesterday.csv: this log is not called after a day"),
        (["yesterday.csv", "day=../x", "--append", "log"], "'day=../x' names no day; expected"),
        (["yesterday.csv", "day=", "--append", "log"], "'day=' names no day"),
        (["--append", "log", "--drop", "../2026-11-01"], "'../2026-11-01' names no day"),
        (["--append", "log", "--drop", "2026-12-01"], "log: there is no day 2026-12-01; it has 0"),
        (
            ["--append", "log", "day=2026-12-01"],
            "day=2026-12-01: no such log; the LOG of a day goes before",
        ),
        (
            ["yesterday.csv", "day=2026-11-02", "--append", "log", "--drop", "2026-11-02"],
            "there is no day 2026-11-02",
        ),
        (
            ["2026-11-01.csv", "--append", "log", "--periods", "3"],
            "--periods is not for --append: a folder of days is cut by its days",
        ),
    ],
)
def test_wrong_words_are_answered_in_one_sentence(here, command, words, sentence):
    code, out, err = command("reduce", *words)
    assert code == 2
    assert sentence in err
    assert len(err.splitlines()) == 1
    assert out == ""
    assert not (here / "log").exists(), "nothing is made for nothing"


def test_what_the_folder_has_is_said_where_a_day_cannot_be_dropped_or_added(days, command):
    _, _, err = command("reduce", "--append", "log", "--drop", "2026-12-01")
    assert "log: there is no day 2026-12-01; it has 3 days from 2026-11-01 to 2026-11-03" in err
    words = ("reduce", "yesterday.csv", "--append", "log", "day=2026-11-04")
    _, _, err = command(*words, "--max-clicks", 2)
    assert "this day has --max-clicks 2, and 2026-11-03 has no --max-clicks; days" in err
    _, _, err = command(*words, "--context", "device")
    assert "this day has the contexts 'device', and 2026-11-03 has no contexts" in err
    both = ("day=2026-11-03", "--force", "--drop", "2026-11-03")
    _, _, err = command("reduce", "yesterday.csv", "--append", "log", *both)
    assert "log: the day 2026-11-03 is both added and dropped" in err
    _, _, err = command("reduce", "log/2026-11-01.parquet", "--append", "log", "day=2026-11-04")
    assert "would write over log/2026-11-01.parquet, which is read" in err
    assert command("reduce", "log", "--out", "all.parquet")[0] == 0
    _, _, err = command("reduce", "all.parquet", "--append", "log", "day=2026-11-04")
    assert "all.parquet: reduced already; a day is reduced from its own rows" in err
    assert days.names == DAYS


def test_a_day_that_is_too_bad_is_accounted_for_and_not_added(days, command, here):
    rows = (here / "yesterday.csv").read_text().replace(",3,", ",7,")
    (here / "yesterday.csv").write_text(rows)
    words = ("reduce", "yesterday.csv", "--append", "log", "day=2026-11-04")
    code, out, err = command(*words)
    assert code == 2
    assert "gap in the positions" in out
    assert "30 of 30 sessions are bad" in err
    assert days.names == DAYS


def test_days_are_not_added_to_what_somebody_else_keeps(here, command):
    (here / "papers").mkdir()
    (here / "papers" / "thesis.tex").touch()
    code, _, err = command("reduce", "2026-11-01.csv", "--append", "papers")
    assert code == 2
    assert "this folder holds something that this command did not write" in err


def test_a_full_disk_leaves_the_folder_as_it_was(days, command, monkeypatch):
    before = {path.name: path.read_bytes() for path in days.folder.iterdir()}

    def full(number):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("dualrank.storage.os.fsync", full)
    code, _, err = command("reduce", "yesterday.csv", "--append", "log", "day=2026-11-04")
    assert code == 2
    assert err.strip() == "dualrank: log/2026-11-04.parquet: No space left on device"
    assert {path.name: path.read_bytes() for path in days.folder.iterdir()} == before


def test_a_damaged_day_is_named(days, command):
    days.path("2026-11-02").write_bytes(days.path("2026-11-02").read_bytes()[:-9])
    for words in (
        ("propensity", "log", "--methods", "pbm"),
        ("reduce", "yesterday.csv", "--append", "log", "day=2026-11-04"),
    ):
        code, _, err = command(*words)
        assert code == 2
        assert "log/2026-11-02.parquet: not a readable Parquet file" in err
    assert command("reduce", "--append", "log", "--drop", "2026-11-02")[0] == 0
    assert command("reduce", "yesterday.csv", "--append", "log", "day=2026-11-02")[0] == 0
