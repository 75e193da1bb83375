"""A learner: rounds, the gate, versions that are taken back, and what survives a kill."""

import shutil
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from dualrank.errors import DataError, SettingsError, StorageError
from dualrank.online.learner import learner as module
from dualrank.online.learner.following import catch_up
from dualrank.online.learner.gate import Gate
from dualrank.online.learner.learner import Learner, LearnerSettings
from dualrank.online.learner.learner_state import LearnerState
from dualrank.online.learner.round_clicks import HeldOutQueries, pooled, read_round
from dualrank.online.learner_record import LearnerRecord
from dualrank.online.versions import Versions

from .small_site import (
    TRUTH,
    Events,
    feature_rows,
    first_model,
    make_data,
    sessions,
)

SETTINGS = LearnerSettings(held_out=0.25, steps=60)
DATA = make_data()


@pytest.fixture(scope="module")
def given():
    return first_model(DATA)


@pytest.fixture(scope="module")
def inverted():
    return first_model(DATA, seed=5, invert=True)


class Site:
    """A folder of versions and one of events, under traffic."""

    def __init__(self, folder, model):
        self.versions = Versions.create(folder / "models", model)
        self.events = Events(folder / "events")
        self.rng = np.random.default_rng(1)

    def traffic(self, count=2_500, eta=1.0, **more):
        live = self.versions.load(self.versions.live.number)
        self.events.add(sessions(DATA, live.predict(DATA), count, self.rng, eta, **more))

    def learner(self, **changes):
        return Learner(self.versions, self.events, replace(SETTINGS, **changes), DATA)

    @property
    def alarms(self):
        return [(each.kind, each.said) for each in LearnerRecord.read(self.versions.folder).alarms]

    @property
    def rounds(self):
        return LearnerRecord.read(self.versions.folder).rounds


@pytest.fixture
def site(tmp_path, given):
    return Site(tmp_path, given)


def test_a_round_learns_the_curve_and_publishes_a_version(site):
    learner = site.learner()
    assert not learner.step()
    for _ in range(3):
        site.traffic()
        assert learner.step()
    assert site.versions.live.number > 1
    assert site.versions.live.sessions > 0
    last = site.rounds[-1]
    assert (last.sessions, last.version) == (7_500, site.versions.live.number)
    assert last.worth_low < last.worth < last.worth_high
    assert 0 <= last.delay < 60
    assert np.abs(np.array(last.examination) / TRUTH - 1).max() < 0.35
    assert np.mean((np.array(last.low) <= TRUTH) & (np.array(last.high) >= TRUTH)) > 0.7
    assert [kind for kind, _ in site.alarms] == []


def test_held_out_queries_are_not_learned_from(site, given, monkeypatch):
    seen = []

    def update(self, log, dataset, **options):
        seen.append(set(dataset.query_ids[log.lists.queries].tolist()))
        return self

    monkeypatch.setattr(type(given), "update", update)
    learner = site.learner()
    for _ in range(2):
        site.traffic(800)
        learner.step()
    held = HeldOutQueries(0.25)(DATA.query_ids)
    assert len(seen) == 2
    assert all(not each & set(DATA.query_ids[held].tolist()) for each in seen)


def test_several_segments_are_one_round_up_to_its_size(site):
    for _ in range(4):
        site.traffic(300)
    learner = site.learner(round_sessions=400)
    learner.step()
    assert learner.state.learned == 3
    catch_up(learner)
    assert learner.state.learned == 4
    assert learner.state.sessions == 1_200
    assert not learner.has_more


def held_out_gate(site):
    site.traffic(6_000)
    found = read_round(site.events, [1], DATA)
    held = found.part(HeldOutQueries(0.25), held=True)
    log, dataset = pooled([(held, DATA)])
    return Gate(log, dataset, site.versions.load(1).propensity)


def test_the_gate_finds_inverted_scores_worse_and_the_same_ones_not(site, given):
    gate = held_out_gate(site)
    scores = given.predict(gate.dataset)
    judged = gate.judge(-scores, scores)
    assert judged.is_worse()
    assert judged.predicts < -2
    same = gate.judge(scores, scores)
    assert not same.is_worse()
    assert not same.is_better()
    assert gate.judge(scores, -scores).is_better()
    assert "against version 1, on " in judged.said("version 1")


def test_with_too_few_held_out_queries_nothing_goes_live(site, given):
    learner = site.learner(held_out=0.01)
    site.traffic(1_000)
    learner.step()
    assert site.versions.live.number == 1
    refused = site.versions.note().versions[2]
    assert refused.state == "refused"
    assert "are held out; 10 are needed" in refused.why or "no clicks are held out" in refused.why


def test_a_model_of_inverted_clicks_is_refused_and_never_live(site, inverted):
    learner = site.learner()
    for _ in range(2):
        site.traffic(4_000)
        learner.step()
    live = site.versions.live.number
    offered = learner.offer(inverted, "trained elsewhere")
    assert offered.state == "refused"
    assert offered.why.startswith("worse against version")
    assert site.versions.live.number == live
    assert offered.since is None


def test_a_version_forced_live_is_taken_back(site, inverted):
    learner = site.learner()
    for _ in range(2):
        site.traffic(4_000)
        learner.step()
    good = site.versions.live.number
    bad = learner.offer(inverted, "trained elsewhere").number
    site.versions.roll_back("I know better", to=bad)
    assert site.versions.live.number == bad
    learner.step()
    assert site.versions.live.number == good
    note = site.versions.note()
    assert note.versions[bad].state == "taken back"
    assert [kind for kind, _ in site.alarms] == ["learner", "version", "version"]
    assert learner.state.model == good


def test_after_a_rollback_learning_goes_on_from_what_was_put_live(site):
    learner = site.learner()
    for _ in range(3):
        site.traffic(4_000)
        learner.step()
    before = site.versions.live.number
    site.versions.roll_back("by hand")
    there = site.versions.live.number
    assert there != before
    site.traffic(4_000)
    learner.step()
    newest = site.versions.note().versions[max(site.versions.note().versions)]
    assert newest.parent == there
    assert ("version", f"version {there} was put live; learning goes on from it") in site.alarms


@pytest.mark.parametrize("moment", ["_learned", "_compare"])
def test_a_rollback_during_a_round_is_not_undone_by_its_candidate(site, monkeypatch, moment):
    learner = site.learner()
    site.traffic(3_000)
    learner.step()
    site.versions.go_live(2, "by hand")
    site.traffic(3_000)
    learner.step()
    live = site.versions.live.number
    original = getattr(learner, moment)

    def and_a_rollback(*given):
        found = original(*given)
        site.versions.roll_back("it is broken", to=1)
        return ("not worse", "not worse") if moment == "_compare" else found

    monkeypatch.setattr(learner, moment, and_a_rollback)
    site.traffic(3_000)
    learner.step()
    note = site.versions.note()
    assert (note.live, note.versions[live].state) == (1, "taken back")
    newest = note.versions[max(note.versions)]
    assert (newest.state, newest.why) == (
        "refused",
        "version 1 was put live before it was decided about",
    )
    assert (learner.state.model, learner.state.live, learner.state.decided) == (1, 1, True)


def test_a_rollback_right_after_a_version_went_live_is_followed(site, monkeypatch):
    learner = site.learner()
    monkeypatch.setattr(learner, "_compare", lambda *_: ("not worse", "not worse"))
    monkeypatch.setattr(
        learner, "_move_anchor", lambda *_: site.versions.roll_back("it is broken", to=1)
    )
    site.traffic(1_000)
    learner.step()
    assert site.versions.live.number == 1
    learner.step()
    assert (learner.state.model, learner.state.live) == (1, 1)


def test_users_who_change_raise_an_alarm_and_the_curve_follows(site):
    learner = site.learner()
    for _ in range(2):
        site.traffic(4_000, eta=0.5)
        learner.step()
    assert site.alarms == []
    for _ in range(3):
        site.traffic(4_000, eta=1.5)
        learner.step()
    kinds = [kind for kind, _ in site.alarms]
    assert "curve" in kinds
    assert kinds.count("curve") <= 2
    believed = np.array(site.rounds[-1].examination)
    assert np.abs(np.log(believed / TRUTH**1.5)).max() < 0.5
    # The round that alarms may mix two habits: the one after it begins anew.
    assert learner.state.changed_at == 4


def test_a_client_that_clicks_everything_does_not_move_the_ranker(site):
    twin = site.learner()
    site.traffic(3_000)
    twin.step()
    clean = site.versions.load(twin.state.model).propensity.examination
    other = Site(site.versions.folder.parent / "poisoned", site.versions.load(1))
    table = sessions(DATA, other.versions.load(1).predict(DATA), 3_000, np.random.default_rng(1),
                     client=[f"u{i % 50}" for i in range(3_000)])  # fmt: skip
    bots = sessions(DATA, DATA.features[:, 3], 1_500, np.random.default_rng(2), eta=0.0,
                    client=["bot"] * 1_500)  # fmt: skip
    place = bots.column_names.index("clicked")
    bots = bots.set_column(place, "clicked", [[True] * bots.num_rows])
    other.events.add(pa.concat_tables([table, bots]))
    learner = other.learner()
    learner.step()
    assert any("client 'bot' clicked every result" in said for _, said in other.alarms)
    poisoned = other.versions.load(learner.state.model).propensity.examination
    assert np.abs(np.log(poisoned / clean)).max() < 0.3


def test_features_of_requests_are_learned_from(site):
    live = site.versions.load(1)
    site.events.add(sessions(DATA, live.predict(DATA), 3_000, site.rng), feature_rows(DATA))
    learner = Learner(site.versions, site.events, SETTINGS)
    assert learner.step()
    assert learner.state.model == 2


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


def test_a_learner_that_starts_again_compares_by_the_same_curve(site, monkeypatch):
    used = []
    original = module.RememberedRounds.gate

    def gate(self, held_out, curve, changed_at):
        used.append(curve.examination.tolist())
        return original(self, held_out, curve, changed_at)

    monkeypatch.setattr(module.RememberedRounds, "gate", gate)
    monkeypatch.setattr(module.Learner, "_compare", lambda *_: ("worse", "worse"))
    learner = site.learner()
    site.traffic(3_000)
    learner.step()
    learner._gate()
    site.learner()._gate()
    # None of them is that of the live version, which has not seen these clicks.
    assert used[-3] == used[-2] == used[-1] == list(learner.state.curve)
    assert used[-1] != site.versions.load(1).propensity.examination.tolist()


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


def test_a_candidate_that_cannot_score_what_is_held_out_is_refused(site, monkeypatch):
    learner = site.learner()

    def judge(*_):
        raise DataError("the scores of 1 document are not finite")

    monkeypatch.setattr(learner, "_judge", judge)
    for _ in range(2):
        site.traffic(500)
        assert learner.step()
    assert site.versions.live.number == 1
    why = "it cannot be compared with version 1: the scores of 1 document are not finite"
    assert site.versions.note().versions[2].why == why


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


@pytest.mark.parametrize(("verdict", "goes_on_from"), [("worse", 2), ("surely worse", 1)])
def test_learning_goes_on_from_a_refused_candidate_unless_it_is_surely_worse(
    site, monkeypatch, verdict, goes_on_from
):
    monkeypatch.setattr(module.Learner, "_compare", lambda *_: (verdict, "worse, they say"))
    learner = site.learner()
    site.traffic(500)
    learner.step()
    assert site.versions.live.number == 1
    assert learner.state.model == goes_on_from
    assert ("learner", "version 2 was refused: worse, they say") in site.alarms or goes_on_from == 2


def test_a_version_from_before_a_change_is_told_of_it_when_learning_goes_on_from_it(
    site, given, monkeypatch
):
    told = []

    def update(self, log, dataset, *, changed, **options):
        told.append(changed)
        return self

    monkeypatch.setattr(type(given), "update", update)
    learner = site.learner()
    for eta in (0.5, 0.5, 1.8, 1.8, 1.8):
        site.traffic(3_000, eta)
        learner.step()
    assert told == [False, False, True, True, False]
    site.versions.roll_back("by hand", to=1)
    site.traffic(3_000, 1.8)
    learner.step()
    assert told[-1] is True
    assert [kind for kind, _ in site.alarms].count("curve") == 1


def test_many_small_steps_down_are_noticed_by_the_anchor(site, given):
    gate = held_out_gate(site)
    start = given.predict(gate.dataset)
    rng = np.random.default_rng(0)
    walk = np.cumsum(0.5 * start.std() * rng.normal(size=(25, len(start))), axis=0) + start
    noticed = [gate.judge(after, before).is_worse() for before, after in pairwise(walk)]
    assert sum(noticed) <= 4
    assert gate.judge(walk[-1], start).is_worse()


class Said:
    """A gate's answer."""

    can_tell = True

    def __init__(self, better):
        self.better = better

    def is_worse(self, errors=0.0):
        return False

    def is_better(self):
        return self.better

    def said(self, other):
        return f"against {other}"


def test_the_first_version_is_the_anchor_until_one_is_clearly_better(site, monkeypatch):
    assert site.versions.note().anchor == 1
    learner = site.learner()
    for better in (False, True):
        monkeypatch.setattr(learner, "_judge", lambda *_, better=better: Said(better))
        site.traffic(500)
        learner.step()
        assert site.versions.note().anchor == (site.versions.live.number if better else 1)
    assert site.versions.live.number == 3


def test_nothing_is_held_against_an_anchor_that_was_taken_back(site, monkeypatch):
    learner = site.learner()
    compared = []

    def judge(_, number, other):
        compared.append((number, other))
        return Said(better=False)

    monkeypatch.setattr(learner, "_judge", judge)
    for _ in range(2):
        site.traffic(500)
        learner.step()
    site.versions.hold_against(3)
    site.versions.roll_back("it is broken")
    learner.step()
    compared.clear()
    site.traffic(500)
    learner.step()
    assert (4, 2) in compared
    assert not [other for _, other in compared if other == 3]
    assert (site.versions.live.number, site.versions.note().anchor) == (4, 4)


def test_settings_are_checked():
    with pytest.raises(SettingsError, match="held_out is a share between 0 and 1, not 1"):
        LearnerSettings(held_out=1)
    with pytest.raises(SettingsError, match="half_life is a number of sessions, not 0"):
        LearnerSettings(half_life=0)
