"""Weighted events: a propensity from clicks, and a ranker from what events are worth."""

import json
from dataclasses import replace

import numpy as np
import pytest

from dualrank.data.click_log import ClickLog, Column
from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists
from dualrank.data.scaling import Scaler
from dualrank.errors import DataError, SettingsError, StoppedError
from dualrank.learning.choice import choose
from dualrank.learning.event_values import event_weights, values_by_list, values_by_row
from dualrank.learning.feedback import Judgments, LoggedClicks, ValuedClicks
from dualrank.learning.fit import fit
from dualrank.learning.material import Material
from dualrank.learning.model import Model
from dualrank.learning.plan import Plan
from dualrank.learning.whole_source import WholeSource, fingerprint
from dualrank.propensity.propensity import Propensity
from dualrank.rankers.network import Linear
from dualrank.rankers.ranking_svm import RankingSVM

QUERIES, DEPTH, SESSIONS = 80, 6, 60_000
EXAMINATION = 1 / np.arange(1, DEPTH + 1)
PURCHASES = {"click": 0, "purchase": 1}
QUICK = {"ranker": Linear(), "steps": 300, "batch_size": 64, "validation": 0.25}


def attracts(x):
    """Clicks follow the first feature."""
    return 1 / (1 + np.exp(1 - 1.5 * x[:, 0]))


def satisfies(x):
    """Purchases follow the second, against the first."""
    return 1 / (1 + np.exp(2 - 1.5 * x[:, 1] + 0.5 * x[:, 0]))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(QUERIES * DEPTH, 2)).astype(np.float32)
    grades = np.digitize(satisfies(x), [0.1, 0.2, 0.4])
    return Dataset.from_arrays(x, np.repeat(np.arange(QUERIES), DEPTH), grades)


@pytest.fixture(scope="module")
def log(data):
    """Four orders of each query, each with the first feature upwards more often than not.

    Users look at rank k with probability 1/k; what they look at they click by one relevance and
    buy by another, and stay about ten seconds where they bought.
    """
    rng = np.random.default_rng(1)
    first = data.features[:, 0].reshape(QUERIES, DEPTH)
    orders = [np.argsort(-first + rng.normal(size=first.shape), axis=1) for _ in range(4)]
    documents = np.concatenate([np.arange(QUERIES)[:, None] * DEPTH + o for o in orders])
    lists = RankedLists(documents.astype(np.int32), np.tile(np.arange(QUERIES, dtype=np.int32), 4))
    shown = rng.integers(len(lists), size=SESSIONS)
    examined = rng.random((SESSIONS, DEPTH)) < EXAMINATION
    clicks = examined & (rng.random(examined.shape) < attracts(data.features)[documents[shown]])
    bought = examined & (rng.random(examined.shape) < satisfies(data.features)[documents[shown]])
    seconds = np.where(bought, rng.exponential(10, examined.shape), 0)
    return ClickLog.from_clicks(
        lists,
        shown,
        clicks,
        columns={"device": Column(("a", "b"), (shown % 2).astype(np.int32))},
        events={"purchase": bought, "dwell_time": seconds},
    )


def agreement(model, data, truth):
    """The share of pairs of a query's documents that are ordered as their true relevance is."""
    scores, true = (v.reshape(QUERIES, DEPTH) for v in (model.predict(data), truth(data.features)))
    above = true[:, :, None] > true[:, None, :]
    return float((scores[:, :, None] > scores[:, None, :])[above].mean())


@pytest.fixture(scope="module")
def by_clicks(log, data):
    return fit(log, data, method="dla", **QUICK)


@pytest.fixture(scope="module")
def by_purchases(log, data):
    return fit(log, data, method="dla", events=PURCHASES, **QUICK)


def test_purchases_teach_what_clicks_do_not(data, by_clicks, by_purchases):
    assert agreement(by_clicks, data, attracts) > 0.9
    assert agreement(by_clicks, data, satisfies) < 0.6
    assert agreement(by_purchases, data, satisfies) > 0.9


def test_the_propensity_is_that_of_clicks_alone(by_clicks, by_purchases):
    assert np.array_equal(by_purchases.propensity.examination, by_clicks.propensity.examination)
    assert np.abs(np.log(by_purchases.propensity.examination / EXAMINATION)).max() < 0.3


def test_inverse_weights_undo_what_position_does_to_purchases(log, data, by_purchases):
    """What attracts stands higher here, and what satisfies lower, where few see it."""
    naive = fit(log, data, method="naive", events=PURCHASES, **QUICK)
    assert naive.propensity is None
    corrected = agreement(by_purchases, data, satisfies)
    assert corrected > agreement(naive, data, satisfies) + 0.05
    plan = Plan(method="dla", events=PURCHASES, validation=0.25)
    choice = choose({"dla": by_purchases, "naive": naive}, log, data, plan)
    assert choice.chosen == "dla"
    assert choice.why.startswith("dla predicts the held-out events of 20 queries better than naive")


def test_weights_trade_clicks_for_purchases(log, data, by_clicks, by_purchases):
    both = fit(log, data, method="dla", events={"click": 1, "purchase": 5}, **QUICK)
    order = [agreement(model, data, satisfies) for model in (by_clicks, both, by_purchases)]
    assert order == sorted(order)
    assert order[0] + 0.05 < order[1] < order[2]


def test_the_scale_of_amounts_changes_nothing(log, data, by_purchases):
    longer = fit(log, data, method="dla", events={"click": 0, "purchase": 1_000}, **QUICK)
    assert np.allclose(longer.predict(data), by_purchases.predict(data), atol=1e-4)
    stayed = fit(log, data, method="dla", events={"click": 0, "dwell_time": 1}, **QUICK)
    assert agreement(stayed, data, satisfies) > 0.88


def test_the_manifest_tells_both_stages(tmp_path, by_purchases, by_clicks):
    by_purchases.save(tmp_path)
    training = json.loads((tmp_path / "manifest.json").read_text())["training"]
    assert training["method"] == "dla"
    assert training["events"] == {"click": 0, "purchase": 1}
    assert training["stages"]["ranker"]["method"] == "ipw"
    first = training["stages"]["propensity"]
    assert first["method"] == "dla"
    assert "events" not in first
    assert first["history"] == json.loads(json.dumps(by_clicks.training["history"]))
    assert Model.load(tmp_path).training == training


@pytest.mark.parametrize("ranker", [Linear(), RankingSVM()])
def test_a_given_propensity_needs_no_first_stage(log, data, ranker):
    truth = Propensity.of(EXAMINATION)
    options = {**QUICK, "ranker": ranker}
    model = fit(log, data, method="ipw", propensity=truth, events=PURCHASES, **options)
    assert model.training["stages"]["propensity"] is None
    assert model.propensity == truth
    assert agreement(model, data, satisfies) > 0.9


def test_curves_by_context_weigh_events_too(log, data):
    short = {**QUICK, "steps": 40}
    model = fit(
        log, data, method="dla", position_model="contextual", context="device",
        events=PURCHASES, **short,
    )  # fmt: skip
    assert model.propensity.context == "device"
    assert model.training["context"] == "device"
    assert model.training["stages"]["propensity"]["position_model"] == "contextual"


@pytest.mark.parametrize("method", ["auto", "likelihood", "grounded", "stopping", "affine"])
def test_every_method_learns_from_events(log, data, method, caplog):
    short = {**QUICK, "steps": 60, "validate_every": 20}
    model = fit(log, data, method=method, events=PURCHASES, **short)
    assert model.training["method"] == method
    learned = model.training["stages"]["ranker"]["method"]
    assert learned == ("naive" if model.propensity is None else "ipw")
    assert ("has no propensity to weigh events by" in caplog.text) == (learned == "naive")
    assert agreement(model, data, satisfies) > 0.6


def test_an_interrupted_training_ends_as_another(log, data, tmp_path, by_purchases):
    def stop(step, loop):
        if loop.name == "ipw" and step == 120:
            raise StoppedError("enough")

    path, plan = tmp_path / "checkpoint.safetensors", {"method": "dla", "events": PURCHASES}
    often = {**QUICK, "checkpoint_every": 50}
    with pytest.raises(StoppedError):
        fit(log, data, checkpoint=path, watch=stop, **plan, **often)
    assert {p.name for p in tmp_path.iterdir()} >= {path.name, "checkpoint-clicks.safetensors"}
    seen = []
    again = fit(
        log, data, checkpoint=path, watch=lambda s, loop: seen.append(loop.name), **plan, **often
    )
    assert set(seen) == {"ipw"}
    assert np.array_equal(again.predict(data), by_purchases.predict(data))


def test_values_add_up_the_weighted_amounts_on_the_scale_of_clicks():
    lists = RankedLists(np.array([[0, 1]], np.int32), np.zeros(1, np.int32))
    log = ClickLog(
        lists,
        np.zeros(2, np.int32),
        np.array([[1, 0], [0, 1]], bool),
        np.array([3, 1]),
        events={"cart": np.array([[0.0, 2.0], [0.0, 0.0]])},
    )
    values = values_by_row(log, {"click": 1, "cart": 4})
    assert values.sum() == pytest.approx(4)
    assert np.allclose(values * 3, [[3, 8], [0, 1]])
    assert np.allclose(values_by_list(log, {"click": 1, "cart": 4}) * 3, [[3, 9]])
    batch = ValuedClicks(log, {"click": 1, "cart": 4}).everything(1, np.random.default_rng(0))
    assert np.allclose(batch.labels * 3, [[3, 9]])


def test_clicks_alone_are_valued_as_clicks(log):
    rng = np.random.default_rng
    valued = ValuedClicks(log, {"click": 7.0}, "device").draw(50, rng(0))
    clicks = LoggedClicks(log, "device").draw(50, rng(0))
    assert np.allclose(valued.labels, clicks.labels)
    assert np.array_equal(valued.contexts, clicks.contexts)


def test_a_click_weighs_one_unless_it_is_said():
    assert event_weights({"purchase": 5}) == {"click": 1, "purchase": 5}
    assert event_weights({"click": 0, "purchase": "2"}) == {"click": 0, "purchase": 2}
    for alone in (None, {}, {"click": 3}, {"click": 1, "purchase": 0}):
        assert event_weights(alone) is None


@pytest.mark.parametrize("weight", [-1, float("nan"), float("inf"), "much", None])
def test_what_is_no_weight_is_refused(weight):
    with pytest.raises(
        SettingsError, match=r"the event 'purchase' weighs .*; expected a number of"
    ):
        Plan(events={"purchase": weight})


def test_weights_of_nothing_are_refused():
    with pytest.raises(
        SettingsError, match="a weight above 0 among the events click, purchase, which l"
    ):
        Plan(events={"click": 0, "purchase": 0})


def test_what_a_log_cannot_tell_is_refused(log, data):
    with pytest.raises(DataError, match="no event 'cart' besides clicks; it has purchase, dwell_t"):
        fit(log, data, events={"cart": 1}, **QUICK)
    never = replace(log, events={"purchase": 0 * log.event("purchase")})
    with pytest.raises(DataError, match="none of the 60000 sessions has a purchase: there is noth"):
        fit(never, data, events=PURCHASES, **QUICK)
    with pytest.raises(SettingsError, match="weighted events are learned from in two stages"):
        fit(Judgments(data, log.lists), data, events=PURCHASES, **{**QUICK, "validation": 0})


def test_the_digest_of_a_training_knows_its_events(log, data):
    other = replace(log, events={**log.events, "purchase": 2 * log.event("purchase")})
    assert fingerprint(log, data) != fingerprint(other, data)


def test_held_out_events_keep_the_best_ranker(log, data):
    plan = Plan(method="naive", events=PURCHASES)
    material = Material.of(WholeSource.of(log, data, plan), plan, None)
    assert material.source.held_out is not None
    assert material.source.held_out.event("purchase").sum() > 0
    feedback = material.feedback(plan.way.correction(), Scaler.fit(data.features))
    assert isinstance(feedback, ValuedClicks)
