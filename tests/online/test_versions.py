"""Versions of a model: which is live, what is kept, and how one goes back."""

import json
from pathlib import Path

import numpy as np
import pytest

import dualrank as dr
from dualrank.data.scaling import Scaler
from dualrank.errors import CheckpointError, SettingsError
from dualrank.learning.model import Model
from dualrank.online import versions as module
from dualrank.online.versions import Versions
from dualrank.rankers.network import DNN

from ..forks import start_fork


def model(seed=0):
    features = np.random.default_rng(seed).normal(size=(10, 3)).astype(np.float32)
    return Model(DNN(()).build(3, seed), Scaler.fit(features), training={"seed": seed})


@pytest.fixture
def versions(tmp_path):
    return Versions.create(tmp_path / "models", model())


def test_the_first_version_is_live_with_its_reason(versions):
    assert versions.live.number == 1
    assert versions.live.why == "the model given at start"
    assert versions.load(1).training["seed"] == 0


def test_a_candidate_is_beside_the_live_version_until_it_goes_live(versions):
    made = versions.add(model(1), "learned", sessions=7)
    assert (made.number, made.state, made.parent, made.sessions) == (2, "candidate", 1, 7)
    assert versions.live.number == 1
    versions.go_live(2, "not worse")
    note = versions.note()
    assert (note.live, note.versions[1].state, note.versions[2].state) == (2, "replaced", "live")
    assert [each.what for each in note.happened] == ["live", "candidate", "replaced", "live"]
    assert versions.load(2).training["seed"] == 1


def test_what_is_taken_back_is_followed_by_the_one_before(versions):
    for number in (2, 3):
        versions.add(model(number), "learned")
        versions.go_live(number, "not worse")
    assert versions.take_back(3, "worse").number == 2
    assert versions.note().versions[3].state == "taken back"
    assert versions.take_back(2, "worse, too").number == 1
    with pytest.raises(SettingsError, match="no version was live before 1"):
        versions.take_back(1, "worse")
    assert versions.live.number == 1


def test_a_version_that_is_live_no_longer_is_not_taken_back(versions):
    versions.add(model(1), "learned")
    versions.go_live(2, "not worse")
    versions.take_back(2, "worse")
    before = versions.note()
    assert versions.take_back(2, "worse, said somebody late").number == 1
    assert versions.note() == before


def test_what_is_live_cannot_be_refused(versions):
    versions.add(model(1), "learned")
    versions.go_live(2, "not worse")
    assert versions.refuse(2, "too late").state == "live"
    assert versions.refuse(versions.add(model(2), "learned").number, "worse").state == "refused"


def test_rolling_back_goes_to_the_one_before_or_the_one_named(versions):
    for number in (2, 3):
        versions.add(model(number), "learned")
        versions.go_live(number, "not worse")
    assert versions.roll_back("prices are wrong").number == 2
    # A newer one takes the place of the live one, which can be gone back to.
    assert versions.roll_back("they are right", to=3).number == 3
    assert versions.note().versions[2].state == "replaced"
    assert versions.roll_back("no, they are not", to=1).number == 1
    assert versions.note().versions[3].state == "taken back"
    with pytest.raises(SettingsError, match="version 1 is the one that is live"):
        versions.roll_back("again", to=1)
    with pytest.raises(SettingsError, match="no model of version 9; there are 1, 2, 3"):
        versions.roll_back("again", to=9)


def test_the_one_before_is_never_one_that_came_after(versions):
    for number in range(2, 10):
        versions.add(model(number), "learned")
        versions.go_live(number, "not worse")
    assert versions.roll_back("all of them are wrong", to=2).number == 2
    assert versions.before(versions.note()) == 1
    assert versions.roll_back("this one is right", to=7).number == 7
    assert versions.roll_back("no").number == 2
    assert versions.roll_back("nor this").number == 1
    with pytest.raises(SettingsError, match="no version was live before 1"):
        versions.roll_back("nor this")


def test_a_rollback_that_another_version_overtakes_changes_nothing_and_says_so(versions):
    for number in (2, 3):
        versions.add(model(number), "learned")
        versions.go_live(number, "not worse")
    before = versions.note()
    with pytest.raises(SettingsError, match="version 3 went live in the place of 2 meanwhile"):
        versions.roll_back("prices are wrong", over=2)
    assert versions.note() == before
    assert versions.roll_back("prices are wrong", over=3).number == 2


def test_a_candidate_goes_live_only_over_what_it_was_compared_with(versions):
    for number in (2, 3):
        versions.add(model(number), "learned")
    versions.go_live(2, "not worse", over=1)
    assert versions.go_live(3, "not worse", over=1).state == "candidate"
    assert versions.live.number == 2
    assert versions.go_live(3, "not worse", over=2).state == "live"


def test_old_models_are_removed_and_the_anchor_and_what_can_follow_are_kept(versions, monkeypatch):
    monkeypatch.setattr(module, "KEPT", 2)
    for number in range(2, 9):
        versions.add(model(number), "learned")
        versions.go_live(number, "not worse")
        if number == 3:
            versions.hold_against(3)
    there = [number for number in range(1, 9) if versions.has(number)]
    assert there == [3, 6, 7, 8]
    assert versions.note().anchor == 3
    assert versions.take_back(8, "worse").number == 7
    assert sorted(versions.note().versions) == list(range(1, 9))


def test_the_note_does_not_grow_for_ever(versions, monkeypatch):
    monkeypatch.setattr(module, "MOST_NOTED", 3)
    monkeypatch.setattr(module, "MOST_HAPPENINGS", 4)
    for number in range(2, 8):
        versions.refuse(versions.add(model(number), "learned").number, "worse")
    note = versions.note()
    assert sorted(note.versions) == [1, 5, 6, 7]
    assert len(note.happened) == 4
    assert versions.add(model(9), "learned").number == 8


def test_a_folder_of_events_has_its_versions_below(tmp_path):
    Versions.create(tmp_path / "events" / "_versions", model())
    assert Versions.find(tmp_path / "events").live.number == 1
    assert Versions.find(tmp_path / "events" / "_versions").live.number == 1
    with pytest.raises(SettingsError, match="there are versions already"):
        Versions.create(tmp_path / "events" / "_versions", model())


def test_what_is_no_folder_of_versions_is_said(tmp_path):
    model().save(tmp_path / "model")
    with pytest.raises(CheckpointError, match=r"no folder of versions.*it is a model"):
        Versions(tmp_path / "model")
    with pytest.raises(CheckpointError, match=r"no versions.json in it$"):
        Versions(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 9}, "versions of format 9; this version reads 1"),
        ({"live": 7}, "it names a version that it does not have"),
        ({"anchor": "x"}, "it names a version that it does not have"),
        ({"versions": [{"number": 1}]}, "damaged"),
        ({"versions": None}, "damaged"),
        ({"happened": [{"time": 0, "version": 1, "what": "lost", "why": ""}]}, "is 'lost'"),
    ],
)
def test_a_damaged_note_is_one_sentence(versions, change, said):
    path = versions.folder / module.NOTE
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(CheckpointError, match=said):
        versions.note()


ADD_THREE = """
import sys
from dualrank.online.versions import Versions
versions = Versions(sys.argv[1])
for _ in range(3):
    versions.add(versions.load(1), "learned")
"""


def test_two_processes_write_the_note_one_after_the_other(versions, tmp_path):
    files = {"output": tmp_path / "output", "errors": tmp_path / "errors"}
    forks = [start_fork(ADD_THREE, versions.folder, **files) for _ in range(2)]
    for fork in forks:
        fork.join()
    assert [fork.exitcode for fork in forks] == [0, 0], files["errors"].read_text()
    assert sorted(versions.note().versions) == list(range(1, 8))
    assert all(isinstance(versions.load(n), dr.Model) for n in range(2, 8))
    assert not list(Path(versions.folder).glob("*.lock"))
