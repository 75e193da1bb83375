"""Weights of candidates' scores: the truth where clicks are many, the prior where they are few."""

from dataclasses import dataclass, replace

import numpy as np
import onnxruntime
import pytest
import torch

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.data.click_log import ClickLog, Column
from dualrank.data.dataset import Dataset
from dualrank.data.lists import RankedLists
from dualrank.data.scaling import Scaler
from dualrank.engines.onnx import export_onnx
from dualrank.errors import SettingsError
from dualrank.learning.combination import HeldOut, add_up, context_lead, weigh
from dualrank.learning.logging_scores import Ground
from dualrank.learning.model import Model
from dualrank.learning.plan import Plan
from dualrank.rankers.network import DNN, Linear, Network
from dualrank.rankers.ranking_svm import RankingSVM

LISTS, DEPTH, FEATURES = 300, 6, 3
RHO = PositionBasedUser().examination(DEPTH)


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).normal(size=(LISTS * DEPTH, FEATURES)).astype(np.float32)
    return Dataset.from_arrays(X, np.repeat(np.arange(LISTS), DEPTH))


@pytest.fixture(scope="module")
def candidates(data):
    """Three rankers, each of which looks at one feature, on scales of their own."""
    found = {}
    for name, feature, scale in (("one", 0, 1.0), ("two", 1, 5.0), ("noise", 2, 1.0)):
        ranker = Linear().build(FEATURES)
        ranker.weights[0][0, feature] = scale
        found[name] = Model(ranker, Scaler.fit(data.features, kind="none"), kind="linear")
    return found


def shown():
    documents = np.arange(LISTS * DEPTH, dtype=np.int32).reshape(LISTS, DEPTH)
    return RankedLists(documents, np.arange(LISTS, dtype=np.int32))


def laid_out(data, weights):
    return (data.features @ np.asarray(weights)).reshape(LISTS, DEPTH)


def clicked_by_position(data, weights, sessions, rho=RHO, seed=1):
    """Single clicks where examination times e^{w·x} lets them fall."""
    rates = rho * np.exp(laid_out(data, weights))
    counts = np.random.default_rng(seed).multinomial(
        sessions // LISTS, rates / rates.sum(axis=1, keepdims=True)
    )
    rows, clicks = (
        np.repeat(np.arange(LISTS), DEPTH),
        np.tile(np.eye(DEPTH, dtype=bool), (LISTS, 1)),
    )
    seen = counts.ravel() > 0
    return ClickLog.from_clicks(shown(), rows[seen], clicks[seen], counts.ravel()[seen])


def clicked_by_readers(data, weights, sessions, seed=1):
    """The first document that attracts is clicked, and ends the session."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(LISTS, size=sessions)
    attracts = rng.random((sessions, DEPTH)) < 1 / (1 + np.exp(1 - laid_out(data, weights)[rows]))
    first = attracts & (np.cumsum(attracts, axis=1) == 1)
    return ClickLog.from_clicks(shown(), rows, first)


FIRST = {"one": 1.0}


@pytest.mark.parametrize("reads", [False, True])
def test_many_clicks_give_the_weights_that_they_were_made_with(data, candidates, reads):
    """Standard errors are below 0.01: 300,000 sessions, and numbers that differ by 1."""
    clicks = clicked_by_readers if reads else clicked_by_position
    log = clicks(data, [0.7, 0.4, 0.0], 300_000)
    weights = weigh(candidates, HeldOut(log, data, None, reads), FIRST)
    assert list(weights) == ["one", "two"]
    assert weights["one"] == pytest.approx(0.7, abs=0.03)
    # Its scores are five times as far apart.
    assert weights["two"] == pytest.approx(0.4 / 5, abs=0.03 / 5)


def test_the_largest_part_comes_first_and_what_clicks_speak_against_is_left_out(data, candidates):
    log = clicked_by_position(data, [0.2, 0.8, -0.1], 300_000)
    weights = weigh(candidates, HeldOut(log, data, None, False), FIRST)
    assert list(weights) == ["two", "one"]


def test_few_clicks_leave_the_first_candidate_as_it_was_trained(data, candidates):
    log = clicked_by_position(data, [0.0, 1.0, 0.0], 300)
    few = log.take_lists(np.arange(20))
    weights = weigh(candidates, HeldOut(few, data, None, False), FIRST)
    assert next(iter(weights)) == "one"
    assert weights["one"] == pytest.approx(1, abs=0.15)
    assert 5 * weights.get("two", 0) < 0.2


def test_clicks_of_one_query_that_say_the_same_count_for_fewer(data, candidates):
    """The same clicks a thousand times: not a thousand times the evidence, against the prior."""
    once = clicked_by_position(data, [0.0, 0.5, 0.0], 900)
    often = replace(once, counts=1_000 * once.counts)
    independent = clicked_by_position(data, [0.0, 0.5, 0.0], 900_000)
    prior_kept = {
        name: weigh(candidates, HeldOut(log, data, None, False), FIRST).get("one", 0.0)
        for name, log in (("often", often), ("independent", independent))
    }
    assert prior_kept["independent"] < 0.04
    assert prior_kept["often"] > 0.1


def test_few_clicks_leave_the_shares_of_the_prior(data, candidates):
    """Shares are of scores that differ alike, on the scale of the first."""
    few = clicked_by_position(data, [0.0, 0.0, 1.0], 300).take_lists(np.arange(20))
    weights = weigh(candidates, HeldOut(few, data, None, False), {"one": 0.6, "two": 0.4})
    assert weights["one"] == pytest.approx(0.6, abs=0.1)
    assert 5 * weights["two"] == pytest.approx(0.4, abs=0.1)


def test_where_nothing_speaks_for_any_the_prior_is_taken(data, candidates):
    log = clicked_by_position(data, [-1.0, 0.0, 0.0], 30_000)
    assert weigh(candidates, HeldOut(log, data, None, False), FIRST) == {"one": pytest.approx(1)}


def by_device(data, etas, sessions=200_000, weights=(0.7, 0.4, 0.0)):
    """The same lists on two devices, whose users look down by `etas`."""
    logs = [
        clicked_by_position(
            data, weights, sessions, PositionBasedUser(eta=eta).examination(DEPTH), seed
        )
        for seed, eta in enumerate(etas)
    ]
    codes = np.repeat([0, 1], [len(log.counts) for log in logs]).astype(np.int32)
    return ClickLog.from_clicks(
        shown(),
        np.concatenate([log.list_of for log in logs]),
        np.concatenate([log.clicks for log in logs]),
        np.concatenate([log.counts for log in logs]),
        columns={"device": Column(("desk", "phone"), codes)},
    )


def test_weights_are_found_beside_a_curve_for_every_device(data, candidates):
    log = by_device(data, (0.2, 2.0))
    weights = weigh(candidates, HeldOut(log, data, None, False, "device"), FIRST)
    assert weights["one"] == pytest.approx(0.7, abs=0.03)
    assert weights["two"] == pytest.approx(0.4 / 5, abs=0.03 / 5)


def test_of_many_rows_some_queries_speak_for_all(data, candidates, monkeypatch):
    log = by_device(data, (0.2, 2.0))
    held_out = HeldOut(log, data, None, False, "device")
    whole, _ = held_out.logit([held_out.scores(candidates["one"])])
    monkeypatch.setattr("dualrank.learning.combination.MOST_CELLS", whole.inputs.size // 3)
    part, queries = held_out.logit([held_out.scores(candidates["one"])])
    assert part.inputs.shape[1:] == whole.inputs.shape[1:]
    assert len(np.unique(queries)) == pytest.approx(LISTS / 3, abs=5 * np.sqrt(LISTS * 2 / 9))
    assert len(queries) == 2 * len(np.unique(queries))
    assert weigh(candidates, held_out, FIRST)["one"] == pytest.approx(0.7, abs=0.1)


@pytest.mark.parametrize("sessions", [3_000, 200_000])
def test_a_column_leads_where_examination_differs_by_it_and_only_there(data, sessions):
    scores = data.features @ [0.7, 0.4, 0.0]
    apart = context_lead(by_device(data, (0.5, 1.5), sessions), scores, "device", reads=False)
    alike = context_lead(by_device(data, (1.0, 1.0), sessions), scores, "device", reads=False)
    assert apart.is_clear
    assert not alike.is_clear
    assert apart.queries == LISTS


def test_what_the_order_tells_counts_as_much_as_the_ground_does(data, candidates):
    log = clicked_by_position(data, [0.5, 0.5, 0.0], 3_000)
    ground = Ground.of(candidates["two"], log.lists, data)
    held_out = HeldOut(log, data, ground, reads=False)
    model = replace(candidates["one"], training={"worth_of_ground": 1.5})
    by_features = laid_out(data, [1.0, 0.0, 0.0])
    expected = by_features + 1.5 * ground.by_order(log.lists, data)
    np.testing.assert_allclose(held_out.scores(model), expected, atol=1e-5)
    np.testing.assert_allclose(held_out.scores(candidates["one"]), by_features, atol=1e-6)


def random_models(data, ranker, kind, count=3):
    scaler = Scaler.fit(data.features, kind="standard")
    found = {}
    for seed in range(count):
        built = ranker.build(scaler.output_count, seed)
        rng = np.random.default_rng(seed)
        for tensor in built.tensors().values():
            tensor.copy_(torch.from_numpy(rng.normal(0, 0.3, tensor.shape)))
        found[f"m{seed}"] = Model(built, scaler, kind=kind)
    return found


@pytest.mark.parametrize(
    "ranker", [Linear(), DNN((6,)), DNN((8, 4)), RankingSVM()], ids=["linear", "6", "8-4", "svm"]
)
def test_the_sum_is_one_model_for_whoever_loads_or_exports_it(data, tmp_path, ranker):
    models = random_models(data, ranker, ranker.kind)
    weights = {"m1": 2.0, "m0": 0.5, "m2": 0.1}
    model = add_up(models, weights)
    scores = model.predict(data)
    expected = sum(weight * models[name].predict(data) for name, weight in weights.items()) / 2.0
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
    model.save(tmp_path / "model")
    loaded = Model.load(tmp_path / "model")
    assert np.array_equal(loaded.predict(data), scores)
    assert export_onnx(loaded, tmp_path / "m.onnx", data.features) <= 1e-5
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    (found,) = session.run(None, {session.get_inputs()[0].name: data.features})
    np.testing.assert_allclose(np.ravel(found), scores, rtol=1e-4, atol=1e-5)


def test_one_candidate_alone_stays_as_it_is(data):
    models = random_models(data, DNN((4,)), "dnn")
    alone = add_up(models, {"m2": 0.3})
    assert np.array_equal(alone.predict(data), models["m2"].predict(data))


class WholeList(Network):
    """A ranker from elsewhere whose scores depend on the whole list, and which adds up to none."""

    by_list = True

    def plus(self, other, weight):
        return super(Network, self).plus(other, weight)


@dataclass(frozen=True)
class WholeListSettings(Linear):
    makes = WholeList

    def build(self, inputs, seed=0):
        return WholeList((inputs, 1), seed=seed)


@pytest.mark.parametrize("method", ["grounded", "grounded-stopping"])
@pytest.mark.parametrize("ranker", [WholeListSettings(), DNN((4,), elu_output=True)])
def test_rankers_that_do_not_add_up_are_refused_before_anything_is_trained(method, ranker):
    with pytest.raises(SettingsError, match=f"method {method} makes one ranker of several: "):
        Plan(method, ranker)
    assert Plan("likelihood", ranker).method == "likelihood"
