"""What a learner survives: kills, segments that are damaged or missing, full disks."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from dualrank.errors import DataError, StoppedError, StorageError
from dualrank.online.learner import learner as module
from dualrank.online.learner.following import catch_up, follow
from dualrank.online.learner.learner import Learner
from dualrank.online.learner.learner_state import LearnerState
from dualrank.online.learner_record import LearnerRecord
from dualrank.online.versions import Versions

from .learner_site import DATA, SETTINGS, Site
from .small_site import Events, feature_rows, sessions

pytestmark = pytest.mark.usefixtures("never_worse")


def killed_at(site, monkeypatch, where):
    """Learn until something is called, and die there."""

    class KilledError(BaseException):
        pass

    def die(*_, **__):
        raise KilledError

    learner = site.learner()
    with monkeypatch.context() as patch:
        for target, name in where:
            patch.setattr(target, name, die)
        with pytest.raises(KilledError):
            learner.step()


@pytest.mark.parametrize(
    "where",
    [
        [(module.Versions, "add")],
        [(module.LearnerState, "write")],
        [(module.Versions, "go_live"), (module.Versions, "refuse")],
        [(module.Learner, "_record")],
    ],
    ids=["before the version", "before the state", "before the decision", "before the record"],
)
def test_a_killed_round_is_done_again_and_nothing_twice(site, monkeypatch, where, tmp_path):
    site.traffic(3_000)
    shutil.copytree(tmp_path, tmp_path.parent / f"{tmp_path.name}-whole")
    whole = Site.__new__(Site)
    whole.versions = Versions(tmp_path.parent / f"{tmp_path.name}-whole" / "models")
    whole.events = Events(tmp_path.parent / f"{tmp_path.name}-whole" / "events")
    catch_up(whole.learner())
    killed_at(site, monkeypatch, where)
    again = site.learner()
    catch_up(again)
    expected = LearnerState.read(whole.versions.folder)
    assert (again.state.learned, again.state.sessions) == (1, 3_000)
    assert again.state.clicks == expected.clicks
    ours, theirs = (
        folder.load(state.model).predict(DATA)
        for folder, state in ((site.versions, again.state), (whole.versions, expected))
    )
    assert np.array_equal(ours, theirs)
    states = [each.state for each in site.versions.note().versions.values()]
    assert "candidate" not in states
    assert site.versions.live.state == "live"


def test_a_learner_that_starts_again_remembers_the_rounds(site):
    learner = site.learner()
    for _ in range(2):
        site.traffic(3_000, eta=0.5)
        learner.step()
    again = site.learner()
    assert again.state == learner.state
    one, two = (each._rounds.since(0) for each in (learner, again))
    assert np.array_equal(one.clicks, two.clicks)
    assert np.allclose(one.scores, two.scores, atol=1e-5)
    site.traffic(3_000, eta=1.5)
    again.step()
    assert "curve" in [kind for kind, _ in site.alarms]


def test_a_segment_that_cannot_be_read_is_waited_for_and_then_left_out(site, monkeypatch):
    monkeypatch.setattr(module, "MOST_TRIES", 3)
    for _ in range(2):
        site.traffic(500)
    site.events.clicks(1).write_bytes(b"torn")
    learner = site.learner()
    for _ in range(3):
        assert not learner.step()
    assert learner.state.learned == 1
    learner.step()
    assert learner.state.learned == 2
    said = [said for kind, said in site.alarms if kind == "learner"]
    assert said[0].endswith("it is waited for")
    assert said[1].endswith("learning goes on without it")


def damage_pages(path):
    """Leave the footer of a Parquet file as it is."""
    whole = bytearray(path.read_bytes())
    for place in range(40, min(2_000, len(whole) // 2)):
        whole[place] ^= 0x5A
    path.write_bytes(whole)


def test_segments_around_one_with_damaged_pages_are_learned_from(site, monkeypatch):
    monkeypatch.setattr(module, "MOST_TRIES", 2)
    for _ in range(4):
        site.traffic(300)
    damage_pages(site.events.clicks(3))
    learner = site.learner()
    done = [learner.step() for _ in range(5)]
    assert done == [True, True, False, False, True]
    assert (learner.state.learned, learner.state.sessions) == (4, 900)
    said = [said for kind, said in site.alarms if kind == "learner"]
    assert "segment 3 cannot be used" in said[0]
    assert said[0].endswith("it is waited for")
    assert said[1].endswith("learning goes on without it")


def test_a_round_that_cannot_be_scored_is_left_out_and_the_next_one_learned(
    site, given, monkeypatch
):
    monkeypatch.setattr(module, "MOST_TRIES", 2)
    predict = type(given).predict

    def overflowing(self, dataset):
        if (dataset.features == 0.125).any():
            raise DataError("the scores of 1 document are not finite")
        return predict(self, dataset)

    monkeypatch.setattr(type(given), "predict", overflowing)
    learner = Learner(site.versions, site.events, SETTINGS)
    live = given.predict(DATA)
    for value in (0.5, 0.125, 0.5):
        features = DATA.features.copy()
        features[::8, 0] = value
        site.events.add(sessions(DATA, live, 1_000, site.rng), feature_rows(DATA, features))
        for _ in range(2):
            learner.step()
    assert (learner.state.learned, learner.state.sessions) == (3, 2_000)
    again = Learner(site.versions, site.events, SETTINGS)
    assert not again.step()


def test_learners_that_die_again_and_again_raise_an_alarm(site, monkeypatch):
    site.traffic(300)
    for _ in range(4):
        learner = site.learner()
        with monkeypatch.context() as patch:
            patch.setattr(learner, "_read", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                learner.step()
    assert [kind for kind, _ in site.alarms] == ["learner"]
    assert "was started 3 times" in site.alarms[0][1]
    site.learner().step()
    assert LearnerState.read(site.versions.folder).starts == 0


def test_a_segment_that_is_missing_is_not_skipped_at_once(site):
    site.traffic(500)
    learner = site.learner()
    learner.step()
    for _ in range(2):
        site.traffic(500)
    hidden = site.events.clicks(2).rename(site.events.clicks(2).with_suffix(".later"))
    assert not learner.step()
    assert learner.state.learned == 1
    hidden.rename(site.events.clicks(2))
    learner.step()
    assert learner.state.learned == 3


def test_catching_up_ends_in_a_sentence_where_a_segment_is_missing_or_damaged(site):
    for _ in range(4):
        site.traffic(300)
    hidden = site.events.clicks(2).rename(site.events.clicks(2).with_suffix(".later"))
    learner = site.learner()
    with pytest.raises(DataError, match="segment 2 is missing; learned up to segment 1 of 4; put"):
        catch_up(learner, every=0.01)
    assert learner.has_more
    assert learner.state.learned == 1
    hidden.rename(site.events.clicks(2))
    damage_pages(site.events.clicks(3))
    learner = site.learner()
    with pytest.raises(DataError, match=r"segment 3 cannot be used.*learned up to segment 2 of 4"):
        catch_up(learner, every=0.01)
    # Looking at what is left changes nothing: not what is learned, and no alarm.
    before = site.alarms
    assert all(learner.has_more for _ in range(2 * module.MOST_TRIES))
    assert (learner.state.learned, site.alarms) == (2, before)


def test_catching_up_ends_where_nothing_can_be_written(site, monkeypatch):
    site.traffic(300)
    learner = site.learner()

    def full(*_):
        raise StorageError("no space left")

    monkeypatch.setattr(LearnerState, "write", full)
    with pytest.raises(StorageError, match="no space left"):
        catch_up(learner)


def test_events_that_do_not_come_in_for_a_minute_are_an_alarm_once(site, monkeypatch):
    """Redis is gone for a moment, then for long, then for long once more."""
    clock = [0.0]
    problems = iter(["gone", None, *["gone since noon"] * 100, None, *["gone again"] * 100])

    def problem():
        clock[0] += 1.0
        try:
            return next(problems)
        except StopIteration:
            raise StoppedError("asked to stop") from None

    time = SimpleNamespace(monotonic=lambda: clock[0], sleep=lambda seconds: None)
    monkeypatch.setattr("dualrank.online.learner.following.time", time)
    follow(site.learner(), every=0.0, problem=problem)
    alarms = LearnerRecord.read(site.versions.folder).alarms
    assert [(each.kind, each.said) for each in alarms] == [
        ("events", "no events have come in for 1 min 0 s: gone since noon"),
        ("events", "no events have come in for 1 min 0 s: gone again"),
    ]
