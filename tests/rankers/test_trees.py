import lightgbm
import numpy as np
import pytest
import torch

import dualrank as dr
from dualrank.clicks import EYE_TRACKING
from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.corrections.dual import DualLearning
from dualrank.corrections.naive import Naive
from dualrank.data.dataset import Dataset
from dualrank.data.lists import top_lists
from dualrank.errors import CheckpointError, SettingsError
from dualrank.learning.feedback import LoggedClicks
from dualrank.learning.loop import Loop
from dualrank.rankers.grown_tree import FIXED, Grower
from dualrank.rankers.trees import TreeRanker, Trees, first_half
from dualrank.settings import TrainingSettings

STEPS = 12
SETTINGS = TrainingSettings(steps=STEPS, learning_rate=0.3)
SMALL = Trees(leaves=5, least_evidence=0.1, shrinkage=1.0)


def problem(queries=60, sessions=6_000, missing=0.0, seed=0):
    """Judged queries of 8 documents, ranked by one noisy feature, and clicks on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * 8, 4)).astype(np.float32)
    grades = np.clip(np.round(X[:, 0] + X[:, 1] * (X[:, 2] > 0) + 1), 0, 4)
    shown = np.where(rng.random(X.shape) < missing, np.nan, X).astype(np.float32)
    data = Dataset.from_arrays(shown, np.repeat(np.arange(queries), 8), grades, max_grade=4)
    lists = top_lists(data, X[:, 0] + rng.normal(size=len(X)), 6)
    return sample_log(data, lists, PositionBasedUser(), sessions, seed), data


def loop_of(log, data, correction=None, ranker=SMALL, settings=SETTINGS):
    return Loop(
        ranker.build(data.feature_count, settings.seed),
        torch.from_numpy(data.features),
        LoggedClicks(log),
        correction or Naive(),
        settings,
    )


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_a_tree_gives_its_rows_what_lightgbm_says(missing):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 3)).astype(np.float32)
    X[rng.random(X.shape) < missing] = np.nan
    slope = np.nan_to_num(X[:, 0]) - np.nan_to_num(X[:, 1]) ** 2
    settings = Trees(leaves=9, feature_share=1.0, shrinkage=2.0).growing(0.1)
    grower = Grower(X, settings, 1)
    tree, outputs = grower.grow(slope.astype(np.float32), np.ones(500, np.float32), 0)
    assert len(np.unique(outputs)) == 9
    np.testing.assert_array_equal(tree.predict(X), outputs)
    # The value of a leaf is a Newton step: −rate Σ slope / (Σ curvature + shrinkage).
    for value in np.unique(outputs):
        mine = outputs == value
        newton = -0.1 * slope[mine].sum() / (mine.sum() + 2.0)
        assert value == pytest.approx(newton, rel=1e-4)
    new = rng.normal(size=(500, 3)).astype(np.float32) * 3
    new[rng.random(new.shape) < 0.3] = np.nan
    rows = lightgbm.Dataset(X, params={**FIXED, **settings, "num_threads": 1})
    booster = lightgbm.Booster({**FIXED, **settings, "num_threads": 1}, rows)
    booster.update(fobj=lambda *_: (slope.astype(np.float32), np.ones(500, np.float32)))
    np.testing.assert_allclose(tree.predict(new), booster.predict(new), rtol=1e-6)


def test_a_tree_depends_on_nothing_that_was_grown_before():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 12)).astype(np.float32)
    slopes = [rng.normal(size=400).astype(np.float32) + X[:, i] for i in range(4)]
    slopes.insert(2, np.zeros(400, np.float32))
    settings = Trees(leaves=6, feature_share=0.4, shrinkage=1.0).growing(0.1)
    ones = np.ones(400, np.float32)
    grower = Grower(X, settings, 1)
    for seed, slope in enumerate(slopes):
        tree, outputs = grower.grow(slope, ones, seed)
        again, _ = grower.grow(slope, ones, seed)
        alone, of_alone = Grower(X, settings, 1).grow(slope, ones, seed)
        np.testing.assert_array_equal(outputs, of_alone)
        for part in ("feature", "threshold", "value"):
            np.testing.assert_array_equal(getattr(tree, part), getattr(alone, part))
            np.testing.assert_array_equal(getattr(tree, part), getattr(again, part))


def grown_on(column, rows=100):
    """The nodes of a tree on one feature, and whether it gives its rows what LightGBM says."""
    X = np.resize(np.array(column, np.float32), rows)[:, None]
    slope = np.resize(np.array([1, -1], np.float32), rows)
    grower = Grower(X, Trees(least_evidence=0.0, shrinkage=1.0).growing(0.1), 1)
    tree, outputs = grower.grow(slope, np.ones(rows, np.float32), 0)
    np.testing.assert_array_equal(tree.predict(X), outputs)
    return len(tree.feature)


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    "column", [[0.0], [3.0], [NAN], [INF], [1e-36, 2e-36], [-1e-36, 1e-35], [0.0, -0.0]]
)
def test_where_rows_are_alike_for_lightgbm_a_tree_is_a_leaf(column):
    """It takes what is at most 1e-35 in size for 0."""
    assert grown_on(column) == 1


@pytest.mark.parametrize(
    "column", [[1.1e-35, 0.0], [NAN, 0.0], [NAN, 3.0], [NAN, 1e-36], [INF, -INF], [INF, NAN]]
)
def test_what_differs_for_lightgbm_makes_a_split(column):
    assert grown_on(column) == 3


def test_a_feature_that_varies_outside_of_the_sample_only_makes_no_split():
    """LightGBM reads the bins of many rows off some of them."""
    column = np.zeros(400_000)
    found = set()
    for row in range(4, 10):
        column[:] = 0.0
        column[row] = 1.0
        found.add(grown_on(column, len(column)))
    assert found == {1, 3}


@pytest.mark.parametrize("shape", [(0, 3), (5, 0)])
def test_no_rows_or_no_features_grow_a_leaf(shape):
    grower = Grower(np.zeros(shape, np.float32), SMALL.growing(0.1), 1)
    nothing = np.zeros(shape[0], np.float32)
    tree, outputs = grower.grow(nothing, nothing, 0)
    assert (len(tree.feature), len(outputs)) == (1, shape[0])


def test_halves_keep_queries_whole_and_are_equally_large():
    queries = np.repeat(np.arange(50, dtype=np.int32), 7)
    first = first_half(queries, 0)
    assert len(np.unique(queries[first])) == 25
    assert not set(queries[first]) & set(queries[~first])
    assert (first_half(queries, 1) != first).any()


def test_unseen_scores_do_not_depend_on_the_clicks_of_the_list():
    """Other clicks on one half of the queries change what it is scored by, but not unseen."""
    log, data = problem()
    other, _ = problem(seed=0)
    first = first_half(np.arange(len(log.lists), dtype=np.int32), 0)[log.list_of]
    flipped = other.clicks[:, ::-1] & log.lists.mask[log.list_of]
    clicks = np.where(first[:, None], flipped, log.clicks)
    changed = dr.ClickLog.from_clicks(log.lists, log.list_of, clicks, log.counts)
    found = {}
    for name, each in (("as it was", log), ("changed", changed)):
        loop = loop_of(each, data)
        for step in range(STEPS):
            loop.step(step / STEPS)
        shown = loop._shown(loop._draw())
        of_query = {
            int(query): (own, unseen)
            for query, own, unseen in zip(
                shown.queries,
                loop.ranker.score(shown),
                loop.ranker.score_unseen(shown),
                strict=True,
            )
        }
        found[name] = of_query
    in_first = first_half(np.arange(60, dtype=np.int32), 0)
    moved = 0
    for query in found["as it was"].keys() & found["changed"].keys():
        (own, unseen), (own_now, unseen_now) = (found[name][query] for name in found)
        if in_first[query]:
            torch.testing.assert_close(unseen, unseen_now, rtol=0, atol=0)
            moved += not torch.equal(own, own_now)
        else:
            torch.testing.assert_close(own, own_now, rtol=0, atol=0)
    assert moved > 20


def test_the_score_is_the_mean_of_both_ensembles():
    log, data = problem()
    loop = loop_of(log, data)
    for step in range(STEPS):
        loop.step(step / STEPS)
    shown = loop._shown(loop._draw())
    both = (loop.ranker.score(shown) + loop.ranker.score_unseen(shown)) / 2
    lists = dr.data.RankedLists(loop._whole.documents, loop._whole.queries)
    rows = np.unique(LoggedClicks(log).everything(1, None).labelled().documents)
    predicted = loop.ranker.predict_lists(data.features[rows[rows >= 0]], lists)
    np.testing.assert_allclose(both.numpy(), predicted, rtol=1e-5, atol=1e-6)


def test_what_follows_learning_is_what_it_predicts():
    log, data = problem()
    loop = loop_of(log, data)
    scores = loop.ranker.follow(data.features)
    assert not scores().any()
    for step in range(6):
        loop.step(step / STEPS)
        if step % 2:
            np.testing.assert_array_equal(scores(), loop.ranker.predict(data.features))
    loop.ranker.load_tensors(SMALL.build(4).tensors())
    assert not scores().any()


def test_what_follows_learning_notices_other_trees_however_many_they_are():
    log, data = problem()
    first, other = (loop_of(log, data, ranker=Trees(leaves=leaves)) for leaves in (3, 5))
    scores = first.ranker.follow(data.features)
    for step in range(3):
        first.step(step / STEPS)
        other.step(step / STEPS)
    np.testing.assert_array_equal(scores(), first.ranker.predict(data.features))
    for _ in range(2):
        first.ranker.load_tensors(other.ranker.tensors())
        np.testing.assert_array_equal(scores(), other.ranker.predict(data.features))
        other.step(0.5)


def test_learning_goes_on_from_a_model_and_keeps_its_trees():
    log, data = problem()
    options = {"ranker": SMALL, "method": "dla", "validation": 0, "steps": 5}
    model = dr.fit(log, data, **options)
    on = dr.fit(log, data, start=model, **options)
    before, after = model.ranker.forest(), on.ranker.forest()
    assert (len(before), len(after)) == (10, 20)
    np.testing.assert_array_equal(after.value[: len(before.value)], before.value)
    losses = [dr.evaluate(each.predict(data), data, ["ndcg@5"])["ndcg@5"] for each in (model, on)]
    assert losses[1] > losses[0] - 0.01


def examination_by(unseen, monkeypatch, seed):
    """What dual learning finds with trees that can learn few lists by heart."""
    log, data = problem(queries=400, sessions=8_000, seed=seed)
    if not unseen:
        monkeypatch.setattr(DualLearning, "learns_from_unseen", False)
    deep = Trees(leaves=60, least_evidence=0.01, shrinkage=0.0, feature_share=1.0)
    plan = {"ranker": deep, "method": "dla", "validation": 0, "steps": 100}
    model = dr.fit(log, data, learning_rate=0.2, propensity_rate=3.0, **plan)
    truth = np.array(EYE_TRACKING[:6]) / EYE_TRACKING[0]
    return dr.inverse_propensity_mse(model.propensity.examination, truth)


def test_a_curve_is_learned_from_what_was_not_learned_by_heart(monkeypatch):
    """A ranker that knows its clicks by heart makes the curve far worse."""
    unseen, by_heart = (examination_by(held, monkeypatch, 0) for held in (True, False))
    assert unseen < by_heart / 10


def test_missing_values_are_learned_from():
    """Where a value is missing because a document is bad, that is worth knowing."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(480, 2)).astype(np.float32)
    bad = rng.random(480) < 0.5
    data = Dataset.from_arrays(
        np.where(bad[:, None] & [True, False], np.nan, X),
        np.repeat(np.arange(60), 8),
        np.where(bad, 0, 3),
        max_grade=4,
    )
    log = sample_log(data, top_lists(data, rng.normal(size=480), 6), PositionBasedUser(), 6_000, 1)
    model = dr.fit(log, data, method="naive", ranker=SMALL, validation=0, steps=20)
    scores = model.predict(data)
    assert scores[bad].max() < scores[~bad].min()
    assert np.isfinite(scores).all()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"leaves": 1}, "a tree has at least 2 leaves, not 1"),
        ({"leaves": 131_073}, "a tree has at most 131072 leaves, not 131073"),
        ({"feature_share": 0.0}, "feature_share is above 0 and up to 1, not 0.0"),
        ({"least_evidence": -1.0}, "least_evidence is a number from 0 up, not -1.0"),
        ({"shrinkage": float("nan")}, "shrinkage is a number from 0 up, not nan"),
    ],
)
def test_settings_that_make_no_tree_are_refused(wrong, sentence):
    with pytest.raises(SettingsError, match=sentence):
        Trees(**wrong)


def test_slopes_that_are_no_numbers_grow_no_tree():
    log, data = problem()
    loop = loop_of(log, data)
    shown = loop._shown(loop._draw())
    signal = Naive().signal(loop.ranker.score(shown), shown)
    slope, curvature = loop.ranker.evidence(shown, signal)
    slope[0] = torch.nan
    loop.ranker.move([slope, curvature], None)
    assert loop.ranker.left_out == 1
    assert len(loop.ranker.forest()) == 0


def saved(folder, inputs=4):
    """A directory of a small model, whose manifest claims to know this many features."""
    log, data = problem()
    model = dr.fit(log, data, ranker=SMALL, method="naive", validation=0, steps=2)
    model.ranker._inputs = inputs
    model.save(folder)
    return folder


def test_a_model_file_whose_trees_look_beyond_the_features_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="knows other features than its scaling"):
        dr.Model.load(saved(tmp_path, inputs=9))


@pytest.mark.parametrize(
    ("name", "kind"), [("feature", torch.float32), ("value", torch.bfloat16), ("left", torch.int64)]
)
def test_a_model_file_with_numbers_of_another_kind_is_refused(tmp_path, monkeypatch, name, kind):
    tensors = TreeRanker.tensors

    def changed(ranker):
        return tensors(ranker) | {name: tensors(ranker)[name].to(kind)}

    with monkeypatch.context() as patch:
        patch.setattr(TreeRanker, "tensors", changed)
        saved(tmp_path)
    with pytest.raises(CheckpointError, match="not this model's weights"):
        dr.Model.load(tmp_path)


def test_trees_rank_no_documents_with_other_features():
    with pytest.raises(ValueError, match="trees on 4 features do not rank 3"):
        SMALL.build(4).predict(np.zeros((1, 3), np.float32))


def test_a_ranker_may_be_named():
    assert dr.Plan(ranker="trees").ranker == Trees()
    with pytest.raises(SettingsError, match="unknown ranker 'tree'; known are dnn, linear, trees"):
        dr.Plan(ranker="tree")
