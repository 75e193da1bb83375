"""A learner: rounds, held-out queries, users who change, clients that are left out."""

import numpy as np
import pyarrow as pa
import pytest

from dualrank.errors import SettingsError
from dualrank.online.learner.following import catch_up
from dualrank.online.learner.learner import Learner, LearnerSettings
from dualrank.online.learner.round_clicks import HeldOutQueries

from .learner_site import DATA, SETTINGS, Site
from .small_site import TRUTH, feature_rows, sessions


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
    assert 0 <= last.delay < 600
    assert np.abs(np.array(last.examination) / TRUTH - 1).max() < 0.35
    assert np.mean((np.array(last.low) <= TRUTH) & (np.array(last.high) >= TRUTH)) > 0.7
    assert [kind for kind, _ in site.alarms] == []


@pytest.mark.usefixtures("never_worse")
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


@pytest.mark.usefixtures("never_worse")
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


@pytest.mark.usefixtures("never_worse")
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


@pytest.mark.usefixtures("never_worse")
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


@pytest.mark.usefixtures("never_worse")
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


def test_settings_are_checked():
    with pytest.raises(SettingsError, match="held_out is a share between 0 and 1, not 1"):
        LearnerSettings(held_out=1)
    with pytest.raises(SettingsError, match="half_life is a number of sessions, not 0"):
        LearnerSettings(half_life=0)
