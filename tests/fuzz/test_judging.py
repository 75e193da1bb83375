"""The attack itself: what is a fault is called one, and an interrupted attack goes on."""

import os
import time

import pytest

from dualrank.errors import DataError

from .account import Account
from .attack import FAULTS, Verdict, judge
from .formats import FORMATS, Format
from .readings import NonsenseError
from .workers import Settings, read_all


def refusing(sentence):
    def read(folder):
        raise DataError(sentence.format(folder=folder))

    return read


def raising(error):
    def read(folder):
        raise error

    return read


@pytest.mark.parametrize(
    ("read", "outcome"),
    [
        (lambda folder: (folder / "file.txt").read_text(), "same"),
        (lambda folder: "another", "other"),
        (refusing("{folder}/file.txt: line 3 has no grade"), "refused"),
        (refusing("line 3 has no grade"), "sentence"),
        (refusing("{folder}/file.txt: damaged\nat line 3"), "sentence"),
        (refusing("{folder}/file.txt: " + "x" * 600), "sentence"),
        (raising(ValueError("3")), "traceback"),
        (raising(KeyboardInterrupt()), "traceback"),
        (raising(NonsenseError("a count below 1")), "nonsense"),
    ],
)
def test_a_reading_is_judged_by_what_it_gives_or_says(tmp_path, read, outcome):
    (tmp_path / "file.txt").write_text("text")
    assert judge(Format("own", ("*",), read), tmp_path, repr("text"), False).outcome == outcome


@pytest.mark.parametrize(("mended", "outcome"), [(False, "silent"), (True, "other")])
def test_damage_that_a_digest_lets_through_is_a_fault(tmp_path, mended, outcome):
    sealed = Format("own", ("*",), lambda folder: "another", seal=lambda folder: None)
    assert judge(sealed, tmp_path, repr("text"), mended).outcome == outcome


def eat(folder):
    return len(bytearray(1 << 40))


def abort(folder):
    os.abort()


def sleep(folder):
    time.sleep(600)


@pytest.mark.parametrize(
    ("work", "outcome", "seconds"),
    [(abort, "death", 60), (sleep, "hang", 0.1), (eat, "traceback", 60), (str, "other", 60)],
)
def test_a_process_that_dies_hangs_or_wants_all_memory_is_noticed_and_replaced(
    tmp_path, monkeypatch, work, outcome, seconds
):
    def read(folder):
        return "whole" if (folder / "file.bin").read_bytes() == b"whole" else work(folder)

    monkeypatch.setitem(FORMATS, "own", Format("own", ("*",), read))
    (tmp_path / "seeds" / "own").mkdir(parents=True)
    (tmp_path / "seeds" / "own" / "file.bin").write_bytes(b"whole")
    settings = Settings(tmp_path / "seeds", tmp_path / "scratch", 0, seconds)
    found = list(read_all(iter([("own", 0), ("own", 1)]), settings, 1))
    assert [verdict.outcome for _, _, verdict, _ in found] == [outcome, outcome]


def test_an_interrupted_attack_goes_on_unless_something_changed(tmp_path):
    (tmp_path / "file").mkdir()
    account = Account(tmp_path / "out")
    assert account.begin(seed=1)
    account.add("letor", 0, Verdict("refused"), tmp_path / "file")
    account.add("letor", 1, Verdict(FAULTS[0], "somewhere"), tmp_path / "file")
    with account.path.open("a") as file:
        file.write('{"format": "letor", "num')  # killed in the middle of a line
    again = Account(tmp_path / "out")
    assert not again.begin(seed=1)
    assert list(again.rows) == [("letor", 0), ("letor", 1)]
    assert again.faults == 1
    assert "| letor | 2 | 0 | 0 | 1 | 1 |" in again.table()
    assert (tmp_path / "out" / "faults" / "letor" / "1").is_dir()
    again.add("letor", 2, Verdict("same"), tmp_path / "file")
    assert len(Account(tmp_path / "out").rows) == 3
    assert again.begin(seed=2)
    assert not again.rows
