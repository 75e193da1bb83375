"""A log in shards is diagnosed like the same log in one piece, as far as it fits."""

import json

import numpy as np
import pytest

from dualrank.clicks.dependence import Dependence
from dualrank.data.click_log import PERIOD
from dualrank.data.log_parts import LogParts
from dualrank.data.shards.whole_shards import bytes_of, sample_shards
from dualrank.diagnostics.diagnosis import diagnose
from dualrank.diagnostics.facts import LogFacts
from dualrank.errors import DataError, SettingsError
from dualrank.report.diagnosis_report import diagnosis_sheet

ADDED_UP = ("connectivity", "independent clicks", "sample", "traffic")


@pytest.fixture
def both(world, joined, in_shards):
    """With a period, so that there is something to compare within a part."""
    here = world(120)
    lists = here.lists(4)
    parts = {f"2024-01-0{day}": here.log(15_000, lists=lists) for day in (1, 2)}
    return in_shards(joined(PERIOD, parts), here.data, 6)


def close(found, expected):
    """Whether two values of JSON are the same to rounding."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(close(found[k], expected[k]) for k in found)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(close, found, expected))
    is_number = isinstance(expected, int | float)
    return found == (pytest.approx(expected, rel=1e-6) if is_number else expected)


def test_what_fits_is_diagnosed_as_a_whole(both):
    log, sharded = both
    found, whole = diagnose(sharded), diagnose(log)
    assert found.looked_at is None
    assert found.verdict == whole.verdict
    for point, other in zip(found.points, whole.points, strict=True):
        assert (point.name, point.status) == (other.name, other.status)


def test_points_that_add_up_count_every_shard(both):
    log, sharded = both
    budget = sum(map(bytes_of, sharded.shards[:2]))
    found, whole = diagnose(sharded, budget=budget).to_dict(), diagnose(log).to_dict()
    points = {point["name"]: point for point in found["points"]}
    for name in ADDED_UP:
        expected = next(point for point in whole["points"] if point["name"] == name)
        # The width of the interval is that of another draw of queries.
        for numbers in (points[name]["numbers"], expected["numbers"]):
            numbers.pop("widest_interval_of_harvested_curve", None)
        assert close(points[name]["numbers"], expected["numbers"]), name
    for curve in ("raw", "harvested"):
        values = [
            next(p for p in each["points"] if p["name"] == "curves")["numbers"][curve]
            for each in (found, whole)
        ]
        assert close(values[0]["examination"], values[1]["examination"])


def test_the_verdict_says_how_much_was_looked_at(both):
    _, sharded = both
    found = diagnose(sharded, budget=sum(map(bytes_of, sharded.shards[:2])))
    sessions = sum(shard.sessions for shard in sharded.shards[:2])
    said = f"Looked at 2 of 6 shards, {sessions:,} of 30,000 sessions, a random sample of the"
    assert found.looked_at.startswith(said)
    assert said in diagnosis_sheet(found, "log").html()
    assert json.loads(found.to_json())["looked_at"] == found.looked_at
    (drift,) = (point for point in found.points if point.name == "drift")
    assert drift.numbers["comparisons"]


def test_a_sample_is_not_taken_for_a_log_that_is_too_small(both):
    log, _ = both
    assert diagnose(log)["sample"].status == "warning"
    found = diagnose(log, sampled_of=20_000_000)
    assert found["sample"].status == "good"
    assert found.looked_at.startswith("Looked at 30,000 of 20,000,000 sessions")


def test_one_shard_is_looked_at_in_any_case_if_the_machine_has_room(both, monkeypatch):
    _, sharded = both
    assert sample_shards(sharded, 1).sentence.startswith("looked at 1 of 6 shards")
    monkeypatch.setattr("dualrank.data.memory_limits.memory_of_machine", lambda: 1_000)
    with pytest.raises(DataError, match=r"a shard, and what is made of it, would take .* GB"):
        sample_shards(sharded, 1)


def test_features_of_a_sample_are_those_of_its_documents(world, in_shards):
    here = world(40)
    log, sharded = in_shards(here.log(3_000), here.data, 8, features=True)
    some = sample_shards(sharded, sum(map(bytes_of, sharded.shards[:3])))
    assert (some.shards, some.of_shards) == (3, 8)
    rows = []
    for shard in sharded.shards[:3]:
        names = shard.catalogue()
        rows += [here.data.features[int(d)] for d in map(str, _numbers(here.data, names))]
    np.testing.assert_array_equal(some.dataset.features, np.stack(rows))
    whole = sample_shards(sharded)
    assert whole.is_whole
    assert whole.log.sessions == log.sessions
    expected = Dependence.of(log).further_down.to_dict()
    for each in (whole.log, LogParts.of(sharded)):
        assert Dependence.of(each).further_down.to_dict() == pytest.approx(expected)
    some_clicks = sum(shard.log.clicks_per_list.sum() for shard in sharded.shards[:3])
    assert some.log.clicks_per_list.sum() == some_clicks


def _numbers(data, catalogue):
    """The rows of a data set behind the names of a catalogue."""
    row_of = {pair: row for row, pair in enumerate(data.catalogue.pairs())}
    return [row_of[pair] for pair in catalogue.pairs()]


def test_rankers_are_trained_on_the_features_beside_the_shards(world, in_shards, monkeypatch):
    monkeypatch.setattr("dualrank.diagnostics.trained_pair.STEPS", 50)
    here = world(100)
    _, sharded = in_shards(here.log(20_000), here.data, 4, features=True)
    found = diagnose(sharded, budget=sum(map(bytes_of, sharded.shards[:3])))
    assert found["joint learning"].numbers["held_out_queries"] > 0
    assert found["curves"].numbers["learned"]["method"] == "dual learning"
    with pytest.raises(SettingsError, match="has its features beside it"):
        diagnose(sharded, here.data)


def test_swaps_are_planned_for_the_traffic_of_all_shards(both):
    """Two of six shards have a third of the sessions, and not a third of the traffic."""
    log, sharded = both
    some = sample_shards(sharded, sum(map(bytes_of, sharded.shards[:2])))
    found = LogFacts(some.log, whole=LogParts.of(sharded)).plan_swaps()
    whole = LogFacts(log).plan_swaps()
    assert found.sessions_logged == whole.sessions_logged == 30_000
    assert found.sessions_per_day == pytest.approx(whole.sessions_per_day, rel=0.05)
