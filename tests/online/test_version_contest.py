"""Which version is live: the gate, rollbacks, the anchor, and what is taken back."""

from itertools import pairwise

import numpy as np
import pytest

from dualrank.errors import DataError
from dualrank.online.learner import learner as module
from dualrank.online.learner.gate import Gate
from dualrank.online.learner.learner import Learner
from dualrank.online.learner.round_clicks import HeldOutQueries, pooled, read_round
from dualrank.online.learner.version_contest import VersionContest

from .learner_site import DATA, Judgment


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


def test_a_model_of_inverted_clicks_is_refused_and_taken_back_if_forced_live(site, inverted):
    learner = site.learner()
    for _ in range(2):
        site.traffic(4_000)
        learner.step()
    good = site.versions.live.number
    offered = learner.offer(inverted, "trained elsewhere")
    assert offered.state == "refused"
    assert offered.why.startswith("worse against version")
    assert site.versions.live.number == good
    assert offered.since is None
    bad = offered.number
    site.versions.roll_back("I know better", to=bad)
    assert site.versions.live.number == bad
    learner.step()
    assert site.versions.live.number == good
    note = site.versions.note()
    assert note.versions[bad].state == "taken back"
    assert [kind for kind, _ in site.alarms] == ["learner", "version", "version"]
    assert learner.state.model == good


@pytest.mark.usefixtures("never_worse")
def test_after_a_rollback_learning_goes_on_from_what_was_put_live(site):
    learner = site.learner()
    for _ in range(2):
        site.traffic(1_000)
        learner.step()
    before = site.versions.live.number
    site.versions.roll_back("by hand")
    there = site.versions.live.number
    assert there != before
    site.traffic(1_000)
    learner.step()
    newest = site.versions.note().versions[max(site.versions.note().versions)]
    assert newest.parent == there
    assert ("version", f"version {there} was put live; learning goes on from it") in site.alarms


@pytest.mark.usefixtures("never_worse")
@pytest.mark.parametrize("moment", ["_learned", "standing"])
def test_a_rollback_during_a_round_is_not_undone_by_its_candidate(site, monkeypatch, moment):
    learner = site.learner()
    site.traffic(1_000)
    learner.step()
    live = site.versions.live.number
    owner = Learner if moment == "_learned" else VersionContest
    original = getattr(owner, moment)

    def and_a_rollback(*given):
        found = original(*given)
        site.versions.roll_back("it is broken", to=1)
        return ("not worse", "not worse") if moment == "standing" else found

    monkeypatch.setattr(owner, moment, and_a_rollback)
    site.traffic(1_000)
    learner.step()
    note = site.versions.note()
    assert (note.live, note.versions[live].state) == (1, "taken back")
    newest = note.versions[max(note.versions)]
    assert newest.state == "refused"
    assert newest.why == "version 1 was put live before it was decided about"
    assert (learner.state.model, learner.state.live, learner.state.decided) == (1, 1, True)


def test_a_rollback_right_after_a_version_went_live_is_followed(site, monkeypatch):
    learner = site.learner()
    monkeypatch.setattr(VersionContest, "standing", lambda *_: ("not worse", "not worse"))

    def roll_back(*_):
        site.versions.roll_back("it is broken", to=1)
        return False

    monkeypatch.setattr(VersionContest, "is_new_anchor", roll_back)
    site.traffic(1_000)
    learner.step()
    assert site.versions.live.number == 1
    learner.step()
    assert (learner.state.model, learner.state.live) == (1, 1)


def test_a_learner_that_starts_again_compares_by_the_same_curve(site, monkeypatch):
    used = []
    original = module.RememberedRounds.gate

    def gate(self, held_out, curve, changed_at):
        used.append(curve.examination.tolist())
        return original(self, held_out, curve, changed_at)

    monkeypatch.setattr(module.RememberedRounds, "gate", gate)
    monkeypatch.setattr(VersionContest, "standing", lambda *_: ("worse", "worse"))
    learner = site.learner()
    site.traffic(3_000)
    learner.step()
    learner._contest()
    site.learner()._contest()
    # None of them is that of the live version, which has not seen these clicks.
    assert used[-3] == used[-2] == used[-1] == list(learner.state.curve)
    assert used[-1] != site.versions.load(1).propensity.examination.tolist()


def test_a_candidate_that_cannot_score_what_is_held_out_is_refused(site, monkeypatch):
    learner = site.learner()

    def judge(*_):
        raise DataError("the scores of 1 document are not finite")

    monkeypatch.setattr(VersionContest, "_judge", judge)
    for _ in range(2):
        site.traffic(500)
        assert learner.step()
    assert site.versions.live.number == 1
    why = "it cannot be compared with version 1: the scores of 1 document are not finite"
    assert site.versions.note().versions[2].why == why


@pytest.mark.parametrize(("verdict", "goes_on_from"), [("worse", 2), ("surely worse", 1)])
def test_learning_goes_on_from_a_refused_candidate_unless_it_is_surely_worse(
    site, monkeypatch, verdict, goes_on_from
):
    monkeypatch.setattr(VersionContest, "standing", lambda *_: (verdict, "worse, they say"))
    learner = site.learner()
    site.traffic(500)
    learner.step()
    assert site.versions.live.number == 1
    assert learner.state.model == goes_on_from
    assert ("learner", "version 2 was refused: worse, they say") in site.alarms or goes_on_from == 2


def test_many_small_steps_down_are_noticed_by_the_anchor(site, given):
    gate = held_out_gate(site)
    start = given.predict(gate.dataset)
    rng = np.random.default_rng(0)
    walk = np.cumsum(0.5 * start.std() * rng.normal(size=(25, len(start))), axis=0) + start
    noticed = [gate.judge(after, before).is_worse() for before, after in pairwise(walk)]
    assert sum(noticed) <= 4
    assert gate.judge(walk[-1], start).is_worse()


def test_the_first_version_is_the_anchor_until_one_is_clearly_better(site, monkeypatch):
    assert site.versions.note().anchor == 1
    learner = site.learner()
    for better in (False, True):
        monkeypatch.setattr(VersionContest, "_judge", lambda *_, better=better: Judgment(better))
        site.traffic(500)
        learner.step()
        assert site.versions.note().anchor == (site.versions.live.number if better else 1)
    assert site.versions.live.number == 3


def test_nothing_is_held_against_an_anchor_that_was_taken_back(site, monkeypatch):
    learner = site.learner()
    compared = []

    def judge(_, gate, number, other):
        compared.append((number, other))
        return Judgment(better=False)

    monkeypatch.setattr(VersionContest, "_judge", judge)
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
