import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest

import dualrank
from dualrank.clicks.dependence import Dependence
from dualrank.clicks.user import perceived_relevance
from dualrank.data.lists import RankedLists
from dualrank.diagnostics import diagnosis as module
from dualrank.diagnostics.diagnosis import diagnose
from dualrank.diagnostics.point import Point, plain, worst
from dualrank.diagnostics.trained_pair import TrainedPair
from dualrank.diagnostics.verdict import judge
from dualrank.errors import DataError

NAMES = (
    "connectivity",
    "curves",
    "features",
    "logging ranker",
    "leakage",
    "joint learning",
    "confounding",
    "independent clicks",
    "trust in the top",
    "sample",
    "drift",
    "traffic",
)


def points(*, connected, ends_sessions=False, **statuses):
    numbers = {"can_harvest": connected, "ends_sessions": ends_sessions, "clicks": 1_000}
    found = {name: Point(name, "good", numbers, "") for name in NAMES}
    for name, status in statuses.items():
        key = name.replace("_", " ")
        found[key] = Point(key, status, found[key].numbers, "")
    return found


@pytest.mark.parametrize(
    ("connected", "joint", "curves", "sample", "verdict", "reason"),
    [
        (True, "good", "good", "good", "fit for joint learning", "agrees with the harvested"),
        (True, "good", "not measured", "good", "fit for joint learning", "not known well enough"),
        (True, "good", "failed", "good", "use harvested propensities", "finds another curve"),
        (True, "warning", "good", "good", "use harvested propensities", "do not show"),
        (True, "not measured", "good", "good", "use harvested propensities", "was not asked"),
        (False, "good", "not measured", "good", "fit for joint learning", "No document"),
        (False, "warning", "not measured", "good", "collect some swaps first", "do not show"),
        (False, "not measured", "not measured", "good", "collect some swaps first", "features"),
        (True, "good", "good", "failed", "collect some swaps first", "too small"),
    ],
)
def test_the_verdict_follows_from_the_points(connected, joint, curves, sample, verdict, reason):
    found = judge(points(connected=connected, joint_learning=joint, curves=curves, sample=sample))
    assert found.verdict == verdict
    assert any(reason in each for each in found.reasons)


@pytest.mark.parametrize("connected", [True, False])
def test_a_small_log_is_told_to_swap_only_where_that_helps(connected):
    found = judge(points(connected=connected, sample="failed"))
    assert ("Swap some results while you do." in found.reasons) != connected


def test_where_swaps_would_help_it_says_how_many(world):
    found = diagnose(world(seed=4).log(60_000, rankers=1))
    assert found.verdict == "collect some swaps first"
    plan = next(each for each in found.reasons if "plan_swaps" in each)
    assert re.fullmatch(
        r"Swap the first result with one of the others in 5% of sessions for about [\d,]+ sessions "
        r"\(costs at most [\d.]+% of the clicks in them\), and the curve is known within ±10%: "
        r"see plan_swaps\(log, precision=0\.1\)\.",
        plan,
    )


def test_where_swaps_would_not_help_or_cannot_be_planned_no_number_is_named(world):
    asked = []

    def plan():
        asked.append(True)

    found = judge(points(connected=False, joint_learning="warning"), plan)
    assert asked
    assert not any("plan_swaps" in each for each in found.reasons)
    asked.clear()
    judge(points(connected=True, ends_sessions=True), plan)
    judge(points(connected=False, drift="failed"), plan)
    judge(points(connected=True, joint_learning="warning"), plan)
    assert not asked
    # Hardly any click.
    found = diagnose(world(seed=4).log(12, rankers=1))
    assert not any("plan_swaps" in each for each in found.reasons)


def test_a_log_without_clicks_is_not_called_small(world):
    log = world().log(200_000)
    quiet = type(log)(log.lists, log.list_of, log.clicks & False, log.counts)
    found = diagnose(quiet)
    assert found.reasons[0].startswith("There is no click in the log")
    assert not found.is_fit


def test_where_a_click_ends_the_session_no_curve_is_advised():
    found = judge(points(connected=True, ends_sessions=True))
    assert found.verdict == "collect some swaps first"
    assert "A click mostly ends the session" in found.reasons[0]


def test_where_users_read_from_the_top_the_method_for_them_is_named():
    found = points(connected=False)
    numbers = {**found["independent clicks"].numbers, "reads_from_the_top": True}
    found["independent clicks"] = Point("independent clicks", "warning", numbers, "")
    judged = judge(found)
    assert judged.verdict == "collect some swaps first"
    assert "method stopping" in judged.reasons[0]


@pytest.mark.parametrize(
    ("connected", "verdict"),
    [(True, "use harvested propensities"), (False, "collect some swaps first")],
)
def test_joint_learning_is_not_advised_where_it_is_confounded(connected, verdict):
    judged = judge(points(connected=connected, confounding="warning"))
    assert judged.verdict == verdict
    assert any("method grounded" in reason for reason in judged.reasons)


def test_one_curve_is_not_advised_where_parts_of_the_log_differ():
    judged = judge(points(connected=False, drift="failed"))
    assert judged.verdict == "collect some swaps first"
    assert "context" in judged.reasons[0]
    judged = judge(points(connected=True, drift="failed"))
    assert judged.verdict == "use harvested propensities"
    assert "context" in judged.reasons[1]


def test_other_findings_are_cautions_and_what_no_log_shows_comes_last():
    found = judge(points(connected=True, drift="warning", traffic="warning", sample="warning"))
    assert found.verdict == "fit for joint learning"
    assert found.reasons[-2] == (
        "Mind that corrections may overfit, examination differs between parts of the log and some "
        "clicks look like a machine's."
    )
    assert "never displayed" in found.reasons[-1]


def test_every_point_is_asked_once_and_the_json_can_be_read(world):
    progress = []
    found = diagnose(world().log(5_000), progress=lambda *done: progress.append(done))
    assert tuple(point.name for point in found.points) == NAMES
    content = json.loads(found.to_json())
    assert content["verdict"] == found.verdict
    assert [point["name"] for point in content["points"]] == list(NAMES)
    assert progress[-1] == (len(NAMES),) * 2
    assert found["sample"].numbers["sessions"] == 5_000
    # Below ten thousand sessions, and nothing else is wrong with it.
    assert found.failed == ("sample",)
    assert not found.is_fit


def test_the_same_seed_gives_the_same_diagnosis(world):
    log = world().log(5_000)
    assert diagnose(log, seed=1).to_json() == diagnose(log, seed=1).to_json()


def test_progress_counts_training_once(world, monkeypatch):
    monkeypatch.setattr("dualrank.diagnostics.trained_pair.STEPS", 20)
    small = world(queries=60)
    progress = []
    diagnose(small.log(3_000), small.data, progress=lambda *done: progress.append(done))
    assert progress == sorted(progress)
    assert progress[-1] == (len(NAMES) + module.TRAINING,) * 2


def test_rankers_that_were_trained_already_are_not_trained_again(world, monkeypatch):
    monkeypatch.setattr("dualrank.diagnostics.facts.train_pair", None)
    large = world(queries=300)
    log = large.log(30_000, rankers=1)
    held_out = log.take_lists(np.flatnonzero(log.lists.queries >= 150))
    known = np.log(perceived_relevance(large.data.grades, 4, 0.1)).astype(np.float32)
    pair = TrainedPair(np.zeros_like(known), known, held_out)
    progress = []
    found = diagnose(log, large.data, trained=pair, progress=lambda *done: progress.append(done))
    assert found["joint learning"].status == "good"
    assert found["joint learning"].numbers["held_out_queries"] <= 150
    assert found["curves"].numbers["learned"]["method"] == "dual learning"
    assert progress[-1] == (len(NAMES),) * 2


def test_dependence_is_counted_once(world, monkeypatch):
    counted = []
    count = Dependence.of
    monkeypatch.setattr(Dependence, "of", lambda log: counted.append(1) or count(log))
    log = world().log(5_000)
    known = np.zeros(log.lists.documents.max() + 1, np.float32)
    diagnose(log, trained=TrainedPair(known, known, log))
    assert len(counted) == 1


OF_THE_COMMAND_LINE = re.compile(r"(?<![\w-])--[a-z]|dualrank [a-z]+ [A-Z]")


@pytest.mark.parametrize("room", ["diagnostics", "propensity", "clicks", "pages"])
def test_sentences_are_for_users_of_python_too(room):
    """No option and no command in any sentence of these rooms (the name of an option is none)."""
    for file in Path(dualrank.__file__).parent.joinpath(room).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and " " in text:
                assert not OF_THE_COMMAND_LINE.search(text)


def test_lists_of_one_position_have_no_bias(world):
    log = world().log(100)
    short = RankedLists(log.lists.documents[:, :1], log.lists.queries)
    cut = type(log)(short, log.list_of, log.clicks[:, :1], log.counts)
    with pytest.raises(DataError, match="one position only"):
        diagnose(cut)


def test_features_of_other_documents_are_refused(world):
    with pytest.raises(DataError, match="give the data set with which the log was read"):
        diagnose(world(queries=60).log(500), world(queries=10).data)


def test_json_has_no_infinity():
    value = {"a": np.array([1.0, np.inf]), "b": (np.int64(2), np.bool_(True), np.nan), "c": "x"}
    assert plain(value) == {"a": [1.0, None], "b": [2, True, None], "c": "x"}


def test_the_worst_status_decides():
    assert worst("good", "failed", "warning") == "failed"
    assert worst("not measured", "good") == "good"
    assert worst() == "good"
