"""`dualrank learn`, `dualrank versions` and `dualrank rollback`, as a user types them."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from dualrank.online.learner.learner_state import LearnerState
from dualrank.online.versions import Versions

from ..online.small_site import Events, feature_rows, first_model, make_data, sessions

DATA = make_data()


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


def test_learn_once_does_not_skip_a_missing_segment_and_ends_with_2(command, folder):
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


def start(folder, *more):
    words = ["learn", folder / "models", "--events", folder / "events", "--held-out", 0.3, *more]
    command = [sys.executable, "-m", "dualrank", *map(str, words)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def wait_for(happened, seconds=60):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_learner_that_is_killed_goes_on_where_it_was_and_one_runs_at_a_time(folder):
    learner = start(folder)
    state = folder / "models" / "learner-state.json"
    wait_for(state.exists)
    other = start(folder, "--once")
    assert other.wait(60) == 2
    assert "is writing here" in other.stderr.read()
    os.kill(learner.pid, signal.SIGKILL)
    learner.wait()
    again = start(folder, "--once")
    assert again.wait(60) == 0, again.stderr.read()
    found = LearnerState.read(folder / "models")
    assert (found.learned, found.sessions, found.decided) == (2, 3_000, True)
    versions = Versions(folder / "models").note().versions.values()
    assert "candidate" not in [each.state for each in versions]


def test_a_learner_that_is_asked_to_stop_does(folder):
    learner = start(folder)
    wait_for((folder / "models" / "learner.json").exists)
    learner.send_signal(signal.SIGTERM)
    assert learner.wait(20) == 0, learner.stderr.read()
