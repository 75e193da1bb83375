"""`dualrank learn`, `dualrank versions` and `dualrank rollback`, as a user types them."""

import json

import numpy as np
import pytest

from dualrank.online.learner.following import catch_up
from dualrank.online.learner.learner_state import LearnerState
from dualrank.online.versions import Versions

from ..forks import DUALRANK, end_forks, start_fork
from ..online.small_site import Events, feature_rows, first_model, make_data, sessions
from ..waiting import wait_until

DATA = make_data()
PROGRAM = f"from dualrank.cli import progress_lines\nprogress_lines.FIRST = 0.0\n{DUALRANK}"
"""`dualrank` that prints progress at once, where it prints any."""


@pytest.fixture(scope="module")
def model():
    return first_model(DATA, steps=60)


@pytest.fixture
def folder(tmp_path, model):
    versions = Versions.create(tmp_path / "models", model)
    events = Events(tmp_path / "events")
    rng = np.random.default_rng(3)
    scores = versions.load(1).predict(DATA)
    for _ in range(2):
        events.add(sessions(DATA, scores, 1_500, rng), feature_rows(DATA))
    return tmp_path


def test_learn_once_publishes_and_says_so(command, folder):
    words = ("learn", folder / "models", "--events", folder / "events", "--once")
    code, out, _ = command(*words, "--held-out", 0.3, "--json")
    assert code == 0
    found = json.loads(out)
    assert (found["learned"], found["sessions"], found["decided"]) == (2, 3_000, True)
    code, out, _ = command(*words, "--held-out", 0.3)
    assert out.startswith("learned from 3,000 sessions up to segment 2; version ")


def test_learn_once_does_not_skip_a_missing_segment_and_ends_with_2(command, folder, monkeypatch):
    monkeypatch.setitem(catch_up.__kwdefaults__, "every", 0.01)
    words = ("learn", folder / "models", "--events", folder / "events", "--once")
    events = Events(folder / "events")
    events.clicks(2).rename(events.clicks(4))
    code, out, err = command(*words, "--held-out", 0.3)
    assert (code, out) == (2, "")
    assert "segment 2 is missing; learned up to segment 1 of 4; put it back or mend it" in err
    assert LearnerState.read(folder / "models").learned == 1


def test_versions_are_listed_and_rolled_back(command, folder, model):
    versions = Versions(folder / "models")
    versions.add(model, "learned from \x1b[31msegments")
    versions.go_live(2, "not worse")
    code, out, _ = command("versions", folder / "models")
    assert code == 0
    assert "worse" in out
    assert "\x1b[31m" not in out
    code, out, _ = command("rollback", folder / "models", "--why", "prices are missing")
    assert (code, out) == (0, "version 1 is live in the place of 2: prices are missing\n")
    code, out, _ = command("versions", folder / "models", "--json", "--last", 1)
    assert json.loads(out)["live"] == 1
    assert json.loads(out)["versions"][0]["state"] == "taken back"
    code, _, err = command("rollback", folder / "models")
    assert (code, err.count("\n")) == (2, 1)
    assert "no version was live before 1" in err
    code, _, err = command("rollback", folder / "models", "--to", 7)
    assert (code, "there is no model of version 7; there are 1, 2" in err) == (2, True)


def test_what_is_no_folder_of_versions_ends_in_one_sentence(command, tmp_path):
    for words in (("versions",), ("rollback",)):
        code, _, err = command(*words, tmp_path)
        assert (code, err.count("\n")) == (2, 1)
        assert "no folder of versions" in err


@pytest.fixture
def start(folder):
    """Start `dualrank learn` in a process of its own, which is killed at the end."""

    def start():
        words = ("learn", folder / "models", "--events", folder / "events", "--held-out", 0.3)
        files = {"output": folder / "output", "errors": folder / "errors"}
        return start_fork(PROGRAM, *words, **files)

    yield start
    end_forks()


def test_a_learner_that_is_killed_goes_on_where_it_was_until_asked_to_stop(command, folder, start):
    """And one runs at a time."""
    errors = folder / "errors"
    learner = start()
    wait_until((folder / "models" / "learner-state.json").exists, errors.read_text)
    code, _, err = command("learn", folder / "models", "--events", folder / "events", "--once")
    assert (code, f"process {learner.pid} is writing here" in err) == (2, True)
    learner.kill()
    learner.join()
    learner = start()

    def has_learned_all():
        state = LearnerState.read(folder / "models")
        return (state.learned, state.sessions, state.decided) == (2, 3_000, True)

    wait_until(has_learned_all, errors.read_text)
    versions = Versions(folder / "models").note().versions.values()
    assert "candidate" not in [each.state for each in versions]
    learner.terminate()
    learner.join()
    assert learner.exitcode == 0, errors.read_text()
    assert "segments learned" not in errors.read_text(), "work without an end shows no progress"
